"""The statistics page: of the spaces that a user can read or, for administrators, of all spaces."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import urlencode

from django.conf import settings
from django.http import HttpResponse
from django.shortcuts import render
from django.template.defaultfilters import filesizeformat
from django.urls import reverse
from django.utils.formats import localize
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.http import require_GET

from cato_web.stats.charts import Chart, area_chart, bar_chart
from cato_web.stats.evaluations import evaluations
from cato_web.stats.figures import Figures, figures
from memory import api as memory
from memory.api import (
    DocumentVersion,
    Exchange,
    Job,
    MemoryCounts,
    Operation,
    PageRequest,
    day_of_this_year,
    disk_use,
    format_date,
    format_list,
    format_number,
    format_percent,
    strategy_names,
)


@dataclass(frozen=True, slots=True)
class Line:
    """A value with its label, its meaning, and a link to act on it."""

    label: str
    figure: str
    meaning: str = ""
    url: str = ""


@dataclass(frozen=True, slots=True)
class DateChoice:
    """A link to the growth by one of the dates of an exchange."""

    label: str
    url: str
    is_current: bool


@dataclass(frozen=True, slots=True)
class Group:
    """A titled list of values."""

    title: str
    lines: Sequence[Line]


@require_GET
def stats(request: PageRequest) -> HttpResponse:
    """Render tiles, plots and tables."""
    is_everything = request.user.is_administrator and request.GET.get("of") == "everything"
    spaces = None if is_everything else memory.readable_space_ids(request.user.pk)
    by: memory.DateField = "created_at" if request.GET.get("by") == "stored" else "timestamp"
    counted, is_cached = figures(spaces, by)
    counts = counted.counts
    groups = [Group(_("By source"), [*_source_lines(counts), *_forgotten_lines(counted)])] if counts.by_source else []
    groups += [Group(_("By person"), _owner_lines(counted))] if counts.exchanges else []
    groups.append(Group(_("Configuration"), _configuration_lines(counts)))
    if is_everything:
        groups += [
            Group(_("Queue"), _queue_lines(counts)),
            Group(_("On this machine"), [*_disk_lines(), _drift_line(counted.drift)]),
        ]
    context = {
        "section": "stats",
        "is_everything": is_everything,
        "counted_at": counted.counted_at if is_cached else None,
        "tiles": [*_tiles(request, counted)],
        "growth": _growth(counted, by),
        "growth_dates": _growth_dates(by, is_everything=is_everything),
        "imported_note": _imported_note(counts, by),
        "shares": _shares(counted),
        "recalls": _recalls(counted),
        "groups": groups,
        "tokens": counted.tokens,
        "evaluations": evaluations(),
    }
    return render(request, "chat/stats.html", context)


def _tiles(request: PageRequest, counted: Figures) -> list[Line]:
    counts, rate, latency = counted.counts, counted.recall_rate, counted.recall_latency
    meaning = _("%(count)s of them stored in the last 30 days") % {"count": format_number(counted.recently_stored)}
    tiles = [Line(_("Remembered"), format_number(counts.exchanges), meaning)]
    if rate.answers:
        without = rate.answers - rate.with_context
        meaning = _("of the last %(answers)s; nothing was recalled for %(without)s")
        facts = {"answers": format_number(rate.answers), "without": format_number(without)}
        tiles.append(Line(_("Answers with context"), format_percent(rate.with_context / rate.answers), meaning % facts))
    if latency:
        meaning = _("median; p90 %(tenth)s ms, p99 %(hundredth)s ms")
        facts = {"tenth": format_number(latency.p90), "hundredth": format_number(latency.p99)}
        tiles.append(
            Line(_("Recall latency"), _("%(count)s ms") % {"count": format_number(latency.median)}, meaning % facts)
        )
    url = reverse("admin_jobs") if request.user.is_administrator and counts.failed else ""
    failed = _("%(count)s failed") % {"count": format_number(counts.failed)}
    meaning = failed if counts.failed else _("searchable once processed")
    tiles.append(Line(_("Still to be embedded"), format_number(counts.pending), meaning, url))
    meaning = _("recall timed out; in the last 30 days")
    return [
        *tiles,
        Line(_("Failed answers"), format_number(counted.recently_failed), _("in the last 30 days")),
        Line(_("Answers without recall"), format_number(counted.recently_skipped), meaning),
    ]


def _growth_dates(by: memory.DateField, *, is_everything: bool) -> list[DateChoice]:
    scope = {"of": "everything"} if is_everything else {}
    choices: list[tuple[memory.DateField, str, dict[str, str]]] = [
        ("timestamp", _("By date of the message"), {}),
        ("created_at", _("By date of storing"), {"by": "stored"}),
    ]
    return [
        DateChoice(label, f"{reverse('stats')}?{urlencode(scope | query)}#growth-head", field == by)
        for field, label, query in choices
    ]


def _imported_note(counts: MemoryCounts, by: memory.DateField) -> str:
    """Return where the chart counts imported exchanges, or ""."""
    count = counts.by_source.get(Exchange.Source.IMPORT, 0)
    if not count:
        return ""
    if by == "timestamp":
        text = ngettext(
            "%(count)s imported exchange is counted at the date of its message, not of the import.",
            "%(count)s imported exchanges are counted at the dates of their messages, not of the import.",
            count,
        )
    else:
        text = ngettext(
            "%(count)s imported exchange is counted at the date of the import, not of its message.",
            "%(count)s imported exchanges are counted at the date of the import, not of their messages.",
            count,
        )
    return text % {"count": format_number(count)}


def _growth(counted: Figures, by: memory.DateField) -> Chart | None:
    if not counted.growth:
        return None
    columns = [day_of_this_year(end) for end, _count in counted.growth]
    counts = [count for _end, count in counted.growth]
    titles = {
        "timestamp": _("Remembered by week of the message: from %(first)s on %(day)s to %(last)s now."),
        "created_at": _("Remembered by week of storing: from %(first)s on %(day)s to %(last)s now."),
    }
    title = titles[by]
    title %= {"first": format_number(counts[0]), "day": columns[0], "last": format_number(counts[-1])}
    return area_chart(counts, columns=columns, title=title)


def _shares(counted: Figures) -> Chart | None:
    spans = counted.recall_rates
    if not any(span.answers for span in spans):
        return None
    texts = [_share_of(span) for span in spans]
    columns = [day_of_this_year(span.end) for span in spans]
    title = _("Share of answers for which something was recalled, by week. The last: %(last)s.") % {"last": texts[-1]}
    return bar_chart([span.share for span in spans], columns=columns, title=title, top=1.0, texts=texts)


def _share_of(span: memory.TimeRange) -> str:
    if span.share is None:
        return _("no answers")
    return _("%(share)s of %(count)s") % {"share": format_percent(span.share), "count": format_number(span.answers)}


def _recalls(counted: Figures) -> Chart | None:
    counts = [count for _end, count in counted.recalls]
    if not any(counts):
        return None
    columns = [day_of_this_year(end) for end, _count in counted.recalls]
    texts = [format_number(count) for count in counts]
    title = _("How often something was recalled, by day. The last: %(last)s.") % {"last": texts[-1]}
    return bar_chart(counts, columns=columns, title=title, top=max(counts), texts=texts)


def _source_lines(counts: MemoryCounts) -> list[Line]:
    return [Line(memory.source_label(source), format_number(count)) for source, count in counts.by_source.items()]


def _forgotten_lines(counted: Figures) -> list[Line]:
    count = counted.recently_forgotten
    return [Line(_("Forgotten in the last 30 days"), format_number(count))] if count else []


def _owner_lines(counted: Figures) -> list[Line]:
    return [Line(name, format_number(count)) for name, count in counted.owners]


def _queue_lines(counts: MemoryCounts) -> list[Line]:
    documents = DocumentVersion.objects.filter(stage__in=DocumentVersion.UNDER_WAY).count()
    operations = Operation.objects.filter(state=Job.State.PENDING).count()
    return [
        Line(_("Exchanges to be embedded"), format_number(counts.pending)),
        Line(_("Exchanges being erased"), format_number(counts.to_erase)),
        Line(_("Documents in progress"), format_number(documents)),
        Line(_("Maintenance tasks in progress"), format_number(operations)),
        Line(_("Failed permanently"), format_number(counts.failed)),
    ]


def _disk_lines() -> list[Line]:
    used = disk_use()
    index = _("on another machine") if used.index is None else filesizeformat(used.index)
    return [
        Line(_("Database"), filesizeformat(used.database)),
        Line(_("Index"), index),
        Line(_("Originals and pictures"), filesizeformat(used.originals)),
    ]


def _drift_line(drift: memory.Drift | None) -> Line:
    if drift is None:
        return Line(_("Drift"), _("not known, the index does not answer"))
    lacking, surplus = drift.rows_without_vector, drift.vectors_without_row
    if not lacking + surplus:
        return Line(_("Drift"), _("none"))
    text = _("%(lacking)s not indexed, %(surplus)s orphaned vectors")
    return Line(_("Drift"), text % {"lacking": format_number(lacking), "surplus": format_number(surplus)})


def _configuration_lines(counts: MemoryCounts) -> list[Line]:
    conf = settings.CATO.vector_store
    lines = [
        Line(_("Embedding model"), counts.model),
        Line(_("Vector dimension"), str(counts.dimension or _("not known yet"))),
        Line(_("Retrieval strategy"), counts.strategy),
        Line(_("Strategies available"), format_list(strategy_names())),
    ]
    if conf.dynamic_threshold or counts.strategy == "dynamic":
        text = _("%(least)s to %(most)s, full at %(count)s messages") % {
            "least": localize(conf.dynamic_threshold_min),
            "most": localize(conf.dynamic_threshold_max),
            "count": conf.dynamic_threshold_full_at,
        }
        lines.append(Line(_("Rising threshold"), text))
    else:
        lines.append(Line(_("Relevance threshold"), _threshold_text()))
    return lines


def _threshold_text() -> str:
    """Return the current threshold and its origin."""
    level = memory.current_threshold()
    if level.at is not None:
        text = _("%(level)s (calibrated on %(count)s exchanges on %(day)s)")
        return text % {
            "level": format_number(level.level, 2),
            "count": format_number(level.sample),
            "day": format_date(level.at),
        }
    origin = _("%(level)s (configured)") if level.origin == "set" else _("%(level)s (default)")
    return origin % {"level": format_number(level.level, 2)}
