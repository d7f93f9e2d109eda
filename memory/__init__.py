"""The memory of a team: exchanges and documents in spaces, which are stored, recalled, searched and forgotten."""
