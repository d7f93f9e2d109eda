"""People who post messages while processes of a running Cato fail, each message with one key until it is acknowledged."""

from __future__ import annotations

import random
import re
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field

import httpx

from benchmarks.consistency import PostedMessage, is_settled
from tests.server import Cato, Client, wait_for

# Statements are only extracted while no answer is in progress, so nobody posts during the last part of each cycle.
_CYCLE, _QUIET = 50.0, 20.0  # seconds
_ACKNOWLEDGED_WITHIN = 60.0  # seconds


@dataclass
class Posts:
    """The posted messages, and the responses that did not acknowledge them."""

    messages: list[PostedMessage] = field(default_factory=list)
    statuses: Counter[int] = field(default_factory=Counter)

    def send(self, clients: list[Client], dice: random.Random, message: PostedMessage) -> None:
        """Post it like a page, with the same key until it is acknowledged."""
        self.messages.append(message)
        end = time.monotonic() + _ACKNOWLEDGED_WITHIN
        while not message.is_acknowledged and time.monotonic() < end:
            message.sent += 1
            path = f"/t/{message.wanted}/messages" if message.wanted else "/"
            try:
                answer = dice.choice(clients).post(path, {"message": message.message, "client_key": message.key})
            except httpx.TransportError:
                time.sleep(0.2)
                continue
            if answer.status_code == 302 and (found := re.search(r"/t/([0-9a-f-]{36})", answer.headers["location"])):
                message.thread = found[1]
            else:
                self.statuses[answer.status_code] += 1
                time.sleep(0.2)


@contextmanager
def run_posters(cato: Cato, people: list[Client], seed: int, posts: Posts) -> Iterator[None]:
    """Let everybody post messages while the block runs."""
    browsers = [[cato.sign_in(person, url) for url in cato.urls] for person in people]
    secrets = [_open_secret(cato, person, posts) for person in people]
    started = time.monotonic()
    posters = [
        _Poster(clients, secret, random.Random(f"{seed} {clients[0].name}"), posts, started)
        for clients, secret in zip(browsers, secrets, strict=True)
    ]
    with ExitStack() as stack:
        for poster in posters:
            stack.enter_context(run_beside(poster.run))
        yield


@contextmanager
def run_beside(act: Callable[[threading.Event], None]) -> Iterator[None]:
    """Run `act` in a thread, and set its event when the block ends; raise its error, if any."""
    ending = threading.Event()
    with ThreadPoolExecutor(1) as threads:
        running = threads.submit(act, ending)
        try:
            yield
        finally:
            ending.set()
        running.result()


def _open_secret(cato: Cato, person: Client, posts: Posts) -> str:
    """Create a thread that is not remembered after its first message; return its id."""
    first = PostedMessage(f"{person.name} opens a thread that is not remembered from now on", sent=1)
    first.thread = person.send_message(first.message, key=first.key)
    posts.messages.append(first)
    wait_for(lambda: is_settled(cato), "the first answer")
    person.post(f"/t/{first.thread}/memory?to=no")
    return first.thread


@dataclass
class _Poster:
    """A person who posts in new, old and secret threads without waiting for the answers."""

    clients: list[Client]
    secret: str
    dice: random.Random
    posts: Posts
    started: float  # on the monotonic clock

    def run(self, ending: threading.Event) -> None:
        """Post until the event is set."""
        name = self.clients[0].name
        threads: list[str] = []
        number = 0
        while not ending.wait(self.dice.uniform(0.3, 1.2)):
            if (time.monotonic() - self.started) % _CYCLE > _CYCLE - _QUIET:
                continue
            number += 1
            thread = self.dice.choice([None, self.secret, *threads[-3:]])
            text = f"{name} says {number}: {self.dice.getrandbits(64):x}"
            message = PostedMessage(text, is_secret=thread == self.secret, wanted=thread)
            self.posts.send(self.clients, self.dice, message)
            if thread is None and message.thread:
                threads.append(message.thread)
