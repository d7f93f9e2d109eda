"""The figures of memory as a page."""

from __future__ import annotations

from django.conf import settings
from django.http import HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_GET

from memory import services, spaces
from memory.requests import PageRequest
from memory.services.figures import Figures


@require_GET
def stats(request: PageRequest) -> HttpResponse:
    """What this person may read, counted; an administrator sees the whole as well."""
    mine = services.figures(spaces.readable_by(request.user.pk))
    groups = [{"title": "What you may read", "lines": _lines(mine)}, {"title": "By source", "lines": _sources(mine)}]
    if request.user.is_administrator:
        groups.append({"title": "The whole store", "lines": _lines(services.figures(None))})
    groups.append({"title": "How it works here", "lines": _setup(mine)})
    return render(request, "memory/stats.html", {"section": "stats", "groups": groups})


def _line(label: str, figure: object, meaning: str = "") -> dict[str, str]:
    return {"label": label, "figure": f"{figure:,}" if isinstance(figure, int) else str(figure), "meaning": meaning}


def _lines(figures: Figures) -> list[dict[str, str]]:
    return [
        _line("Exchanges", figures.exchanges, "remembered and not forgotten"),
        _line("Still to be embedded", figures.pending, "found as soon as the worker has been there"),
        _line("Failed", figures.failed, "an administrator can try them again"),
        _line("Being erased", figures.to_erase, "already out of every search and answer"),
    ]


def _sources(figures: Figures) -> list[dict[str, str]]:
    return [_line(source, count) for source, count in figures.by_source.items()]


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
    return lines
