"""What a team said and keeps: remembered, recalled, found and forgotten, in spaces."""
