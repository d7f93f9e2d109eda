"""The frames of an answer that has ended, from what the answer task has in memory."""

from __future__ import annotations

from collections.abc import Sequence

from chat.answers.job import AnswerJob
from chat.answers.persistence import CompletedTurn
from chat.answers.stream import AnswerStream
from chat.models import Attachment
from chat.realtime import frames
from chat.realtime.messages import Frame
from chat.rows.memory_searches import memory_searches_row
from chat.rows.recall import recalled_rows
from chat.rows.sources import summary_row
from chat.rows.turns import ActiveTurn, TurnDetails
from chat.turns import queue
from memory.api import MemoryState


def finished_frames(
    stream: AnswerStream, completed: CompletedTurn, blocks: Sequence[str], reasoning: str
) -> tuple[Frame, Frame]:
    """Return the frames with the last blocks and reasoning of the answer, and with the footer and the recall of its turn."""
    turn, prepared, progress = completed.turn, stream.prepared, stream.progress
    turn.memory_searches, turn.tool_uses = stream.memory_searches, stream.tool_uses
    turn.web_search = prepared.web_search.as_json() if prepared and prepared.web_search else {}
    # The turn of the job is as it was before the recall.
    turn.recall_note = prepared.note if prepared else turn.recall_note
    items = recalled_rows(prepared.recalled, prepared.titles) if prepared and stream.memory_searches else []
    successors = stream.successors = queue.find_successors(turn.thread_id, turn.author_id)
    running, citations = successors.running, progress.citations
    return frames.answer_finished(
        turn,
        _known_details(stream.job, completed),
        ActiveTurn.of(running) if running else None,
        has_blocks=progress.has_blocks,
        last_blocks=blocks,
        last_reasoning=reasoning,
        summary=summary_row(turn, citations, progress.cited) if citations and citations.sources else None,
        searches=memory_searches_row(turn, items, progress.cited),
        documents=_stored_documents(stream.job, completed),
    )


def _stored_documents(job: AnswerJob, completed: CompletedTurn) -> Sequence[Attachment]:
    """Return the attachments of the turn that have become documents; without a query if there can be none."""
    if completed.turn.exchange_id is None or all(attachment.is_image for attachment in job.attachments):
        return ()
    return list(completed.turn.attachments.exclude(document_id=None))


def _known_details(job: AnswerJob, completed: CompletedTurn) -> TurnDetails | None:
    """Return what the footer shows if it is known without a query."""
    if not job.is_only_version:
        return None
    if completed.is_stored:
        return TurnDetails(memory_state=MemoryState("remembering"))
    return TurnDetails() if completed.turn.effective_exchange_id is None else None
