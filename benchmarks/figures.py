"""Percentiles, and tables for terminal and Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence


def percentile(values: Sequence[float], share: float) -> float:
    """Return the value that a `share` (0 to 1) of all values does not exceed; 0 without values."""
    if not values:
        return 0.0
    return sorted(values)[min(int(share * len(values)), len(values) - 1)]


def table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Print rows as a Markdown table, numbers with suitable precision."""
    lines = [[*head], *([_cell(value) for value in row] for row in rows)]
    widths = [max(len(line[i]) for line in lines) for i in range(len(head))]
    lines.insert(1, ["-" * width for width in widths])
    for line in lines:
        print("| " + " | ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)) + " |", flush=True)


def format_counts(counts: Mapping[str, int]) -> str:
    """Return the names with their counts in one line, the most frequent first."""
    return ", ".join(f"{name} {count}" for name, count in sorted(counts.items(), key=lambda item: -item[1])) or "none"


def _cell(value: object) -> str:
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"
    return f"{value:,}" if isinstance(value, int) else str(value)
