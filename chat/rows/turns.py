"""Template rows of threads and turns, with all texts and permissions resolved."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from django.urls import reverse
from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import gettext as _

from chat import access
from chat.instructions.applying import AppliedInstruction, applied_to
from chat.llm.audio import can_read_aloud
from chat.mentions import find_mentions, mentioned_names
from chat.models import Attachment, Thread, Turn, load_attachments
from chat.rendering.blocks import GrowingAnswer, render_blocks
from chat.rendering.citations import Citations, cited_numbers
from chat.rows.additions import AdditionRow
from chat.rows.attachments import AttachmentRow, attachment_rows, read_progress
from chat.rows.branches import BranchRow, branch_rows
from chat.rows.instructions import AppliedRow, applied_rows
from chat.rows.memory_searches import MemorySearchesRow, memory_searches_row
from chat.rows.recall import recalled_rows, thread_titles_of_recalled
from chat.rows.receipts import ReceiptRow
from chat.rows.sources import RecallPanelRow, citations_of, panel_row, summary_row
from chat.rows.tool_uses import ToolQuestionRow, ToolUseRow, tool_question_rows, tool_use_rows
from chat.rows.turn_texts import end_note, fallback_note, memory_text, phase_text, tools_note, withheld_note
from chat.rows.web_search import WebSearchRow, web_search_row, with_web_sources
from chat.web_search.records import WebSearch
from memory import api as memory
from memory.api import DocumentProgress, MemoryState, RecalledPassage

# A message with more lines than this is folded on the page.
UNFOLDED_LINES = 12


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
class MessagePart:
    """A part of a message: a mention or other text."""

    text: str
    is_mention: bool = False


@dataclass(frozen=True, slots=True)
class TurnRow:
    """A turn, rendered once for all readers of its thread."""

    id: uuid.UUID
    author_id: uuid.UUID
    author_name: str
    created_at: datetime
    message: str
    message_parts: Sequence[MessagePart]
    attachments: Sequence[AttachmentRow]
    images_note: str
    tools_note: str
    withheld_note: str
    fallback_note: str
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
    save_prompt_url: str
    speech_url: str
    branch: BranchRow | None
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
    correction_url: str = ""
    searches: MemorySearchesRow | None = None
    web_search: WebSearchRow | None = None
    tool_uses: Sequence[ToolUseRow] = ()
    tool_questions: Sequence[ToolQuestionRow] = ()
    receipt: ReceiptRow | None = None
    # None: the page asks for them, because they depend on the reader.
    additions: Sequence[AdditionRow] | None = ()

    @property
    def message_lines(self) -> int:
        """Return how many lines the message has, as its author wrote it."""
        return len(self.message.splitlines())

    @property
    def is_long_message(self) -> bool:
        """Return True if the page folds the message."""
        return self.message_lines > UNFOLDED_LINES


@dataclass(frozen=True, slots=True)
class TurnDetails:
    """The parts of a row that are not columns of its turn.

    `titles` are those of `thread_titles`, `instructions` those in its prompt, by their ids, `mentioned` the names of
    people whom its message mentions. `progress` is that of attached documents, by their ids. `can_restart`: its author may
    still receive an answer. `can_branch`: there may be another version. An archived project takes neither.
    """

    attachments: Sequence[Attachment] = ()
    progress: Mapping[uuid.UUID, DocumentProgress] = field(default_factory=dict)
    recalled: Sequence[RecalledPassage] = ()
    titles: Mapping[uuid.UUID, str] = field(default_factory=dict)
    memory_state: MemoryState | None = None
    branch: BranchRow | None = None
    can_restart: bool = True
    can_branch: bool = True
    instructions: Mapping[str, AppliedInstruction] = field(default_factory=dict)
    mentioned: Sequence[str] = ()


def turn_rows(thread: Thread, turns: Iterable[Turn]) -> list[TurnRow]:
    """Return the rows of these turns (loaded with their authors) for all readers of the thread."""
    turns = list(turns)
    load_attachments(turns)
    # Nothing was recalled yet for a first try that is queued or recalling.
    begun = [t.id for t in turns if t.attempt != 1 or t.state not in (Turn.State.QUEUED, Turn.State.RECALLING)]
    recalled = memory.recalled_for(begun, spaces=memory.audience_space_ids(thread.space)) if begun else {}
    titles = thread_titles_of_recalled(recalled)
    details = read_footer_details(thread, turns)
    mentioned = mentioned_names(turns)
    progress = read_progress(row for t in turns for row in t.shown_attachments)
    instructions = applied_to(thread, turns)
    return [
        turn_row(
            t,
            replace(
                details[t.id],
                attachments=t.shown_attachments,
                progress=progress,
                recalled=recalled.get(t.id, ()),
                titles=titles,
                instructions=instructions,
                mentioned=mentioned.get(t.id, ()),
            ),
        )
        for t in turns
    ]


def read_footer_details(thread: Thread, turns: Sequence[Turn]) -> dict[uuid.UUID, TurnDetails]:
    """Return what the footers of these turns show, by turn."""
    states = memory.states_of(t.effective_exchange_id for t in turns if t.effective_exchange_id)
    branches = branch_rows(thread, turns)
    restartable = [t.id for t in turns if t.can_retry or t.can_resume]
    refused = access.turns_without_access(restartable) if restartable else set()
    is_open = thread.space.archived_at is None
    return {
        t.id: TurnDetails(
            memory_state=states.get(t.effective_exchange_id) if t.effective_exchange_id else None,
            branch=branches.get(t.id),
            can_restart=is_open and t.id not in refused,
            can_branch=is_open,
        )
        for t in turns
    }


def turn_row(turn: Turn, details: TurnDetails, *, has_blocks: bool | None = None) -> TurnRow:
    """Return the row of a turn (loaded with its author and thread) whose details are known.

    Where only the presence of the answer matters, `has_blocks` saves rendering it.
    """
    web_search = WebSearch.of(turn)
    citations = citations_of(turn.id, details.recalled, details.titles, web_search)
    if has_blocks is None:
        blocks, segments, open_html = _answer_html(turn, citations)
    else:
        blocks, segments, open_html = ["…"] if has_blocks else [], [], ""
    is_finished = not turn.is_running and turn.state != Turn.State.QUEUED
    has_text = bool(turn.message)
    can_branch = is_finished and has_text and details.can_branch
    memory_state = details.memory_state or MemoryState("")
    state = "" if turn.is_running else memory_state.name
    cited = cited_numbers(blocks)
    items = recalled_rows(details.recalled, details.titles)
    url_args = [turn.thread_id, turn.id]
    return TurnRow(
        id=turn.id,
        author_id=turn.author_id,
        author_name=turn.author.name,
        created_at=turn.created_at,
        message=turn.message,
        message_parts=message_parts(turn.message, details.mentioned),
        attachments=attachment_rows(details.attachments, details.progress),
        images_note=_("This model does not support images; they were not sent.") if turn.images_dropped else "",
        tools_note=tools_note(turn),
        withheld_note=withheld_note(turn),
        fallback_note=fallback_note(turn),
        reasoning=turn.reasoning,
        blocks_html=mark_safe("".join(blocks)),
        segments_html=mark_safe("".join(segments)),
        open_html=mark_safe(open_html),
        revision=turn.revision,
        state=turn.state,
        is_running=turn.is_running,
        phase_text=phase_text(turn),
        note=end_note(turn),
        can_retry=turn.can_retry and details.can_restart,
        can_resume=turn.can_resume and details.can_restart,
        retry_url=reverse("retry_turn", args=url_args),
        resume_url=reverse("resume_turn", args=url_args),
        edit_url=reverse("edit_turn", args=url_args) if can_branch else "",
        regenerate_url=reverse("regenerate", args=url_args) if can_branch and not turn.can_retry else "",
        fork_url=reverse("fork_thread", args=url_args) if is_finished and has_text else "",
        save_prompt_url=reverse("saved_prompts", query={"from": turn.id}),
        speech_url=reverse("speech", args=url_args) if is_finished and turn.answer and can_read_aloud() else "",
        branch=details.branch,
        memory_state=state,
        memory_text=memory_text(state),
        memory_retry_url=reverse("retry_indexing", args=url_args) if state == "failed" else "",
        forget_url=reverse("forget_everywhere", args=[turn.effective_exchange_id])
        if state and is_finished and (state != "forgotten" or has_text or turn.answer)
        else "",
        # The owner of a copy owns neither the exchange nor its thread.
        forget_roles="author owner administrator" if turn.exchange_id else "author administrator",
        forgotten_by=memory_state.forgotten_by,
        forgotten_by_id=memory_state.forgotten_by_id,
        forgotten_at=memory_state.forgotten_at,
        # Earlier messages of an API client can have an answer only.
        is_text_deleted=not has_text and not turn.answer,
        recalled=panel_row(summary_row(turn, citations, cited), with_web_sources(items, web_search)),
        searches=memory_searches_row(turn, items, cited),
        web_search=web_search_row(web_search),
        tool_uses=tool_use_rows(turn),
        tool_questions=tool_question_rows(turn),
        instructions=applied_rows(turn, details.instructions) if details.instructions else (),
        offer_url=reverse("instruction_offer", args=[turn.id]) if turn.has_instruction else "",
        correction_url=reverse("correction", args=[turn.id]) if turn.is_correction and is_finished and state else "",
        additions=None if getattr(turn, "has_additions", False) else (),
    )


def message_parts(message: str, mentioned: Iterable[str]) -> list[MessagePart]:
    """Return a message as its mentions of these people and the text between them."""
    parts, at = [], 0
    for start, end in find_mentions(message, mentioned):
        parts += [MessagePart(message[at:start]), MessagePart(message[start:end], is_mention=True)]
        at = end
    return [*parts, MessagePart(message[at:])]


def _answer_html(turn: Turn, citations: Citations) -> tuple[list[str], list[str], str]:
    if not turn.is_running:
        return render_blocks(turn.answer, citations), [], ""
    answer = GrowingAnswer(citations=citations)
    return answer.feed(turn.answer), answer.segments(), answer.open_html()
