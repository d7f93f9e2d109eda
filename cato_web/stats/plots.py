"""Line plots as coordinates, rendered as SVG by `charts/_lines.html`.

Lines differ by dashes, marks and a name at their end, so that colour is not needed to distinguish them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from memory.api import format_percent

WIDTH, HEIGHT = 420, 250
_LEFT, _RIGHT, _TOP, _BOTTOM = 40, 96, 12, 26
_LABEL_HEIGHT = 15
_MAX_LABEL_LENGTH = 13
_R = 3.5  # the radius of a mark

# SVG paths of marks around (0, 0): circle, square, triangle, diamond, cross.
_MARKS = (
    f"M{-_R} 0a{_R} {_R} 0 1 0 {2 * _R} 0a{_R} {_R} 0 1 0 {-2 * _R} 0z",
    f"M{-_R} {-_R}h{2 * _R}v{2 * _R}h{-2 * _R}z",
    f"M0 {-_R - 0.5}L{_R + 0.5} {_R}H{-_R - 0.5}z",
    f"M0 {-_R - 1}L{_R + 1} 0L0 {_R + 1}L{-_R - 1} 0z",
    f"M{-_R} {-_R}L{_R} {_R}M{-_R} {_R}L{_R} {-_R}",
)


@dataclass(frozen=True, slots=True)
class Series:
    """A name and its shares from 0 to 1, oldest first; None for missing values."""

    name: str
    values: Sequence[float | None]


@dataclass(frozen=True, slots=True)
class Point:
    """A position with a text."""

    x: float
    y: float
    text: str


@dataclass(frozen=True, slots=True)
class Line:
    """A series as drawn: `style` selects dashes and mark, `path` joins its points, `label` is at its end."""

    style: int
    path: str
    mark: str
    points: Sequence[Point]
    label: Point


@dataclass(frozen=True, slots=True)
class Plot:
    """Lines with the ticks of both axes, in a box of WIDTH by HEIGHT."""

    title: str
    lines: Sequence[Line]
    rows: Sequence[Point]
    columns: Sequence[Point]
    left: float = _LEFT
    right: float = WIDTH - _RIGHT
    width: int = WIDTH
    height: int = HEIGHT


def line_plot(series: Sequence[Series], *, columns: Sequence[str], title: str) -> Plot:
    """Plot shares over `columns` (labels, oldest first), from the multiple of 0.2 below the lowest share up to 1."""
    shares = [value for line_series in series for value in line_series.values if value is not None]
    floor = min(0.8, math.floor(5 * min(shares, default=0.0)) / 5)
    xs = _column_positions(len(columns))

    def y(share: float) -> float:
        return round(_TOP + (HEIGHT - _TOP - _BOTTOM) * (1 - share) / (1 - floor), 1)

    point_lists = [
        [
            Point(x, y(value), f"{line_series.name}, {column}: {format_percent(value, 1)}")
            for x, value, column in zip(xs, line_series.values, columns, strict=True)
            if value is not None
        ]
        for line_series in series
    ]
    labels = _separate_labels([points[-1].y if points else HEIGHT - _BOTTOM for points in point_lists])
    lines = [
        Line(
            style=number % len(_MARKS),
            path=" ".join(f"{p.x},{p.y}" for p in points),
            mark=_MARKS[number % len(_MARKS)],
            points=points,
            label=Point(WIDTH - _RIGHT + 18, label, _shorten(line_series.name)),
        )
        for number, (line_series, points, label) in enumerate(zip(series, point_lists, labels, strict=True))
        if points
    ]
    steps = [floor + (1 - floor) * step / 4 for step in range(5)]
    rows = [Point(_LEFT - 6, y(step), format_percent(step)) for step in steps]
    ends = sorted({0, len(columns) - 1}) if columns else []
    return Plot(title, lines, rows, [Point(xs[end], HEIGHT - 6, columns[end]) for end in ends])


def _column_positions(count: int) -> list[float]:
    """Return the x coordinates of `count` columns; a single one is centred."""
    plot_width = WIDTH - _LEFT - _RIGHT
    if count == 1:
        return [_LEFT + plot_width / 2]
    return [round(_LEFT + plot_width * number / (count - 1), 1) for number in range(count)]


def _separate_labels(positions: Sequence[float]) -> list[float]:
    """Return heights near `positions`, in the same order, at least a label's height apart and inside the box."""
    order = sorted(range(len(positions)), key=lambda number: positions[number])
    heights = [positions[number] for number in order]
    for upper, lower in pairwise(range(len(heights))):
        heights[lower] = max(heights[lower], heights[upper] + _LABEL_HEIGHT)
    limit = float(HEIGHT - _BOTTOM)
    for number in reversed(range(len(heights))):
        heights[number] = min(heights[number], limit)
        limit = heights[number] - _LABEL_HEIGHT
    return [height for _, height in sorted(zip(order, heights, strict=True))]


def _shorten(name: str) -> str:
    return name if len(name) <= _MAX_LABEL_LENGTH else f"{name[: _MAX_LABEL_LENGTH - 1]}…"
