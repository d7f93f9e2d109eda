"""Template rows of threads and turns, with all texts and permissions resolved."""

from __future__ import annotations

import uuid
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from django.conf import settings
from django.contrib.auth import get_user_model
from django.db.models import Q
from django.urls import reverse
from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop, ngettext

from chat.instructions.applying import AppliedInstruction, applied_to
from chat.llm.failures import cut_off_note
from chat.models import Attachment, Thread, Turn, load_attachments
from chat.rendering.blocks import GrowingAnswer, render_blocks
from chat.rendering.citations import Citations, cited_numbers
from chat.rows.instructions import AppliedRow, applied_rows
from chat.rows.recall import recalled_rows, thread_titles_of_recalled
from chat.rows.receipts import ReceiptRow
from chat.rows.sources import RecallPanelRow, citations_of, panel_row, summary_row
from memory import api as memory
from memory.api import MemoryState, RecalledPassage, Space, format_number

THINKING = gettext_noop("Thinking…")
# A message with more lines than this is folded on the page.
UNFOLDED_LINES = 12
_MEMORY_TEXTS = {
    "remembering": gettext_noop("Remembering…"),
    "remembered": gettext_noop("Remembered"),
    "waiting": gettext_noop("Waiting for the search index"),
    "failed": gettext_noop("Could not save to memory."),
    "forgotten": gettext_noop("Forgotten"),
    "off": gettext_noop("Not remembered"),
}


@dataclass(frozen=True, slots=True)
class BranchRow:
    """The number of a turn among its siblings, and the URLs that switch to the previous and next one."""

    number: int
    of: int
    previous_url: str
    next_url: str


@dataclass(frozen=True, slots=True)
class AttachmentRow:
    """A file of a message, shown as an image or as a link."""

    name: str
    url: str
    is_image: bool


@dataclass(frozen=True, slots=True)
class ActiveTurn:
    """The running turn of a thread, whose answer it is, and the URL that stops it."""

    id: uuid.UUID
    author_id: uuid.UUID
    author_name: str
    stop_url: str

    @classmethod
    def of(cls, turn: Turn) -> ActiveTurn:
        """Return the row of this running turn, loaded with its author."""
        stop_url = reverse("stop_turn", args=[turn.thread_id, turn.id])
        return cls(turn.id, turn.author_id, turn.author.name, stop_url)


@dataclass(frozen=True, slots=True)
class TurnRow:
    """A turn, rendered once for all readers of its thread."""

    id: uuid.UUID
    author_id: uuid.UUID
    author_name: str
    created_at: datetime
    message: str
    attachments: Sequence[AttachmentRow]
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
    regenerate_url: str
    fork_url: str
    withdraw_url: str
    branch: BranchRow | None
    stop_url: str
    memory_state: str
    memory_text: str
    memory_retry_url: str
    forget_url: str
    forget_roles: str
    forgotten_by: str
    forgotten_by_id: uuid.UUID | None
    forgotten_at: datetime | None
    is_text_deleted: bool
    recalled: RecallPanelRow | None
    instructions: Sequence[AppliedRow]
    offer_url: str
    receipt: ReceiptRow | None = None

    @property
    def message_lines(self) -> int:
        """Return how many lines the message has, as its author wrote it."""
        return len(self.message.splitlines())

    @property
    def is_long_message(self) -> bool:
        """Return True if the page folds the message."""
        return self.message_lines > UNFOLDED_LINES


@dataclass(frozen=True, slots=True)
class ThreadRow:
    """A thread, or one that is not created yet."""

    id: uuid.UUID | None
    title: str
    space_name: str
    space_kind: str
    space_url: str
    url: str
    post_url: str
    is_new: bool
    is_remembered: bool
    remember_url: str
    remember_label: str
    drop_text: str
    audience_text: str
    model_name: str
    is_dummy: bool
    is_memory_off: bool
    socket_url: str
    is_own: bool
    roles: str
    is_pinned: bool
    is_archived: bool


@dataclass(frozen=True, slots=True)
class TurnDetails:
    """The parts of a row that are not columns of its turn.

    `titles` are those of `thread_titles`, `instructions` those in its prompt, by their ids.
    """

    attachments: Sequence[Attachment] = ()
    recalled: Sequence[RecalledPassage] = ()
    titles: Mapping[uuid.UUID, str] = field(default_factory=dict)
    memory_state: MemoryState | None = None
    branch: BranchRow | None = None
    instructions: Mapping[str, AppliedInstruction] = field(default_factory=dict)


def turn_rows(thread: Thread, turns: Iterable[Turn]) -> list[TurnRow]:
    """Return the rows of these turns (loaded with their authors) for all readers of the thread."""
    turns = list(turns)
    load_attachments(turns)
    # Nothing was recalled yet for a first try that is queued or recalling.
    begun = [t.id for t in turns if t.attempt != 1 or t.state not in (Turn.State.QUEUED, Turn.State.RECALLING)]
    recalled = memory.recalled_for(begun, spaces=memory.audience_space_ids(thread.space)) if begun else {}
    titles = thread_titles_of_recalled(recalled)
    details = read_footer_details(thread, turns)
    instructions = applied_to(thread, turns)
    return [
        turn_row(
            t,
            replace(
                details[t.id],
                attachments=t.shown_attachments,
                recalled=recalled.get(t.id, ()),
                titles=titles,
                instructions=instructions,
            ),
        )
        for t in turns
    ]


def read_footer_details(thread: Thread, turns: Sequence[Turn]) -> dict[uuid.UUID, TurnDetails]:
    """Return what the footers of these turns show, by turn."""
    states = memory.states_of(t.effective_exchange_id for t in turns if t.effective_exchange_id)
    branches = _branches(thread, turns)
    return {
        t.id: TurnDetails(
            memory_state=states.get(t.effective_exchange_id) if t.effective_exchange_id else None,
            branch=branches.get(t.id),
        )
        for t in turns
    }


def thread_row(
    thread: Thread | None, *, person_id: uuid.UUID, roles: Iterable[str], model_name: str, is_dummy: bool
) -> ThreadRow:
    """Return the row of a thread for a person with these roles in it; None: of one that is not created yet."""
    space = thread.space if thread else None
    kind = space.kind if space else Space.Kind.PERSONAL
    count = 1
    if space is not None and kind != Space.Kind.PERSONAL:
        count = memory.readers(space, get_user_model().objects.filter(is_active=True)).count()
    audience = ngettext("Visible to %(count)s person", "Visible to %(count)s people", count)
    if kind == Space.Kind.PERSONAL:
        audience = _("Visible only to you")
    remembered = thread is None or thread.is_remembered
    thread_id = thread.id if thread else None
    return ThreadRow(
        id=thread_id,
        title=thread.title if thread else _("New thread"),
        space_name=space.display_name if space else _("Only you"),
        space_kind=kind,
        space_url=reverse("space", args=[space.id]) if space else "",
        url=reverse("thread", args=[thread_id]) if thread_id else reverse("new_thread"),
        post_url=reverse("post_message", args=[thread_id]) if thread_id else reverse("new_thread"),
        is_new=thread is None,
        is_remembered=remembered,
        remember_url=reverse("set_thread_memory", args=[thread_id]) if thread and thread.owner_id == person_id else "",
        remember_label=_saved_text(space) if remembered else _("Not remembered"),
        drop_text=_drop_text(space),
        audience_text=audience % {"count": count} if remembered else _("Not saved to memory"),
        model_name=model_name,
        is_dummy=is_dummy,
        is_memory_off=not settings.CATO.vector_store.enabled,
        socket_url=f"/ws/t/{thread_id}" if thread_id else "",
        is_own=thread is None or thread.owner_id == person_id,
        roles=" ".join(sorted(roles)),
        is_pinned=thread is not None and thread.pinned_at is not None,
        is_archived=thread is not None and thread.archived_at is not None,
    )


def _drop_text(space: Space | None) -> str:
    if space is None or space.kind == Space.Kind.PERSONAL:
        return _("Drop to add to this message")
    return _("Drop to add to %(space)s") % {"space": space.display_name}


def _saved_text(space: Space | None) -> str:
    if space is None or space.kind == Space.Kind.PERSONAL:
        return _("Saved in your personal space")
    if space.kind == Space.Kind.TEAM:
        return _("Saved for the team")
    return _("Saved in %(space)s") % {"space": space.name}


def turn_row(turn: Turn, details: TurnDetails, *, has_blocks: bool | None = None) -> TurnRow:
    """Return the row of a turn (loaded with its author and thread) whose details are known.

    Where only the presence of the answer matters, `has_blocks` saves rendering it.
    """
    citations = citations_of(turn.id, details.recalled, details.titles)
    if has_blocks is None:
        blocks, segments, open_html = _answer_html(turn, citations)
    else:
        blocks, segments, open_html = ["…"] if has_blocks else [], [], ""
    is_finished = not turn.is_running and turn.state != Turn.State.QUEUED
    has_text = bool(turn.message)
    memory_state = details.memory_state or MemoryState("")
    state = "" if turn.is_running else memory_state.name
    summary = summary_row(turn, citations, cited_numbers(blocks))
    url_args = [turn.thread_id, turn.id]
    return TurnRow(
        id=turn.id,
        author_id=turn.author_id,
        author_name=turn.author.name,
        created_at=turn.created_at,
        message=turn.message,
        attachments=[
            AttachmentRow(row.name, reverse("attachment", args=[row.id]), row.is_image) for row in details.attachments
        ],
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
        can_retry=turn.can_retry,
        can_resume=turn.can_resume,
        retry_url=reverse("retry_turn", args=url_args),
        resume_url=reverse("resume_turn", args=url_args),
        edit_url=reverse("edit_turn", args=url_args) if is_finished and has_text else "",
        regenerate_url=reverse("regenerate", args=url_args) if is_finished and has_text and not turn.can_retry else "",
        fork_url=reverse("fork_thread", args=url_args) if is_finished and has_text else "",
        withdraw_url=reverse("withdraw_turn", args=url_args) if turn.state == Turn.State.QUEUED else "",
        branch=details.branch,
        stop_url=reverse("stop_turn", args=url_args),
        memory_state=state,
        memory_text=_(_MEMORY_TEXTS[state]) if state in _MEMORY_TEXTS else "",
        memory_retry_url=reverse("retry_indexing", args=url_args) if state == "failed" else "",
        forget_url=reverse("forget_everywhere", args=[turn.effective_exchange_id])
        if state and state != "forgotten" and is_finished
        else "",
        # The owner of a copy owns neither the exchange nor its thread.
        forget_roles="author owner administrator" if turn.exchange_id else "author administrator",
        forgotten_by=memory_state.forgotten_by,
        forgotten_by_id=memory_state.forgotten_by_id,
        forgotten_at=memory_state.forgotten_at,
        # Earlier messages of an API client can have an answer only.
        is_text_deleted=not has_text and not turn.answer,
        recalled=panel_row(summary, recalled_rows(details.recalled, details.titles)),
        instructions=applied_rows(turn, details.instructions) if details.instructions else (),
        offer_url=reverse("instruction_offer", args=[turn.id]) if turn.has_instruction else "",
    )


def _branches(thread: Thread, turns: Iterable[Turn]) -> dict[uuid.UUID, BranchRow]:
    """Return the branch rows of the turns that have siblings."""
    turns = list(turns)
    siblings = Q(parent__in=[t.parent_id for t in turns if t.parent_id])
    if any(t.parent_id is None for t in turns):
        siblings |= Q(parent=None)
    by_parent: dict[uuid.UUID | None, list[uuid.UUID]] = defaultdict(list)
    for id, parent_id in thread.turns.filter(siblings).order_by("position").values_list("id", "parent_id"):
        by_parent[parent_id].append(id)
    rows = {}
    for t in turns:
        sibling_ids = by_parent[t.parent_id]
        if len(sibling_ids) > 1:
            index = sibling_ids.index(t.id)
            urls = ["", *(reverse("switch_branch", args=[thread.id, id]) for id in sibling_ids), ""]
            rows[t.id] = BranchRow(index + 1, len(sibling_ids), previous_url=urls[index], next_url=urls[index + 2])
    return rows


def _answer_html(turn: Turn, citations: Citations) -> tuple[list[str], list[str], str]:
    if not turn.is_running:
        return render_blocks(turn.answer, citations), [], ""
    answer = GrowingAnswer(citations=citations)
    return answer.feed(turn.answer), answer.segments(), answer.open_html()


def _phase(turn: Turn) -> str:
    if turn.state == Turn.State.QUEUED:
        return _queue_text(turn)
    if turn.state == Turn.State.RECALLING:
        return _("Recalling…")
    return _(THINKING) if turn.state == Turn.State.ANSWERING and not turn.answer else ""


def _queue_text(turn: Turn) -> str:
    """Return whether a queued turn waits for its thread or for other answers of its author."""
    if turn.thread.is_answering():
        return _("Queued until the previous answer ends")
    limit = settings.CATO.chat.concurrent_answers
    sentence = ngettext(
        "Queued: %(name)s already has %(count)s answer in progress",
        "Queued: %(name)s already has %(count)s answers in progress",
        limit,
    )
    return sentence % {"name": turn.author.name, "count": format_number(limit)}


def _note(turn: Turn) -> str:
    if turn.state == Turn.State.STOPPED:
        if turn.error or turn.stopped_by is None:
            return turn.error or _("Stopped")
        return _("Stopped by %(name)s") % {"name": turn.stopped_by.name}
    if turn.state == Turn.State.INTERRUPTED:
        return (
            _("Interrupted. The partial answer was saved.")
            if turn.answer
            else _("Interrupted before the answer started.")
        )
    if turn.state == Turn.State.COMPLETE:
        return cut_off_note(turn.finish_reason)
    return turn.error if turn.state == Turn.State.FAILED else ""
