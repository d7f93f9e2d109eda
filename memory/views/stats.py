"""The figures of memory as a page."""

from __future__ import annotations

from django.conf import settings
from django.http import HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_GET

from memory import services, spaces
from memory.errors import StoreDisabled, StoreDown
from memory.requests import PageRequest
from memory.services import calibration, reconciling
from memory.services.figures import Figures
from memory.services.recalls import Shares, context_shares
from memory.views.evaluations import evaluations


@require_GET
def stats(request: PageRequest) -> HttpResponse:
    """What this person may read, counted; an administrator sees the whole as well."""
    readable = spaces.readable_by(request.user.pk)
    mine = services.figures(readable)
    tiles = [*_lines(mine), *_context(context_shares(readable))]
    groups = [{"title": "What you may read", "lines": tiles}]
    if mine.by_source:
        groups.append({"title": "By source", "lines": _sources(mine)})
    if request.user.is_administrator:
        groups.append({"title": "The whole store", "lines": [*_lines(services.figures(None)), _drift()]})
    groups.append({"title": "How it works here", "lines": _setup(mine)})
    context = {"section": "stats", "groups": groups, "evaluations": evaluations()}
    return render(request, "memory/stats.html", context)


def _line(label: str, figure: object, meaning: str = "") -> dict[str, str]:
    return {"label": label, "figure": f"{figure:,}" if isinstance(figure, int) else str(figure), "meaning": meaning}


def _lines(figures: Figures) -> list[dict[str, str]]:
    return [
        _line("Exchanges", figures.exchanges, "remembered and not forgotten"),
        _line("Still to be embedded", figures.pending, "found as soon as the worker has been there"),
        _line("Failed", figures.failed, "an administrator can try them again"),
        _line("Being erased", figures.to_erase, "already out of every search and answer"),
    ]


def _drift() -> dict[str, str]:
    try:
        drift = reconciling.drift()
    except (StoreDown, StoreDisabled):
        return _line("Drift", "not known", "the index does not answer")
    lacking, surplus = drift.rows_without_vector, drift.vectors_without_row
    return _line("Drift", lacking + surplus, f"{lacking:,} without a vector, {surplus:,} vectors of nothing: reconcile")


def _sources(figures: Figures) -> list[dict[str, str]]:
    return [_line(source, count) for source, count in figures.by_source.items()]


def _context(shares: Shares) -> list[dict[str, str]]:
    if not shares.answers:
        return []
    without = shares.answers - shares.with_context
    meaning = f"of the last {shares.answers:,}; nothing was recalled for {without:,}"
    return [_line("Answers with context", f"{shares.with_context / shares.answers:.0%}", meaning)]


def _setup(figures: Figures) -> list[dict[str, str]]:
    conf = settings.CATO.vector_store
    lines = [
        _line("Embedding model", figures.model),
        _line("Vector dimension", str(figures.dimension or "not known yet")),
        _line("Strategy", figures.strategy),
    ]
    if conf.dynamic_threshold or figures.strategy == "dynamic":
        rise = f"{conf.dynamic_threshold_min:g} to {conf.dynamic_threshold_max:g}"
        lines.append(_line("Rising threshold", f"{rise}, full at {conf.dynamic_threshold_full_at} messages"))
    else:
        lines.append(_line("Gate", _gate()))
    return lines


def _gate() -> str:
    """The level in force and where it comes from."""
    level = calibration.in_force()
    if level.at is not None:
        return f"{level.level:.2f}, fitted on {level.sample:,} exchanges on {level.at:%-d %b %Y}"
    return f"{level.level:.2f}, {'as configured' if level.origin == 'set' else 'as shipped'}"
