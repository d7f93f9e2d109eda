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
from memory import api
from memory.errors import VectorStoreDisabledError, VectorStoreUnavailableError
from memory.index import reconcile
from memory.models import DocumentVersion, Job, Operation
from memory.requests import PageRequest
from memory.retrieval import names as strategy_names
from memory.retrieval.recall_log import context_shares
from memory.retrieval.tuning import calibration
from memory.spaces import access
from memory.stats import history
from memory.stats.counts import Figures
from memory.stats.disk import disk_use
from memory.utils.formatting import SOURCES, day, day_of_this_year, listed, number, percent

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
    shown = None if is_everything else access.readable_by(request.user.pk)
    now = api.figures(shown)
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


def _tiles(request: PageRequest, now: Figures, shown: access.SpaceIds | None, since: datetime) -> list[Line]:
    before, after = history.growth(shown, [since, timezone.now()])
    lately = _("%(count)s of them in the last 30 days")
    tiles = [Line(_("Remembered"), number(now.exchanges), lately % {"count": number(after - before)})]
    shares = context_shares(shown)
    if shares.answers:
        without = shares.answers - shares.with_context
        meaning = _("of the last %(answers)s; nothing was recalled for %(without)s")
        facts = {"answers": number(shares.answers), "without": number(without)}
        tiles.append(Line(_("Answers with context"), percent(shares.with_context / shares.answers), meaning % facts))
    latency = of_answers.latency(shown)
    if latency:
        meaning = _("median; p90 %(tenth)s ms, p99 %(hundredth)s ms")
        facts = {"tenth": number(latency.worst_tenth), "hundredth": number(latency.worst_hundredth)}
        tiles.append(Line(_("Recall latency"), _("%(count)s ms") % {"count": number(latency.median)}, meaning % facts))
    url = reverse("admin_jobs") if request.user.is_administrator and now.failed else ""
    failed = _("%(count)s failed") % {"count": number(now.failed)}
    meaning = failed if now.failed else _("searchable once processed")
    tiles.append(Line(_("Still to be embedded"), number(now.pending), meaning, url))
    broken = of_answers.failures(shown, since=since)
    tiles.append(Line(_("Failed answers"), number(broken), _("in the last 30 days")))
    return tiles


def _growth(shown: access.SpaceIds | None) -> Chart | None:
    first = history.began(shown)
    if first is None:
        return None
    weeks = min(_WEEKS, max(_FEWEST_WEEKS, (timezone.now() - first) // history.WEEK + 1))
    at = history.ends(weeks, history.WEEK)
    counts = history.growth(shown, at)
    columns = [_day(end) for end in at]
    title = _("Remembered by week: from %(first)s on %(day)s to %(last)s now.")
    title %= {"first": number(counts[0]), "day": columns[0], "last": number(counts[-1])}
    return area_chart(counts, columns=columns, title=title)


def _shares(shown: access.SpaceIds | None) -> Chart | None:
    spans = history.answers(shown, history.ends(12, history.WEEK))
    if not any(span.answers for span in spans):
        return None
    texts = [_share_of(span) for span in spans]
    columns = [_day(span.end) for span in spans]
    title = _("Share of answers for which something was recalled, by week. The last: %(last)s.") % {"last": texts[-1]}
    return bar_chart([span.share for span in spans], columns=columns, title=title, top=1.0, texts=texts)


def _share_of(span: history.Span) -> str:
    if span.share is None:
        return _("no answers")
    return _("%(share)s of %(count)s") % {"share": percent(span.share), "count": number(span.answers)}


def _recalls(shown: access.SpaceIds | None) -> Chart | None:
    at = history.ends(_DAYS, history.DAY)
    counts = history.recalls(shown, at)
    if not any(counts):
        return None
    columns = [_day(end) for end in at[1:]]
    texts = [number(count) for count in counts]
    title = _("How often something was recalled, by day. The last: %(last)s.") % {"last": texts[-1]}
    return bar_chart(counts, columns=columns, title=title, top=max(counts), texts=texts)


def _sources(now: Figures) -> list[Line]:
    return [Line(str(SOURCES[source]), number(count)) for source, count in now.by_source.items()]


def _forgotten(shown: access.SpaceIds | None, since: datetime) -> list[Line]:
    count = history.forgotten_since(shown, since)
    return [Line(_("Forgotten in the last 30 days"), number(count))] if count else []


def _people(shown: access.SpaceIds | None) -> list[Line]:
    return [Line(name, number(count)) for name, count in history.by_person(shown)]


def _waiting(now: Figures) -> list[Line]:
    documents = DocumentVersion.objects.filter(stage__in=DocumentVersion.UNDER_WAY).count()
    operations = Operation.objects.filter(state=Job.State.PENDING).count()
    return [
        Line(_("Exchanges to be embedded"), number(now.pending)),
        Line(_("Exchanges being erased"), number(now.to_erase)),
        Line(_("Documents under way"), number(documents)),
        Line(_("Operations under way"), number(operations)),
        Line(_("Failed for good"), number(now.failed)),
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
        drift = reconcile.drift()
    except (VectorStoreUnavailableError, VectorStoreDisabledError):
        return Line(_("Drift"), _("not known, the index does not answer"))
    lacking, surplus = drift.rows_without_vector, drift.vectors_without_row
    if not lacking + surplus:
        return Line(_("Drift"), _("none"))
    drifted = _("%(lacking)s not indexed, %(surplus)s orphaned vectors")
    return Line(_("Drift"), drifted % {"lacking": number(lacking), "surplus": number(surplus)})


def _setup(now: Figures) -> list[Line]:
    conf = settings.CATO.vector_store
    lines = [
        Line(_("Embedding model"), now.model),
        Line(_("Vector dimension"), str(now.dimension or _("not known yet"))),
        Line(_("Retrieval strategy"), now.strategy),
        Line(_("Strategies available"), listed(strategy_names())),
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
    level = calibration.in_force()
    if level.at is not None:
        fitted = _("%(level)s (calibrated on %(count)s exchanges on %(day)s)")
        return fitted % {"level": number(level.level, 2), "count": number(level.sample), "day": day(level.at)}
    origin = _("%(level)s (configured)") if level.origin == "set" else _("%(level)s (default)")
    return origin % {"level": number(level.level, 2)}


def _day(moment: datetime) -> str:
    return day_of_this_year(moment)
