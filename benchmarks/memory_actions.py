"""A person who adds, uploads, imports and forgets over the API while processes are killed, and what must be true afterwards.

Each request is repeated with the same idempotency key until it is acknowledged, as a careful client does.
"""

from __future__ import annotations

import json
import random
import threading
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from itertools import count

import httpx

from tests.server import Cato

IMPORTED = "Imported question"  # begins each message of an import
UNDER_WAY = ("received", "reading", "chunking", "embedding")
_ACKNOWLEDGED_WITHIN = 60.0  # seconds


@dataclass
class Stored:
    """Something that was sent: its text, its id once it was acknowledged, and whether its deletion was, too."""

    kind: str
    text: str
    id: str | None = None
    is_deletion_sent: bool = False
    is_deleted: bool = False


@dataclass
class MemoryActions:
    """The actions of one person; `clients` reach one web process each, with the same token."""

    clients: list[httpx.Client]
    dice: random.Random
    stored: list[Stored] = field(default_factory=list)

    def run(self, ending: threading.Event) -> None:
        """Add one of each kind and delete one, in turn, until the event is set."""
        for number in count():
            if ending.wait(self.dice.uniform(0.3, 1.2)):
                return
            if number % 4 == 3:
                self._delete_any()
            else:
                add = (self._add_note, self._upload, self._import)[number % 3]
                add(f"{number}: {self.dice.getrandbits(64):x}")

    def counts(self) -> Counter[str]:
        """Return how many of each kind were acknowledged."""
        kinds = Counter(one.kind for one in self.stored if one.id)
        return kinds + Counter(deleted=sum(one.is_deleted for one in self.stored))

    def _add_note(self, name: str) -> None:
        text = f"Note {name}"
        self._add("note", text, lambda client, key: client.post("/api/exchanges", json={"text": text}, headers=key))

    def _upload(self, name: str) -> None:
        text = f"Document {name}"
        file = {"file": (f"{name.replace(':', '')}.txt", text.encode())}
        self._add("document", text, lambda client, key: client.post("/api/documents", files=file, headers=key))

    def _import(self, name: str) -> None:
        text, at = f"{IMPORTED} {name}", "2025-03-01T10:00:00Z"
        messages = [
            {"uuid": f"{name} {sender}", "sender": sender, "text": words, "created_at": at}
            for sender, words in (("human", text), ("assistant", f"The answer to {name}."))
        ]
        row = {"uuid": name, "name": name, "created_at": at, "chat_messages": messages}
        file = {"file": ("export.json", json.dumps([row]).encode())}
        self._add("import", text, lambda client, key: client.post("/api/imports", files=file, headers=key))

    def _add(self, kind: str, text: str, send: Callable[[httpx.Client, dict[str, str]], httpx.Response]) -> None:
        one = Stored(kind, text)
        self.stored.append(one)
        key = {"Idempotency-Key": str(uuid.uuid4())}
        answer = self._repeat(lambda client: send(client, key))
        if answer is not None:
            body = answer.json()
            found = body.get("exchanges") or [body.get("document") or body]
            one.id = found[0]["id"]

    def _delete_any(self) -> None:
        deletable = [one for one in self.stored if one.id and one.kind != "import" and not one.is_deletion_sent]
        if deletable:
            self._delete(self.dice.choice(deletable))

    def _delete(self, one: Stored) -> None:
        one.is_deletion_sent = True
        path = f"/api/{'documents' if one.kind == 'document' else 'exchanges'}/{one.id}"
        # A repetition of a deletion whose response was lost finds nothing.
        one.is_deleted = self._repeat(lambda client: client.delete(path), also=(404,)) is not None

    def _repeat(
        self, send: Callable[[httpx.Client], httpx.Response], also: tuple[int, ...] = ()
    ) -> httpx.Response | None:
        end = time.monotonic() + _ACKNOWLEDGED_WITHIN
        while time.monotonic() < end:
            try:
                answer = send(self.dice.choice(self.clients))
            except httpx.TransportError:
                time.sleep(0.2)
                continue
            if answer.is_success or answer.status_code in also:
                return answer
            time.sleep(0.5)
        return None


def is_done(cato: Cato) -> bool:
    """Return whether no document, import or erasure is under way."""
    ((documents,),) = cato.sql(f"SELECT count(*) FROM memory_documentversion WHERE stage IN {UNDER_WAY}")
    ((imports,),) = cato.sql("SELECT count(*) FROM chat_importjob WHERE state = 'pending'")
    ((erasures,),) = cato.sql("SELECT count(*) FROM memory_erasurejob WHERE state = 'pending'")
    return int(documents) + int(imports) + int(erasures) == 0


def violations(cato: Cato, stored: Iterable[Stored]) -> list[str]:
    """Return a sentence for whatever is lost, doubled, or still there after its deletion; the store must be done."""
    rows = cato.sql("SELECT user_message FROM memory_exchange WHERE forgotten_at IS NULL")
    live, wrong = Counter(str(text) for (text,) in rows), list[str]()
    for one in stored:
        found = live[one.text]
        if one.is_deleted and found:
            wrong.append(f"{one.text!r} was deleted and is there {found} times")
        if found > 1 or (one.id and not one.is_deletion_sent and found != 1):
            wrong.append(f"{one.text!r}, {'acknowledged' if one.id else 'not acknowledged'}, is there {found} times")
    kept = [
        text for (text,) in cato.sql("SELECT user_message FROM memory_exchange WHERE forgotten_at IS NOT NULL") if text
    ]
    return wrong + [f"{text!r} is forgotten and not erased" for text in kept]
