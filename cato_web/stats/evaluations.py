"""Runs of `memory_eval` for the stats page: a plot, the newest run, and all values."""

from __future__ import annotations

from dataclasses import dataclass

from django.db.models import Max
from django.utils.translation import gettext as _

from cato_web.stats.plots import Plot, Series, line_plot
from memory.api import Evaluation, day_of_this_year, format_number, format_percent

MAX_RUNS = 12


@dataclass(frozen=True, slots=True)
class NewestRow:
    """Results of a strategy in the newest run."""

    strategy: str
    found: str
    empty: str
    median: str


@dataclass(frozen=True, slots=True)
class RunRow:
    """The recall of each strategy in one run."""

    label: str
    shares: list[str]


@dataclass(frozen=True, slots=True)
class Evaluations:
    """The runs as the template shows them."""

    about: str
    plot: Plot
    newest: list[NewestRow]
    names: list[str]
    runs: list[RunRow]


def evaluations() -> Evaluations | None:
    """Return the last runs that are comparable with the newest (same rephrasing model and k), or None."""
    latest = Evaluation.objects.order_by("-at", "-pk").first()
    if latest is None:
        return None
    comparable = Evaluation.objects.filter(k=latest.k, rephrased_by=latest.rephrased_by)
    runs = comparable.values("run").annotate(last=Max("at")).order_by("-last")[:MAX_RUNS]
    ids = [row["run"] for row in runs][::-1]
    rows = list(comparable.filter(run__in=ids).order_by("pk"))
    names = list(dict.fromkeys(row.strategy for row in rows))
    recall = {(row.run, row.strategy): row.recall for row in rows}
    dates = {row.run: day_of_this_year(row.at) for row in rows}
    series = [Series(name, [recall.get((run, name)) for run in ids]) for name in names]
    return Evaluations(
        about=_("Stored exchanges, asked for by %(asked_by)s: the share found among the first %(count)s.")
        % {"asked_by": _(latest.rephrased_by), "count": latest.k},
        plot=line_plot(series, columns=[dates[run] for run in ids], title=_title(series, latest.k)),
        newest=[_newest_row(row) for row in rows if row.run == latest.run],
        names=names,
        runs=[RunRow(dates[run], [_format_share(recall.get((run, name))) for name in names]) for run in reversed(ids)],
    )


def _title(series: list[Series], k: int) -> str:
    """Return the plot's text alternative."""
    last = ", ".join(
        f"{line_series.name} {_format_share(line_series.values[-1])}"
        for line_series in series
        if line_series.values[-1] is not None
    )
    sentence = _("Share found among the first %(count)s, by run, for each strategy. Newest run: %(last)s.")
    return sentence % {"count": k, "last": last}


def _newest_row(row: Evaluation) -> NewestRow:
    return NewestRow(
        row.strategy, _format_share(row.recall), _format_share(row.empty), f"{format_number(row.median_ms)} ms"
    )


def _format_share(value: float | None) -> str:
    return "–" if value is None else format_percent(value, 1)
