"""Area and bar charts as coordinates, rendered as SVG by `charts/_area.html` and `charts/_bars.html`.

The shapes are stretched to the available space; labels are HTML next to them, so they are not.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from memory.api import format_number

WIDTH, HEIGHT = 600.0, 100.0
_GAP_RATIO = 0.3
_TICK_COUNT = 3


@dataclass(frozen=True, slots=True)
class Bar:
    """A bar with its value as text."""

    x: float
    y: float
    width: float
    height: float
    text: str


@dataclass(frozen=True, slots=True)
class Chart:
    """A shape over equal columns: `labels` are below it, `ticks` next to it from the maximum to 0, `rows` the values."""

    title: str
    area: str
    line: str
    bars: Sequence[Bar]
    labels: Sequence[str]
    ticks: Sequence[str]
    last: str
    rows: Sequence[tuple[str, str]]
    width: float = WIDTH
    height: float = HEIGHT


def area_chart(values: Sequence[int], *, columns: Sequence[str], title: str) -> Chart:
    """Return a line above an area, from 0 to a round number above the maximum; `columns` are labels, oldest first."""
    top = _round_up(max(values, default=0))
    step = WIDTH / max(1, len(values) - 1)
    points = [f"{round(step * number, 1)},{_y(value, top)}" for number, value in enumerate(values)]
    return Chart(
        title=title,
        area=" ".join([f"0,{HEIGHT}", *points, f"{WIDTH},{HEIGHT}"]) if points else "",
        line=" ".join(points),
        bars=(),
        labels=_axis_labels(columns),
        ticks=[format_number(round(top * step / _TICK_COUNT)) for step in range(_TICK_COUNT, -1, -1)],
        last=format_number(values[-1]) if values else "",
        rows=[(column, format_number(value)) for column, value in zip(columns, values, strict=True)],
    )


def bar_chart(
    values: Sequence[float | None], *, columns: Sequence[str], title: str, top: float, texts: Sequence[str]
) -> Chart:
    """Return a bar per value from 0 to `top`, none for None; `texts` are the values as text."""
    column_width = WIDTH / max(1, len(values))
    bars = [
        Bar(
            x=round(column_width * number + column_width * _GAP_RATIO / 2, 1),
            y=_y(value, top),
            width=round(column_width * (1 - _GAP_RATIO), 1),
            height=round(HEIGHT - _y(value, top), 1),
            text=f"{column}: {text}",
        )
        for number, (value, column, text) in enumerate(zip(values, columns, texts, strict=True))
        if value is not None
    ]
    rows = list(zip(columns, texts, strict=True))
    return Chart(title, "", "", bars, _axis_labels(columns), (), texts[-1] if texts else "", rows)


def _y(value: float, top: float) -> float:
    return round(HEIGHT * (1 - value / top), 1) if top else HEIGHT


def _round_up(value: int) -> int:
    """Return a number of at least `value` whose thirds have one or two significant digits."""
    if value <= _TICK_COUNT:
        return _TICK_COUNT
    unit = int(10 ** max(0, math.floor(math.log10(value / _TICK_COUNT))))
    return _TICK_COUNT * unit * math.ceil(value / (_TICK_COUNT * unit))


def _axis_labels(columns: Sequence[str]) -> list[str]:
    """Return the first, middle and last label."""
    if len(columns) < 3:
        return list(columns)
    return [columns[0], columns[len(columns) // 2], columns[-1]]
