"""The web application: joins configuration, accounts, memory and chat."""

VERSION = "0.1.0"
