"""A person of a group who shares and moves, notes decisions from which statements are extracted, and forgets."""

from __future__ import annotations

import random
import threading
import uuid
from collections import Counter
from dataclasses import dataclass, field
from itertools import count

import httpx

from benchmarks.consistency import PostedMessage
from benchmarks.memory_actions import MemoryActions, Stored
from benchmarks.posting import Posts
from tests.groups import make_group, person_id
from tests.server import Cato, Client
from tests.statement_replies import DECIDES

NAME = "Eve Team"
_FIRST, _BATCH = 50, 10  # decisions at once; statements are extracted from 40 unread ones
_SEARCHED = 40  # things that are searched at the end


@dataclass
class Movable:
    """A thread or document with its text and the spaces where it can be: one, or two while a move is unanswered."""

    path: str  # of the API
    text: str
    spaces: set[str]
    moves: int = 0


@dataclass
class TeamActions(MemoryActions):
    """The actions in a group in which statements are extracted; `pages` are this person's browsers."""

    pages: list[Client] = field(kw_only=True)
    posts: Posts = field(kw_only=True)
    personal: str = field(kw_only=True)
    team: str = field(kw_only=True)
    administrator: Client = field(kw_only=True)
    member: httpx.Client = field(kw_only=True)  # of another person in the group
    outsider: httpx.Client = field(kw_only=True)
    movable: list[Movable] = field(default_factory=list)

    def run(self, ending: threading.Event) -> None:
        """Add, move and delete in turn until the event is set."""
        acts = (self._decide, self._start_thread, self._move, self._share_document, self._move)
        for number in count():
            if ending.wait(self.dice.uniform(0.3, 1.2)):
                return
            if number % 6 == 5:
                self._delete_any()
            else:
                acts[number % 6](f"{number}: {self.dice.getrandbits(64):x}")

    def set_extraction(self, action: str) -> None:
        """Switch the extraction of statements in the group "on" or "off"."""
        answer = self.administrator.post(f"/knowledge/extraction/{self.team}", {"action": action})
        assert answer.status_code == 302, answer.text[:300]

    def counts(self) -> Counter[str]:
        """Return how many of each kind were acknowledged."""
        return super().counts() + Counter(moved=sum(one.moves for one in self.movable))

    def _decide(self, name: str) -> None:
        size = _BATCH if self.stored else _FIRST
        words = [
            f"{DECIDES} buoy {self.dice.getrandbits(40):x} makes {number} retries ({name})." for number in range(size)
        ]
        new = [Stored("decision", text) for text in words]
        self.stored += new
        body = {"exchanges": [{"text": one.text, "space": self.team} for one in new]}
        key = {"Idempotency-Key": str(uuid.uuid4())}
        answer = self._repeat(lambda client: client.post("/api/exchanges/batch", json=body, headers=key))
        if answer is not None:
            for one, row in zip(new, answer.json()["exchanges"], strict=True):
                one.id = row["id"]

    def _start_thread(self, name: str) -> None:
        message = PostedMessage(f"{NAME} asks {name}")
        self.posts.send(self.pages, self.dice, message)
        if message.thread:
            self.movable.append(Movable(f"threads/{message.thread}", message.message, {self.personal}))

    def _share_document(self, name: str) -> None:
        self._upload(f"of the team {name}")
        one = self.stored[-1]
        if one.id:
            self.movable.append(Movable(f"documents/{one.id}", one.text, {self.personal}))

    def _move(self, _name: str) -> None:
        """Move a thread or document to the other space; it is refused, and repeated, while it is answered or read."""
        gone = {one.id for one in self.stored if one.is_deletion_sent}
        movable = [one for one in self.movable if one.path.rpartition("/")[2] not in gone]
        if movable:
            one = self.dice.choice(movable[-6:])
            to = self.team if self.personal in one.spaces else self.personal
            before = set(one.spaces)
            one.spaces |= {to}
            if self._repeat(lambda client: client.patch(f"/api/{one.path}", json={"space": to})):
                one.spaces = {to}
                one.moves += 1
            else:
                one.spaces = before | {to}


def join_team(cato: Cato, administrator: Client, outsider: Client, posts: Posts, dice: random.Random) -> TeamActions:
    """Create the person, their group with another member, and switch the extraction of statements on in it."""
    person, member = cato.join(administrator, NAME), cato.join(administrator, "Frank Reader")
    team = make_group(cato, administrator, person, member)
    query = "SELECT id FROM memory_space WHERE owner_id = ?"
    ((personal,),) = cato.sql(query, uuid.UUID(person_id(cato, person)).hex)
    headers = {"Authorization": f"Bearer {person.create_token('read', 'write')}"}
    actions = TeamActions(
        [httpx.Client(base_url=url, timeout=30, headers=headers) for url in cato.urls],
        dice,
        pages=[cato.sign_in(person, url) for url in cato.urls],
        posts=posts,
        personal=str(uuid.UUID(str(personal))),
        team=team,
        administrator=administrator,
        member=member.api_client("read"),
        outsider=outsider.api_client("read"),
    )
    actions.set_extraction("on")
    return actions


def violations(cato: Cato, actions: TeamActions) -> list[str]:
    """Return a sentence for whatever is in another space than it was moved to, by the tables and by what people find."""
    gone = {one.id for one in actions.stored if one.is_deletion_sent}
    wrong = []
    for one in actions.movable:
        kind, _, id = one.path.partition("/")
        table = "chat_thread" if kind == "threads" else "memory_document"
        rows = cato.sql(f"SELECT space_id FROM {table} WHERE id = ?", uuid.UUID(id).hex)
        rows += cato.sql(
            "SELECT space_id FROM memory_exchange WHERE user_message = ? AND forgotten_at IS NULL", one.text
        )
        found = {str(uuid.UUID(str(space))) for (space,) in rows}
        if id not in gone and (len(found) != 1 or not found <= one.spaces):
            wrong.append(f"{one.text!r} is in {found}, moved to {one.spaces}")
    settled = [one for one in actions.movable if len(one.spaces) == 1 and one.path.rpartition("/")[2] not in gone]
    for one in settled[-_SEARCHED:]:
        is_shared = one.spaces == {actions.team}
        if _finds(actions.member, one.text) != is_shared:
            wrong.append(f"the group {'does not find' if is_shared else 'finds'} {one.text!r}")
        if _finds(actions.outsider, one.text):
            wrong.append(f"somebody outside finds {one.text!r}")
    return wrong


def _finds(client: httpx.Client, text: str) -> bool:
    answer = client.get("/api/search", params={"q": text})
    answer.raise_for_status()
    return text in answer.text
