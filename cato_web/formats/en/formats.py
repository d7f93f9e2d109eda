"""English: 22 Nov 2026 and 22 Nov 14:40."""

DATE_FORMAT = "j M Y"
MONTH_DAY_FORMAT = "j M"
# A moment of this year: in conversations, and on receipts, where days are aligned in a column.
MOMENT_FORMAT = "j M H:i"
STAMP_FORMAT = "d M H:i"
