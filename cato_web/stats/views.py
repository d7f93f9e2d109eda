"""The figures of memory and of answers as a page: a member's are of what they may read, an administrator may see the whole."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.conf import settings
from django.http import HttpResponse
from django.shortcuts import render
from django.template.defaultfilters import filesizeformat
from django.urls import reverse
from django.utils import timezone
from django.utils.formats import localize
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET

from cato_web.stats.charts import Chart, area_chart, bar_chart
from cato_web.stats.evaluations import evaluations
from chat import stats as of_answers
from memory import api as memory
from memory.api import (
    SOURCES,
    DocumentVersion,
    Job,
    MemoryCounts,
    Operation,
    PageRequest,
    VectorStoreDisabledError,
    VectorStoreUnavailableError,
    day_of_this_year,
    disk_use,
    format_date,
    format_list,
    format_number,
    format_percent,
    recall_rate,
    strategy_names,
)

_MONTH = timedelta(days=30)
_WEEKS, _FEWEST_WEEKS, _DAYS = 26, 8, 14


@dataclass(frozen=True, slots=True)
class Line:
    """A figure with its label, what it means, and where to do something about it."""

    label: str
    figure: str
    meaning: str = ""
    url: str = ""


@dataclass(frozen=True, slots=True)
class Group:
    title: str
    lines: Sequence[Line]


@require_GET
def stats(request: PageRequest) -> HttpResponse:
    """Tiles, plots with their figures beside, and facts on dotted lines."""
    is_everything = request.user.is_administrator and request.GET.get("of") == "everything"
    shown = None if is_everything else memory.readable_space_ids(request.user.pk)
    now = memory.memory_counts(shown)
    since = timezone.now() - _MONTH
    groups = [Group(_("By source"), [*_sources(now), *_forgotten(shown, since)])] if now.by_source else []
    groups += [Group(_("By person"), _people(shown))] if now.exchanges else []
    groups.append(Group(_("Configuration"), _setup(now)))
    if is_everything:
        groups += [Group(_("Queue"), _waiting(now)), Group(_("On this machine"), [*_disk(), _drift()])]
    context = {
        "section": "stats",
        "is_everything": is_everything,
        "tiles": [*_tiles(request, now, shown, since)],
        "growth": _growth(shown),
        "shares": _shares(shown),
        "recalls": _recalls(shown),
        "groups": groups,
        "tokens": of_answers.tokens(shown, since=since),
        "evaluations": evaluations(),
    }
    return render(request, "chat/stats.html", context)


def _tiles(request: PageRequest, now: MemoryCounts, shown: memory.SpaceIds | None, since: datetime) -> list[Line]:
    before, after = memory.growth_counts(shown, [since, timezone.now()])
    lately = _("%(count)s of them in the last 30 days")
    tiles = [Line(_("Remembered"), format_number(now.exchanges), lately % {"count": format_number(after - before)})]
    shares = recall_rate(shown)
    if shares.answers:
        without = shares.answers - shares.with_context
        meaning = _("of the last %(answers)s; nothing was recalled for %(without)s")
        facts = {"answers": format_number(shares.answers), "without": format_number(without)}
        tiles.append(
            Line(_("Answers with context"), format_percent(shares.with_context / shares.answers), meaning % facts)
        )
    latency = of_answers.latency(shown)
    if latency:
        meaning = _("median; p90 %(tenth)s ms, p99 %(hundredth)s ms")
        facts = {"tenth": format_number(latency.worst_tenth), "hundredth": format_number(latency.worst_hundredth)}
        tiles.append(
            Line(_("Recall latency"), _("%(count)s ms") % {"count": format_number(latency.median)}, meaning % facts)
        )
    url = reverse("admin_jobs") if request.user.is_administrator and now.failed else ""
    failed = _("%(count)s failed") % {"count": format_number(now.failed)}
    meaning = failed if now.failed else _("searchable once processed")
    tiles.append(Line(_("Still to be embedded"), format_number(now.pending), meaning, url))
    broken = of_answers.failures(shown, since=since)
    tiles.append(Line(_("Failed answers"), format_number(broken), _("in the last 30 days")))
    return tiles


def _growth(shown: memory.SpaceIds | None) -> Chart | None:
    first = memory.first_exchange_at(shown)
    if first is None:
        return None
    weeks = min(_WEEKS, max(_FEWEST_WEEKS, (timezone.now() - first) // memory.WEEK + 1))
    at = memory.period_ends(weeks, memory.WEEK)
    counts = memory.growth_counts(shown, at)
    columns = [_day(end) for end in at]
    title = _("Remembered by week: from %(first)s on %(day)s to %(last)s now.")
    title %= {"first": format_number(counts[0]), "day": columns[0], "last": format_number(counts[-1])}
    return area_chart(counts, columns=columns, title=title)


def _shares(shown: memory.SpaceIds | None) -> Chart | None:
    spans = memory.recall_rates(shown, memory.period_ends(12, memory.WEEK))
    if not any(span.answers for span in spans):
        return None
    texts = [_share_of(span) for span in spans]
    columns = [_day(span.end) for span in spans]
    title = _("Share of answers for which something was recalled, by week. The last: %(last)s.") % {"last": texts[-1]}
    return bar_chart([span.share for span in spans], columns=columns, title=title, top=1.0, texts=texts)


def _share_of(span: memory.TimeRange) -> str:
    if span.share is None:
        return _("no answers")
    return _("%(share)s of %(count)s") % {"share": format_percent(span.share), "count": format_number(span.answers)}


def _recalls(shown: memory.SpaceIds | None) -> Chart | None:
    at = memory.period_ends(_DAYS, memory.DAY)
    counts = memory.recall_counts(shown, at)
    if not any(counts):
        return None
    columns = [_day(end) for end in at[1:]]
    texts = [format_number(count) for count in counts]
    title = _("How often something was recalled, by day. The last: %(last)s.") % {"last": texts[-1]}
    return bar_chart(counts, columns=columns, title=title, top=max(counts), texts=texts)


def _sources(now: MemoryCounts) -> list[Line]:
    return [Line(str(SOURCES[source]), format_number(count)) for source, count in now.by_source.items()]


def _forgotten(shown: memory.SpaceIds | None, since: datetime) -> list[Line]:
    count = memory.count_forgotten_since(shown, since)
    return [Line(_("Forgotten in the last 30 days"), format_number(count))] if count else []


def _people(shown: memory.SpaceIds | None) -> list[Line]:
    return [Line(name, format_number(count)) for name, count in memory.count_by_owner(shown)]


def _waiting(now: MemoryCounts) -> list[Line]:
    documents = DocumentVersion.objects.filter(stage__in=DocumentVersion.UNDER_WAY).count()
    operations = Operation.objects.filter(state=Job.State.PENDING).count()
    return [
        Line(_("Exchanges to be embedded"), format_number(now.pending)),
        Line(_("Exchanges being erased"), format_number(now.to_erase)),
        Line(_("Documents under way"), format_number(documents)),
        Line(_("Operations under way"), format_number(operations)),
        Line(_("Failed for good"), format_number(now.failed)),
    ]


def _disk() -> list[Line]:
    used = disk_use()
    index = _("on another machine") if used.index is None else filesizeformat(used.index)
    return [
        Line(_("Database"), filesizeformat(used.database)),
        Line(_("Index"), index),
        Line(_("Originals and pictures"), filesizeformat(used.originals)),
    ]


def _drift() -> Line:
    try:
        drift = memory.measure_drift()
    except (VectorStoreUnavailableError, VectorStoreDisabledError):
        return Line(_("Drift"), _("not known, the index does not answer"))
    lacking, surplus = drift.rows_without_vector, drift.vectors_without_row
    if not lacking + surplus:
        return Line(_("Drift"), _("none"))
    drifted = _("%(lacking)s not indexed, %(surplus)s orphaned vectors")
    return Line(_("Drift"), drifted % {"lacking": format_number(lacking), "surplus": format_number(surplus)})


def _setup(now: MemoryCounts) -> list[Line]:
    conf = settings.CATO.vector_store
    lines = [
        Line(_("Embedding model"), now.model),
        Line(_("Vector dimension"), str(now.dimension or _("not known yet"))),
        Line(_("Retrieval strategy"), now.strategy),
        Line(_("Strategies available"), format_list(strategy_names())),
    ]
    if conf.dynamic_threshold or now.strategy == "dynamic":
        rise = _("%(least)s to %(most)s, full at %(count)s messages") % {
            "least": localize(conf.dynamic_threshold_min),
            "most": localize(conf.dynamic_threshold_max),
            "count": conf.dynamic_threshold_full_at,
        }
        lines.append(Line(_("Rising threshold"), rise))
    else:
        lines.append(Line(_("Relevance threshold"), _gate()))
    return lines


def _gate() -> str:
    """The level in force and where it comes from."""
    level = memory.current_threshold()
    if level.at is not None:
        fitted = _("%(level)s (calibrated on %(count)s exchanges on %(day)s)")
        return fitted % {
            "level": format_number(level.level, 2),
            "count": format_number(level.sample),
            "day": format_date(level.at),
        }
    origin = _("%(level)s (configured)") if level.origin == "set" else _("%(level)s (default)")
    return origin % {"level": format_number(level.level, 2)}


def _day(moment: datetime) -> str:
    return day_of_this_year(moment)
