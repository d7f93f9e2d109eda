"""Format the numbers of a workbook as Excel shows them: dates, times and percentages are formatted numbers."""

from __future__ import annotations

import datetime
import math
import re
from typing import Literal

from memory.documents.extraction.xml_stream import XmlHandler

NumberStyle = Literal["number", "percent", "date", "time", "moment", "elapsed"]
# Built-in formats, referred to by number (ECMA-376, part 1, 18.8.30).
_BUILT_IN: dict[int, NumberStyle] = {
    **dict.fromkeys((9, 10), "percent"),
    **dict.fromkeys((14, 15, 16, 17, *range(27, 32), 36, *range(50, 59)), "date"),
    **dict.fromkeys((18, 19, 20, 21, 32, 33, 34, 35, 45, 47), "time"),
    22: "moment",
    46: "elapsed",
}  # fmt: skip
# Quoted and escaped characters, padding, and conditions, colours and locales in brackets, which are not fields.
_NO_FIELD = re.compile(r'"[^"]*"|\\.|_.|\*.|\[(?!h+\]|m+\]|s+\])[^\]]*\]', re.IGNORECASE)
_MAX_DAYS = 2_958_466


class XlsxNumberFormats(XmlHandler):
    """Handle the cell formats; `of` returns that of a style."""

    def __init__(self) -> None:
        self.from_1904 = False
        self._own: dict[int, NumberStyle] = {}
        self._styles: list[int] = []
        self._in_styles = False

    def start(self, name: str, attributes: dict[str, str]) -> None:
        number = attributes.get("numFmtId", "0")
        if name == "cellXfs":
            self._in_styles = True
        elif not number.isdecimal():
            return
        elif name == "numFmt":
            self._own[int(number)] = parse_format_code(attributes.get("formatCode", ""))
        elif name == "xf" and self._in_styles:
            self._styles.append(int(number))

    def end(self, name: str) -> None:
        if name == "cellXfs":
            self._in_styles = False

    def of(self, style: int) -> NumberStyle:
        """Return how numbers in cells with this style are shown."""
        number = self._styles[style] if style < len(self._styles) else 0
        return self._own.get(number) or _BUILT_IN.get(number, "number")


def parse_format_code(code: str) -> NumberStyle:
    """Return the meaning of a format code such as `dd/mm/yyyy` or `0.0%`; its first section is for positive numbers."""
    fields = _NO_FIELD.sub("", code).split(";")[0].lower()
    if fields == "general":
        return "number"
    if "[" in fields:
        return "elapsed"
    has_date, has_time = bool(re.search("[yd]", fields)), bool(re.search("[hs]", fields))
    if has_date and has_time:
        return "moment"
    if has_date or has_time:
        return "date" if has_date else "time"
    if "m" in fields:
        return "date"
    return "percent" if "%" in fields else "number"


def format_number(raw: str, look: NumberStyle, from_1904: bool) -> str:
    """Return the number `raw` in this format, or `raw` if it is not a number. Days count from 1904 or 1900."""
    try:
        number = float(raw)
    except ValueError:
        return raw
    if not math.isfinite(number):
        return raw
    if look == "percent":
        return f"{number * 100:.12g}%"
    if look == "elapsed":
        minutes, seconds = divmod(round(number * 86_400), 60)
        return f"{minutes // 60}:{minutes % 60:02}:{seconds:02}"
    if look != "number" and 0 <= number < _MAX_DAYS:
        return _date(number, look, from_1904)
    # Excel keeps fifteen digits; the sixteenth is a rounding error.
    return str(int(number)) if number == int(number) and abs(number) < 1e15 else f"{number:.15g}"


def _date(days: float, look: NumberStyle, from_1904: bool) -> str:
    # Day 60 is 29 February 1900, which did not exist, so later days are one ahead.
    zero = datetime.datetime(1904, 1, 1) if from_1904 else datetime.datetime(1899, 12, 31 if days < 60 else 30)
    moment = zero + datetime.timedelta(seconds=round(days * 86_400))
    clock = f"{moment:%H:%M:%S}" if moment.second else f"{moment:%H:%M}"
    if look == "time":
        return clock
    return f"{moment:%Y-%m-%d}" if look == "date" or clock == "00:00" else f"{moment:%Y-%m-%d} {clock}"
