"""Determine whether the text of an element can be seen, from its styles."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

Color = tuple[int, int, int]
Attributes = Sequence[tuple[str, str | None]]

_WHITE: Color = (255, 255, 255)
_COLOR_NAMES: Mapping[str, Color] = {
    "white": _WHITE, "black": (0, 0, 0), "snow": (255, 250, 250), "ivory": (255, 255, 240), "red": (255, 0, 0),
    "ghostwhite": (248, 248, 255), "whitesmoke": (245, 245, 245), "blue": (0, 0, 255), "green": (0, 128, 0),
    "gray": (128, 128, 128), "grey": (128, 128, 128), "yellow": (255, 255, 0), "silver": (192, 192, 192),
}  # fmt: skip
# Largest difference per channel of two colors that look the same.
_MAX_CHANNEL_DIFFERENCE = 12
# Pixels. Smaller text is unreadable, and text this far outside the page is not on it.
_MIN_FONT_PX, _OFF_PAGE_PX = 1.5, 500.0
_MIN_OPACITY = 0.05
_PIXELS = {
    "px": 1.0, "": 1.0, "pt": 4 / 3, "em": 16.0, "rem": 16.0, "%": 0.16, "cm": 37.8, "mm": 3.78, "in": 96.0, "vw": 10.0,
}  # fmt: skip
_LENGTH = re.compile(r"(-?\d{1,9}(?:\.\d{1,9})?|-?\.\d{1,9})(px|pt|rem|em|%|cm|mm|in|vw|)")
_NUMBERS = re.compile(r"\d{1,3}(?:\.\d{1,9})?%?")
_COMMENT = re.compile(r"/\*.*?(?:\*/|\Z)", re.DOTALL)
_SELECTOR = re.compile(r"[a-z][a-z0-9]*|[.#][\w-]+|[a-z][a-z0-9]*[.#][\w-]+", re.IGNORECASE)
# Number of rules considered per page.
_MAX_RULES = 2000

Declarations = dict[str, str]


@dataclass(frozen=True, slots=True)
class Look:
    """The inherited styles of an element. A color is None if unknown."""

    color: Color | None = (0, 0, 0)
    background: Color | None = _WHITE
    font_px: float = 16.0
    is_invisible: bool = False

    @property
    def is_hidden(self) -> bool:
        """Return True if text with this look cannot be seen."""
        if self.is_invisible or self.font_px < _MIN_FONT_PX:
            return True
        return self.color is not None and self.background is not None and _look_same(self.color, self.background)

    def of_child(self, declared: Declarations) -> Look:
        """Return the look of a child element with these declarations."""
        if not declared:
            return self
        background = declared.get("background-color", declared.get("background"))
        color = declared.get("color")
        return replace(
            self,
            color=self.color if color in (None, "inherit") else _color(color or ""),
            background=self._background(background),
            font_px=self._font(declared),
            is_invisible=self.is_invisible or _makes_invisible(declared),
        )

    def _background(self, declared: str | None) -> Color | None:
        if declared is None or declared in ("transparent", "none", "inherit", "initial"):
            return self.background
        # An image or gradient may have any color.
        return None if "(" in declared and not declared.startswith("rgb") else _color(declared)

    def _font(self, declared: Declarations) -> float:
        size = declared.get("font-size", "")
        found = _LENGTH.fullmatch(size)
        if found is None:
            return self.font_px if not size or size == "inherit" else 16.0
        number, unit = float(found[1]), found[2]
        if unit == "em":
            return number * self.font_px
        return number / 100 * self.font_px if unit == "%" else number * _PIXELS[unit]


class StyleSheet:
    """Rules of a page's style elements with simple selectors: tag, class, id, or tag with class or id."""

    def __init__(self) -> None:
        self._rules: dict[str, Declarations] = {}

    def add(self, css: str) -> None:
        """Add the rules of a style element."""
        for rule in _COMMENT.sub("", css).split("}")[:_MAX_RULES]:
            selectors, _brace, body = rule.rpartition("{")
            declared = _declarations(body)
            for selector in selectors.rpartition("{")[2].split(","):
                name = selector.strip()
                if declared and _SELECTOR.fullmatch(name) and len(self._rules) < _MAX_RULES:
                    self._rules[name] = self._rules.get(name, {}) | declared

    def declared_for(self, tag: str, attributes: Attributes) -> Declarations:
        """Return the declarations for the element from rules, old attributes and its own style."""
        values = {name: value or "" for name, value in attributes}
        declared: Declarations = {}
        if self._rules:
            marks = ["." + name for name in values.get("class", "").split()[:20]]
            marks += ["#" + values["id"]] if values.get("id") else []
            for selector in (tag, *marks, *(tag + mark for mark in marks)):
                declared |= self._rules.get(selector, {})
        if "bgcolor" in values:
            declared["background-color"] = values["bgcolor"].strip().lower()
        if tag == "font" and "color" in values:
            declared["color"] = values["color"].strip().lower()
        return declared | _declarations(values["style"]) if "style" in values else declared


def _declarations(css: str) -> Declarations:
    pairs = (declaration.partition(":") for declaration in css.split(";"))
    return {
        name.strip().lower(): value.lower().replace("!important", "").strip() for name, colon, value in pairs if colon
    }


def _makes_invisible(declared: Declarations) -> bool:
    """Return True if these declarations make the whole content of an element invisible."""
    if declared.get("display") == "none" or declared.get("visibility") in ("hidden", "collapse"):
        return True
    opacity = _NUMBERS.fullmatch(declared.get("opacity", ""))
    if opacity is not None and float(opacity[0].rstrip("%")) <= (
        100 * _MIN_OPACITY if "%" in opacity[0] else _MIN_OPACITY
    ):
        return True
    moving = ["text-indent", "margin-left", "margin-top"]
    if declared.get("position") in ("absolute", "fixed", "relative"):
        moving += ["left", "top", "right", "bottom"]
    if any((_pixels(declared.get(name, "")) or 0.0) < -_OFF_PAGE_PX for name in moving):
        return True
    if re.search(r"translate[xy]?\(\s*-\s*\d{4,}", declared.get("transform", "")) or "scale(0)" in declared.get(
        "transform", ""
    ):
        return True
    if re.match(r"rect\(\s*[01](?:px)?[\s,]+[01](?:px)?[\s,]+[01](?:px)?[\s,]+[01](?:px)?", declared.get("clip", "")):
        return True
    if re.match(r"inset\(\s*(?:[5-9]\d|100)%", declared.get("clip-path", "")):
        return True
    sides = [_pixels(declared.get(name, "")) for name in ("width", "height", "max-height", "max-width")]
    is_cut = declared.get("overflow", "") in ("hidden", "clip")
    return is_cut and any(side is not None and side <= 1 for side in sides)


def _pixels(length: str) -> float | None:
    found = _LENGTH.fullmatch(length)
    return float(found[1]) * _PIXELS[found[2]] if found else None


def _color(value: str) -> Color | None:
    value = value.strip()
    first = value if value.startswith("rgb") else (value.split() or [""])[0]
    if re.fullmatch(r"#[0-9a-f]{3,8}", first):
        digits = first[1:]
        if len(digits) in (3, 4):
            digits = "".join(2 * digit for digit in digits)
        if len(digits) not in (6, 8):
            return None
        return (int(digits[:2], 16), int(digits[2:4], 16), int(digits[4:6], 16))
    if first.startswith("rgb"):
        found = _NUMBERS.findall(first)[:3]
        if len(found) < 3:
            return None
        red, green, blue = (round(float(n[:-1]) * 2.55) if n.endswith("%") else round(float(n)) for n in found)
        return (red, green, blue)
    return _COLOR_NAMES.get(first)


def _look_same(one: Color, other: Color) -> bool:
    return all(abs(a - b) <= _MAX_CHANNEL_DIFFERENCE for a, b in zip(one, other, strict=True))
