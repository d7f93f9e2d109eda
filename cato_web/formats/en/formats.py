"""English: 22 Nov 2026 and 22 Nov 14:40."""

DATE_FORMAT = "j M Y"
MONTH_DAY_FORMAT = "j M"
# A moment of this year: beside what was said, and on receipts, where the days stand below one another.
MOMENT_FORMAT = "j M H:i"
STAMP_FORMAT = "d M H:i"
