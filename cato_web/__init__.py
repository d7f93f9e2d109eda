"""The place where configuration, people, memory and chat are joined into one product."""
