"""People who use all pages of Cato at random."""

from __future__ import annotations

import threading
from collections import Counter
from dataclasses import dataclass, field

import httpx

from benchmarks.consistency import PostedMessage
from benchmarks.memory_actions import MemoryActions
from benchmarks.posting import Posts
from tests.server import Client

_PAUSES = (4.0, 24.0)  # seconds between the actions of a person
_PAGES = ("/", "/documents", "/knowledge", "/settings", "/import")
_WORDS = ("buoy", "winter", "uplink", "battery", "housing", "harbour", "antenna", "retries")


@dataclass
class Resident(MemoryActions):
    """A person with a browser, in a group; `done` counts actions, `statuses` the responses that are errors."""

    page: Client = field(kw_only=True)
    team: str = field(kw_only=True)
    posts: Posts = field(kw_only=True)
    threads: list[str] = field(default_factory=list)
    done: Counter[str] = field(default_factory=Counter)
    statuses: Counter[str] = field(default_factory=Counter)

    def run(self, ending: threading.Event) -> None:
        """Act until the event is set."""
        acts = {
            "post": (6, self._post),
            "read": (6, self._read),
            "search": (3, self._search),
            "note": (2, lambda: self._add_note(self._text())),
            "upload": (1, lambda: self._upload(self._text())),
            "forget": (1, self._delete_any),
            "stop": (1, self._stop),
            "share": (1, self._share),
        }
        weights = [weight for weight, _ in acts.values()]
        while not ending.wait(self.dice.uniform(*_PAUSES)):
            (name,) = self.dice.choices(list(acts), weights)
            acts[name][1]()
            self.done[name] += 1

    def _text(self) -> str:
        words = " ".join(self.dice.choices(_WORDS, k=12))
        return f"{self.page.name} {self.dice.getrandbits(64):x} on {words}."

    def _post(self) -> PostedMessage:
        message = PostedMessage(self._text(), wanted=self.dice.choice([None, *self.threads[-3:]]))
        self.posts.send([self.page], self.dice, message)
        if message.thread and message.wanted is None:
            self.threads.append(message.thread)
        return message

    def _read(self) -> None:
        self._get(self.dice.choice([*_PAGES, *(f"/t/{thread}" for thread in self.threads[-5:])]))

    def _search(self) -> None:
        self._get("/search", q=" ".join(self.dice.choices(_WORDS, k=3)))

    def _stop(self) -> None:
        """Post, and stop the answer that is in progress then."""
        message = self._post()
        if message.thread:
            # Whichever answer of the thread it meets: that of an earlier message may still be in progress.
            for earlier in self.posts.messages:
                if earlier.thread == message.thread:
                    earlier.may_be_stopped = True
            self._repeat(lambda client: client.post(f"/api/threads/{message.thread}/stop"))

    def _share(self) -> None:
        """Move a thread to the group; it is refused while an answer is in progress."""
        if self.threads:
            thread = self.threads.pop(self.dice.randrange(len(self.threads)))
            self._repeat(lambda client: client.patch(f"/api/threads/{thread}", json={"space": self.team}))

    def _get(self, path: str, **query: str) -> None:
        try:
            answer = self.page.get(path, params=query, follow_redirects=True)
        except httpx.TransportError:
            self.statuses["no connection"] += 1
            return
        if answer.status_code >= 400:
            self.statuses[f"HTTP {answer.status_code} {path.split('/')[1]}"] += 1
