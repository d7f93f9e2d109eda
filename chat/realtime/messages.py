"""What web processes send to pages and to each other: frames, and changes of thread lists."""

from __future__ import annotations

import json
import uuid
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

_FLAGS = ("is_latest", "is_mention", "is_mention_seen")


@dataclass(frozen=True, slots=True)
class Frame:
    """HTML for the pages of a thread; `revision` orders it against the turn's row (None: any order is right).

    Footers are ordered separately: memory can be finished with a turn before the frame that ends it is sent, and neither
    frame may suppress the other.
    """

    thread_id: uuid.UUID
    html: str
    turn_id: uuid.UUID | None = None
    revision: int | None = None
    is_footer: bool = False


@dataclass(frozen=True, slots=True)
class LinkState:
    """A thread's link in the thread list as far as it is the same for all readers."""

    title: str
    is_answering: bool
    is_remembered: bool
    space_kind: str
    space_name: str


@dataclass(frozen=True, slots=True)
class ListChange:
    """A change of one thread's link in the thread list.

    `is_latest`: its message is now the latest. `is_mention`: it mentions the person who is notified; `is_mention_seen`: they
    have seen earlier ones. `state` is that of the link where it is known; pages of the thread, which
    is never unread there, need nothing else.
    """

    thread_id: uuid.UUID
    is_latest: bool = False
    state: LinkState | None = None
    is_mention: bool = False
    is_mention_seen: bool = False


@dataclass(slots=True)
class ListChanges:
    """A change of a person's thread list: certain links, by thread; or all of it."""

    links: dict[uuid.UUID, ListChange] = field(default_factory=dict)
    is_whole: bool = False

    def add(self, change: ListChange | None) -> None:
        """Add a change of one link; None stands for the whole list."""
        if change is None:
            self.is_whole = True
            return
        # The latest one comes last, because links are put at the top one after the other.
        earlier = self.links.pop(change.thread_id, change)
        self.links[change.thread_id] = replace(
            change,
            is_latest=earlier.is_latest or change.is_latest,
            is_mention=earlier.is_mention or change.is_mention,
            is_mention_seen=earlier.is_mention_seen or change.is_mention_seen,
        )


def encode_frame(process: str, frame: Frame) -> str:
    """Return a frame of this process as JSON."""
    return json.dumps(
        {
            "from": process,
            "thread": str(frame.thread_id),
            "turn": str(frame.turn_id) if frame.turn_id else None,
            "revision": frame.revision,
            "is_footer": frame.is_footer,
            "html": frame.html,
        }
    )


def encode_thread_list_change(process: str, people: Sequence[uuid.UUID], change: ListChange | None) -> str:
    """Return the change of a link, or of all of the thread list, of these people as JSON."""
    link = None
    if change is not None:
        state = asdict(change.state) if change.state else None
        flags = {name: getattr(change, name) for name in _FLAGS}
        link = {"thread": str(change.thread_id), "state": state, **flags}
    return json.dumps({"from": process, "people": [str(person_id) for person_id in people], "link": link})


def decode_list_change(message: dict[str, Any]) -> ListChange | None:
    """Return the change of a link; None for all of the list."""
    link = message.get("link")
    if link is None:
        return None
    state = LinkState(**link["state"]) if link["state"] else None
    return ListChange(uuid.UUID(link["thread"]), state=state, **{name: link.get(name, False) for name in _FLAGS})


def decode_frame(message: dict[str, Any]) -> Frame:
    """Return the frame."""
    turn = message["turn"]
    return Frame(
        uuid.UUID(message["thread"]),
        message["html"],
        uuid.UUID(turn) if turn else None,
        message["revision"],
        message["is_footer"],
    )
