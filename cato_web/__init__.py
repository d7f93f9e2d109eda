"""The place where configuration, people, memory and chat are joined into one product."""

VERSION = "0.1.0"
