"""Conversations as the pages show them: plain rows, with words chosen and permissions already asked."""

from __future__ import annotations

import uuid
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from django.conf import settings
from django.contrib.auth import get_user_model
from django.db.models import Q, prefetch_related_objects
from django.urls import reverse
from django.utils import timezone
from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop, ngettext

from chat.answers.failures import cut_off_note
from chat.models import Thread, Turn
from chat.rendering.blocks import GrowingAnswer, render_blocks
from chat.rendering.citations import Citations
from chat.rows.recall import RecallItemRow, places_of, recalled_row
from memory import api as memory
from memory.api import Exchange, RecalledItem, Space, day_of_this_year, format_date, format_number

THINKING = gettext_noop("Thinking…")
_RECALL_NOTES = {
    "slow": gettext_noop("Recall timed out; answered without memory"),
    "failed": gettext_noop("Recall failed; answered without memory"),
    "words": gettext_noop("Search index unavailable; recalled by keyword only"),
}
_MEMORY_WORDS = {
    "remembering": gettext_noop("Remembering…"),
    "remembered": gettext_noop("Remembered"),
    "waiting": gettext_noop("Waiting for the search index"),
    "failed": gettext_noop("Could not save to memory."),
    "forgotten": gettext_noop("Forgotten"),
    "off": gettext_noop("Not remembered"),
}


@dataclass(frozen=True, slots=True)
class RecallSummaryRow:
    count: int
    span_text: str
    note: str
    items: Sequence[RecallItemRow]


@dataclass(frozen=True, slots=True)
class BranchRow:
    """Which of several messages or answers in this place is shown, and the way to the others."""

    number: int
    of: int
    before_url: str
    after_url: str


@dataclass(frozen=True, slots=True)
class ImageRow:
    name: str
    url: str


@dataclass(frozen=True, slots=True)
class TurnRow:
    id: uuid.UUID
    author_id: uuid.UUID
    author_name: str
    said_at: datetime
    message: str
    images: Sequence[ImageRow]
    images_note: str
    reasoning: str
    blocks_html: SafeString
    segments_html: SafeString
    open_html: SafeString
    revision: int
    state: str
    is_running: bool
    phase_text: str
    note: str
    can_retry: bool
    can_resume: bool
    retry_url: str
    resume_url: str
    edit_url: str
    again_url: str
    fork_url: str
    withdraw_url: str
    branch: BranchRow | None
    stop_url: str
    memory_state: str
    memory_text: str
    memory_retry_url: str
    forget_url: str
    forgotten_note: str
    forgotten_at: datetime | None
    recalled: RecallSummaryRow | None


@dataclass(frozen=True, slots=True)
class ThreadRow:
    id: uuid.UUID | None
    title: str
    space_name: str
    space_kind: str
    space_url: str
    url: str
    say_url: str
    is_new: bool
    is_remembered: bool
    remember_url: str
    remember_label: str
    audience_text: str
    model_name: str
    is_dummy: bool
    is_memory_off: bool
    socket_url: str
    is_own: bool
    is_pinned: bool
    is_archived: bool


def turn_rows(thread: Thread, turns: Iterable[Turn]) -> list[TurnRow]:
    """The rows of these turns (loaded with their authors), the same for everyone who reads the thread."""
    turns = list(turns)
    prefetch_related_objects(turns, "images")
    recalled = memory.recalled_for(
        (t.id for t in turns), spaces=memory.space_ids_shared_by_all_readers(thread.space_id)
    )
    places = places_of(recalled)
    states = memory.memory_states(t.effective_exchange_id for t in turns if t.effective_exchange_id)
    forgotten = {
        e.id: e
        for e in Exchange.objects.filter(
            id__in=[i for i, state in states.items() if state == "forgotten"]
        ).select_related("forgotten_by")
    }
    branches = _branches(thread, turns)
    return [_turn_row(t, recalled.get(t.id, []), places, states, forgotten, branches.get(t.id)) for t in turns]


def thread_row(thread: Thread | None, *, person_id: uuid.UUID, model_name: str, is_dummy: bool) -> ThreadRow:
    """The row of a thread, or of one that is about to begin."""
    space = thread.space if thread else None
    kind = space.kind if space else Space.Kind.OWN
    people = get_user_model().objects.filter(is_active=True)
    count = memory.readers(space, people).count() if space else 1
    audience = ngettext("Visible to %(count)s person", "Visible to %(count)s people", count)
    if kind == Space.Kind.OWN:
        audience = _("Visible only to you")
    remembered = thread is None or thread.is_remembered
    thread_id = thread.id if thread else None
    return ThreadRow(
        id=thread_id,
        title=thread.title if thread else _("New thread"),
        space_name=space.shown_name if space else _("Only you"),
        space_kind=kind,
        space_url=reverse("space", args=[space.id]) if space else "",
        url=reverse("thread", args=[thread_id]) if thread_id else reverse("new_thread"),
        say_url=reverse("say", args=[thread_id]) if thread_id else reverse("new_thread"),
        is_new=thread is None,
        is_remembered=remembered,
        remember_url=reverse("remember", args=[thread_id]) if thread and thread.owner_id == person_id else "",
        remember_label=_remembered_where(space) if remembered else _("Not remembered"),
        audience_text=audience % {"count": count} if remembered else _("Not saved to memory"),
        model_name=model_name,
        is_dummy=is_dummy,
        is_memory_off=not settings.CATO.vector_store.enabled,
        socket_url=f"/ws/t/{thread_id}" if thread_id else "",
        is_own=thread is None or thread.owner_id == person_id,
        is_pinned=thread is not None and thread.pinned_at is not None,
        is_archived=thread is not None and thread.archived_at is not None,
    )


def _remembered_where(space: Space | None) -> str:
    if space is None or space.kind == Space.Kind.OWN:
        return _("Saved in your personal space")
    if space.kind == Space.Kind.TEAM:
        return _("Saved for the team")
    return _("Saved in %(space)s") % {"space": space.name}


def _turn_row(
    turn: Turn,
    recalled: list[RecalledItem],
    titles: dict[uuid.UUID, str],
    states: dict[uuid.UUID, str],
    forgotten: dict[uuid.UUID, Exchange],
    branch: BranchRow | None,
) -> TurnRow:
    blocks, segments, open_html = _answer_html(
        turn, Citations(turn.id, max((item.rank for item in recalled), default=0))
    )
    done = not turn.is_running and turn.state != Turn.State.QUEUED
    state = states.get(turn.effective_exchange_id, "") if turn.effective_exchange_id and not turn.is_running else ""
    tomb = forgotten.get(turn.effective_exchange_id) if turn.effective_exchange_id else None
    here = [turn.thread_id, turn.id]
    restartable = turn.state in (Turn.State.STOPPED, Turn.State.INTERRUPTED, Turn.State.FAILED)
    return TurnRow(
        id=turn.id,
        author_id=turn.author_id,
        author_name=turn.author.name,
        said_at=turn.created_at,
        message=turn.message,
        images=[ImageRow(image.name, reverse("image", args=[image.id])) for image in turn.images.all()],
        images_note=_("This model does not support images; they were not sent.") if turn.images_dropped else "",
        reasoning=turn.reasoning,
        blocks_html=mark_safe("".join(blocks)),
        segments_html=mark_safe("".join(segments)),
        open_html=mark_safe(open_html),
        revision=turn.revision,
        state=turn.state,
        is_running=turn.is_running,
        phase_text=_phase(turn),
        note=_note(turn),
        can_retry=restartable,
        can_resume=turn.has_room and (restartable or turn.is_cut_off),
        retry_url=reverse("retry", args=here),
        resume_url=reverse("resume", args=here),
        edit_url=reverse("edit", args=here) if done else "",
        again_url=reverse("answer_again", args=here) if done and not restartable else "",
        fork_url=reverse("fork", args=here) if done else "",
        withdraw_url=reverse("withdraw_turn", args=here) if turn.state == Turn.State.QUEUED else "",
        branch=branch,
        stop_url=reverse("stop", args=here),
        memory_state=state,
        memory_text=_(_MEMORY_WORDS[state]) if state in _MEMORY_WORDS else "",
        memory_retry_url=reverse("remember_again", args=here) if state == "failed" else "",
        forget_url=reverse("forget", args=[turn.effective_exchange_id])
        if state and state != "forgotten" and done
        else "",
        forgotten_note=_("by %(name)s") % {"name": tomb.forgotten_by} if tomb and tomb.forgotten_by else "",
        forgotten_at=tomb.forgotten_at if tomb else None,
        recalled=_recalled_row(turn, recalled, titles),
    )


def _branches(thread: Thread, turns: Iterable[Turn]) -> dict[uuid.UUID, BranchRow]:
    """For each of these turns that has others in its place: where it stands among them."""
    given = list(turns)
    same_place = Q(parent__in=[t.parent_id for t in given if t.parent_id])
    if any(t.parent_id is None for t in given):
        same_place |= Q(parent=None)
    by_parent: dict[uuid.UUID | None, list[uuid.UUID]] = defaultdict(list)
    for id, parent_id in thread.turns.filter(same_place).order_by("position").values_list("id", "parent_id"):
        by_parent[parent_id].append(id)
    rows = {}
    for t in given:
        others = by_parent[t.parent_id]
        if len(others) > 1:
            at = others.index(t.id)
            to = [reverse("choose", args=[thread.id, id]) for id in others]
            rows[t.id] = BranchRow(
                at + 1, len(others), to[at - 1] if at else "", to[at + 1] if at + 1 < len(others) else ""
            )
    return rows


def _answer_html(turn: Turn, citations: Citations) -> tuple[list[str], list[str], str]:
    if not turn.is_running:
        return render_blocks(turn.answer, citations), [], ""
    growing = GrowingAnswer(citations=citations)
    return growing.feed(turn.answer), growing.segments(), growing.open_html()


def _phase(turn: Turn) -> str:
    if turn.state == Turn.State.QUEUED:
        return _queue_text(turn)
    if turn.state == Turn.State.RECALLING:
        return _("Recalling…")
    return _(THINKING) if turn.state == Turn.State.ANSWERING and not turn.answer else ""


def _queue_text(turn: Turn) -> str:
    """Return what a queued turn waits for: the answer before it in its thread, or others of its author."""
    if turn.thread.is_answering():
        return _("Queued until the answer before it ends")
    most = settings.CATO.chat.concurrent_answers
    sentence = ngettext(
        "Queued: %(name)s already has %(count)s answer in progress",
        "Queued: %(name)s already has %(count)s answers in progress",
        most,
    )
    return sentence % {"name": turn.author.name, "count": format_number(most)}


def _note(turn: Turn) -> str:
    if turn.state == Turn.State.STOPPED:
        return turn.error or _("Stopped")
    if turn.state == Turn.State.INTERRUPTED:
        return (
            _("Interrupted. The partial answer was saved.")
            if turn.answer
            else _("Interrupted before the answer started.")
        )
    if turn.state == Turn.State.COMPLETE:
        return cut_off_note(turn.finish_reason)
    return turn.error if turn.state == Turn.State.FAILED else ""


def _recalled_row(turn: Turn, recalled: list[RecalledItem], titles: dict[uuid.UUID, str]) -> RecallSummaryRow | None:
    note = _(_RECALL_NOTES[turn.recall_note]) if turn.recall_note in _RECALL_NOTES else ""
    if not recalled and not note:
        return None
    times = [item.exchange.timestamp for item in recalled if item.exchange]
    items = [recalled_row(item, titles) for item in recalled]
    return RecallSummaryRow(len(recalled), _span(times), note, items)


def _span(times: list[datetime]) -> str:
    """ "from 9 Oct to 2 Nov", with years where they are not this one's."""
    if not times:
        return ""
    now = timezone.now()
    first, last = (day_of_this_year(t) if t.year == now.year else format_date(t) for t in (min(times), max(times)))
    span = _("from %(first)s") if first == last else _("from %(first)s to %(last)s")
    return span % {"first": first, "last": last}
