"""German formats of dates and numbers."""
