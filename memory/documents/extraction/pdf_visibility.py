"""Determine the visible text of a PDF page with a small model of the graphics state."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

Matrix = tuple[float, float, float, float, float, float]
Box = tuple[float, float, float, float]  # left, bottom, right, top
Color = tuple[float, float, float]

_IDENTITY: Matrix = (1.0, 0.0, 0.0, 1.0, 0.0, 0.0)
_BLACK, _WHITE = (0.0, 0.0, 0.0), (1.0, 1.0, 1.0)
_SAME_COLOR = 0.04
# Points; smaller text is unreadable.
_MIN_FONT_SIZE = 1.0
_MIN_ALPHA = 0.05
# Invisible text over images that cover this share of the page is the text layer of a scan.
_SCAN_SHARE = 0.8
# Number of painted boxes that are remembered.
_MAX_BOXES = 500
_INVISIBLE_MODES = (3, 7)
_SHOWING = frozenset({"Tj", "TJ", "'", '"'})
_FILLING = frozenset({"f", "F", "f*", "B", "B*", "b", "b*"})
_GRAY, _RGB, _CMYK = 1, 3, 4


@dataclass(frozen=True, slots=True)
class _State:
    """The graphics state that `q` saves. `fill` is None for a pattern."""

    ctm: Matrix = _IDENTITY
    fill: Color | None = _BLACK
    alpha: float = 1.0
    mode: int = 0
    size: float = 0.0
    leading: float = 0.0


@dataclass(slots=True)
class PageVisibility:
    """Follows the operations of a page through `before` and `after`, and finds invisible text.

    `resources` are those of the page, `page` is its visible box.
    """

    page: Box
    resources: Mapping[str, Any]
    _state: _State = field(default_factory=_State)
    _saved: list[_State] = field(default_factory=list)
    _forms: list[tuple[_State, list[_State], Mapping[str, Any]]] = field(default_factory=list)
    _line: Matrix = _IDENTITY
    _path: list[tuple[float, float]] = field(default_factory=list)
    _painted: list[tuple[Box, Color | None]] = field(default_factory=list)
    _images: list[Box] = field(default_factory=list)
    _visibility: list[bool | tuple[float, float]] = field(default_factory=list)

    def hidden(self) -> frozenset[int]:
        """Return the numbers (from 0) of the text-showing operations whose text cannot be seen."""
        is_scan = sum(map(self._share_of_page, self._images)) >= _SCAN_SHARE
        return frozenset(
            number
            for number, visibility in enumerate(self._visibility)
            if visibility is False
            or (isinstance(visibility, tuple) and not (is_scan and self._is_over_image(visibility)))
        )

    def before(self, operator: bytes, operands: Sequence[Any], *_: object) -> None:
        """Process an operation; invalid operands of a damaged file are ignored."""
        name = operator.decode("latin-1")
        try:
            self._follow(name, operands)
        except (TypeError, ValueError, IndexError, KeyError, AttributeError, OverflowError, ZeroDivisionError):
            if name in _SHOWING:
                self._visibility.append(True)

    def after(self, operator: bytes, operands: Sequence[Any], *_: object) -> None:
        """Process the end of a form, which has operations of its own."""
        if operator == b"Do" and self._forms:
            self._state, self._saved, self.resources = self._forms.pop()

    def _follow(self, name: str, operands: Sequence[Any]) -> None:
        state = self._state
        if name in _SHOWING:
            if name in ("'", '"'):
                self._next_line(0.0, -state.leading)
            self._visibility.append(self._visibility_now())
        elif name == "q":
            self._saved.append(state)
        elif name == "Q":
            self._state = self._saved.pop() if self._saved else state
        elif name == "cm":
            self._state = replace(state, ctm=_multiply(_matrix(operands), state.ctm))
        elif name == "Do":
            self._draw(str(operands[0]))
        elif name == "INLINE IMAGE":
            self._paint(_box_of(state.ctm, [(0, 0), (1, 0), (0, 1), (1, 1)]), None)
        elif name == "gs":
            self._state = replace(state, alpha=float(self._resource("/ExtGState", operands[0]).get("/ca", state.alpha)))
        elif name[0] == "T" or name == "BT":
            self._follow_text(name, operands)
        else:
            self._follow_paint(name, operands)

    def _follow_text(self, name: str, operands: Sequence[Any]) -> None:
        if name == "BT":
            self._line = _IDENTITY
        elif name == "Tr":
            self._state = replace(self._state, mode=int(operands[0]))
        elif name == "Tf":
            self._state = replace(self._state, size=float(operands[1]))
        elif name == "TL":
            self._state = replace(self._state, leading=float(operands[0]))
        elif name == "Tm":
            self._line = _matrix(operands)
        elif name in ("Td", "TD"):
            if name == "TD":
                self._state = replace(self._state, leading=-float(operands[1]))
            self._next_line(float(operands[0]), float(operands[1]))
        elif name == "T*":
            self._next_line(0.0, -self._state.leading)

    def _follow_paint(self, name: str, operands: Sequence[Any]) -> None:
        if name in ("g", "rg", "k", "sc", "scn"):
            self._state = replace(self._state, fill=_color(operands))
        elif name == "cs":
            self._state = replace(self._state, fill=_BLACK)
        elif name == "re":
            x, y, width, height = map(float, operands)
            self._path += [(x, y), (x + width, y), (x, y + height), (x + width, y + height)]
        elif name in ("m", "l", "c", "v", "y"):
            self._path.append((float(operands[-2]), float(operands[-1])))
        elif name in _FILLING:
            if self._path and self._state.alpha > _MIN_ALPHA:
                self._paint(_box_of(self._state.ctm, self._path), self._state.fill)
            self._path.clear()
        elif name in ("n", "S", "s"):
            self._path.clear()
        elif name == "sh":
            self._paint(self.page, None)

    def _draw(self, name: str) -> None:
        """Enter a form, or record an image."""
        drawn = self._resource("/XObject", name)
        if drawn.get("/Subtype") == "/Form":
            self._forms.append((self._state, self._saved, self.resources))
            matrix = _matrix(drawn.get("/Matrix", _IDENTITY))
            self._state, self._saved = replace(self._state, ctm=_multiply(matrix, self._state.ctm)), []
            self.resources = drawn.get("/Resources", self.resources).get_object()
            return
        # `after` pops this frame.
        self._forms.append((self._state, self._saved, self.resources))
        box = _box_of(self._state.ctm, [(0, 0), (1, 0), (0, 1), (1, 1)])
        self._images.append(box)
        self._paint(box, None)

    def _resource(self, kind: str, name: Any) -> Any:
        return self.resources[kind].get_object()[str(name)].get_object()

    def _next_line(self, x: float, y: float) -> None:
        self._line = _multiply((1.0, 0.0, 0.0, 1.0, x, y), self._line)

    def _paint(self, box: Box, color: Color | None) -> None:
        self._painted.append((box, color))
        del self._painted[:-_MAX_BOXES]

    def _visibility_now(self) -> bool | tuple[float, float]:
        """Return whether text shown now is visible; for invisible text, which may belong to a scan, its position."""
        state = self._state
        matrix = _multiply(self._line, state.ctm)
        size = abs(state.size) * math.sqrt(abs(matrix[0] * matrix[3] - matrix[1] * matrix[2]))
        x, y = matrix[4], matrix[5]
        left, bottom, right, top = self.page
        if size < _MIN_FONT_SIZE or state.alpha <= _MIN_ALPHA or x > right or y > top or y + size < bottom:
            return False
        if x < left - right:  # the line begins more than a page's width before the page
            return False
        if state.mode in _INVISIBLE_MODES:
            return (x, y)
        return state.mode not in (0, 4) or state.fill is None or not self._is_on_same_color(x, y, size, state.fill)

    def _is_on_same_color(self, x: float, y: float, size: float, fill: Color) -> bool:
        """Return True if the background below the text has the text's color; the page is white."""
        for (left, bottom, right, top), color in reversed(self._painted):
            # Thinner boxes are lines and frames.
            if (
                min(right - left, top - bottom) >= size
                and left <= x + 0.1
                and right >= x
                and bottom <= y + size / 3 <= top
            ):
                return color is not None and _look_same(color, fill)
        return _look_same(fill, _WHITE)

    def _share_of_page(self, image: Box) -> float:
        left, bottom, right, top = self.page
        width = max(0.0, min(image[2], right) - max(image[0], left))
        height = max(0.0, min(image[3], top) - max(image[1], bottom))
        return width * height / max((right - left) * (top - bottom), 1e-9)

    def _is_over_image(self, at: tuple[float, float]) -> bool:
        return any(box[0] - 1 <= at[0] <= box[2] + 1 and box[1] - 1 <= at[1] <= box[3] + 1 for box in self._images)


def _look_same(one: Color, other: Color) -> bool:
    return all(abs(a - b) <= _SAME_COLOR for a, b in zip(one, other, strict=True))


def _color(operands: Sequence[Any]) -> Color | None:
    """Return the color of these numbers in gray, RGB or CMYK; None for patterns and other color spaces."""
    try:
        numbers = [float(value) for value in operands]
    except (TypeError, ValueError):
        return None
    if len(numbers) == _GRAY:
        return (numbers[0],) * 3
    if len(numbers) == _RGB:
        return (numbers[0], numbers[1], numbers[2])
    if len(numbers) == _CMYK:
        cyan, magenta, yellow, key = numbers
        return ((1 - cyan) * (1 - key), (1 - magenta) * (1 - key), (1 - yellow) * (1 - key))
    return None


def _matrix(numbers: Sequence[Any]) -> Matrix:
    a, b, c, d, e, f = (float(value) for value in numbers)
    return (a, b, c, d, e, f)


def _multiply(one: Matrix, other: Matrix) -> Matrix:
    """Return the matrix that applies `one`, then `other`."""
    a, b, c, d, e, f = one
    m, n, o, p, q, r = other
    return (a * m + b * o, a * n + b * p, c * m + d * o, c * n + d * p, e * m + f * o + q, e * n + f * p + r)


def _box_of(matrix: Matrix, points: Sequence[tuple[float, float]]) -> Box:
    a, b, c, d, e, f = matrix
    xs = [a * x + c * y + e for x, y in points]
    ys = [b * x + d * y + f for x, y in points]
    return (min(xs), min(ys), max(xs), max(ys))
