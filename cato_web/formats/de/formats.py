"""German: 22. Nov. 2026 and 22. Nov., 14:40."""

DATE_FORMAT = "j. N Y"
MONTH_DAY_FORMAT = "j. N"
MOMENT_FORMAT = STAMP_FORMAT = "j. N, H:i"
