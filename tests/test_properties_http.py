"""Property test over HTTP: after any sequence of actions no page, card, file or socket reveals unreadable data."""

from __future__ import annotations

import io
import re
import uuid
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import TypeVar

import httpx
from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test
from websockets.exceptions import ConnectionClosed

from tests.fake_endpoint import FakeEndpoint
from tests.property_model import Entry, Person, Resource, Team, made_up_words, sentence, words_in
from tests.server import Cato, Client, wait_for
from tests.socket import PageSocket, open_socket
from tests.topology import IS_LONG

T = TypeVar("T")
HTMX = {"HX-Request": "true"}
NUMBER = st.integers(0, 11)
UUID = "[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
# Close codes of pages whose reader lost access: reconnect, then signed out or not found.
LOST, REFUSED = (1013, 4401, 4404), (4401, 4404)


@dataclass
class RunningCato:
    """A running Cato with its administrator, and words that no earlier example used."""

    cato: Cato
    administrator: Client
    words: Iterator[str] = field(default_factory=made_up_words)


@dataclass(eq=False)
class OpenPage:
    """An open page: person, thread (or None), and the login epoch."""

    person: Person
    resource: Resource | None
    epoch: int
    socket: PageSocket


def pick(items: Sequence[T], number: int) -> T:
    """Return the element of `items` that the number selects."""
    return items[number % len(items)]


class PagesOfATeam(RuleBasedStateMachine):
    """Three people who joined for this example, their personal spaces, two groups and the team's space.

    The team's space contains data of earlier examples and other tests: only words of this example are compared, and
    counts are relative to those of a new member.
    """

    def __init__(self, running: RunningCato) -> None:
        super().__init__()
        self.cato, self.administrator, self.fresh = running.cato, running.administrator, running.words
        self.clients: dict[uuid.UUID, Client] = {}
        self.pages: list[OpenPage] = []
        self.open = ExitStack()
        self.last: Resource | None = None
        self.steps = 0

    def teardown(self) -> None:
        self.open.close()

    @initialize()
    def create_people(self) -> None:
        people = {}
        for name in ("Bob", "Cleo", "Dan"):
            client = self.cato.join(self.administrator, f"{name} Team")
            id = self.id_of("SELECT id FROM people_user WHERE email = ?", client.email)
            own_space = self.id_of("SELECT id FROM memory_space WHERE owner_id = ?", id.hex)
            people[id], self.clients[id] = Person(id, own_space), client
        team = self.id_of("SELECT id FROM memory_space WHERE kind = 'team'")
        names = {self.create_group(name): name for name in (next(self.fresh), next(self.fresh))}
        self.team = Team(team, people, {group: set() for group in names}, names)
        self.ever = {id: set[str]() for id in people}
        self.before = self.exchange_count(self.clients[next(iter(people))])
        self.order = [*(person.personal_space for person in people.values()), *names, self.team.team]
        for person_number, group_number in ((0, 0), (1, 0), (1, 1)):
            self.change_membership(person_number, group_number, True)
        self.send_message(0, 0, 1)
        self.move(1, 0, 1)
        self.open_page(1, 0)
        self.set_active(2, True)

    def create_group(self, name: str) -> uuid.UUID:
        self.administrator.post("/admin/groups", {"name": f"Crew {name}"})
        group = self.id_of("SELECT id FROM memory_space WHERE name = ?", f"Crew {name}")
        self.administrator.post(f"/spaces/{group}/leave")
        return group

    def id_of(self, query: str, *parameters: object) -> uuid.UUID:
        return uuid.UUID(str(self.cato.sql(query, *parameters)[0][0]))

    def actor(self, number: int) -> Person | None:
        active = [person for person in self.team.people.values() if person.is_active]
        return pick(active, number) if active else None

    def writable_spaces(self, person: Person) -> list[uuid.UUID]:
        readable = self.team.readable_spaces(person.id)
        return [space for space in self.order if space in readable]

    def add(self, resource: Resource) -> None:
        self.last = resource
        self.team.resources.append(resource)

    # Actions

    @rule(person_number=NUMBER, resource_number=NUMBER, space_number=NUMBER)
    def send_message(self, person_number: int, resource_number: int, space_number: int) -> None:
        person = self.actor(person_number)
        if person is None:
            return
        client, word = self.clients[person.id], next(self.fresh)
        resource = pick(
            [None, *self.team.resources_in(self.team.readable_spaces(person.id), "thread")], resource_number
        )
        if resource is None:
            space = pick(self.writable_spaces(person), space_number)
            sent = {"message": sentence(word), "client_key": str(uuid.uuid4()), "space": str(space)}
            thread_id = client.post("/", sent).headers["location"].rsplit("/", 1)[1]
            resource = Resource("thread", uuid.UUID(thread_id), person.id, space, {word})
            self.team.resources.append(resource)
        else:
            client.send_message(sentence(word), str(resource.id))
        turn, exchange = wait_for(lambda: self.answer_ids(resource.id, word), "the answer", every=0.02)
        resource.entries.append(Entry({word}, person.id, exchange, turn))
        self.last = resource

    def answer_ids(self, thread: uuid.UUID, word: str) -> tuple[uuid.UUID, uuid.UUID] | None:
        query = "SELECT id, exchange_id FROM chat_turn WHERE thread_id = ? AND message = ? AND state = 'complete'"
        found = self.cato.sql(query, thread.hex, sentence(word))
        return (uuid.UUID(str(found[0][0])), uuid.UUID(str(found[0][1]))) if found else None

    @rule(person_number=NUMBER, space_number=NUMBER)
    def add_note(self, person_number: int, space_number: int) -> None:
        person = self.actor(person_number)
        if person is None:
            return
        space, word = pick(self.writable_spaces(person), space_number), next(self.fresh)
        name = self.group_name(space)
        card = self.command(person, f'/vadd "{sentence(word)}" --space "{name}"')
        assert "Remembered" in card
        stored = self.id_of("SELECT id FROM memory_exchange WHERE user_message = ?", sentence(word))
        self.add(Resource("note", stored, person.id, space, entries=[Entry({word}, person.id, stored)]))

    def group_name(self, space: uuid.UUID) -> str:
        if space in self.team.names:
            return f"Crew {self.team.names[space]}"
        return "team" if space == self.team.team else "own"

    @rule(person_number=NUMBER, space_number=NUMBER)
    def upload(self, person_number: int, space_number: int) -> None:
        person = self.actor(person_number)
        if person is None:
            return
        space, name, word = pick(self.writable_spaces(person), space_number), next(self.fresh), next(self.fresh)
        files = {"files": (f"{name}.txt", sentence(word).encode())}
        self.clients[person.id].post("/documents", {"space": str(space)}, files=files)
        query = "SELECT id FROM memory_document WHERE name = ? AND serving_id IS NOT NULL"
        wait_for(lambda: self.cato.sql(query, f"{name}.txt"), "the document to serve")
        entry = self.id_of("SELECT id FROM memory_exchange WHERE source_file = ?", f"{name}.txt")
        id = self.id_of(query, f"{name}.txt")
        self.add(Resource("document", id, person.id, space, {name}, set(), [Entry({word}, person.id, entry)]))

    @rule(person_number=NUMBER, resource_number=NUMBER, space_number=NUMBER)
    def move(self, person_number: int, resource_number: int, space_number: int) -> None:
        resources = self.team.resources_in(self.order, "thread", "document")
        resource = pick(resources, resource_number) if resources else None
        # Usually its owner; others are refused.
        person = self.team.people[resource.owner] if resource and person_number % 4 else self.actor(person_number)
        if resource is None or person is None or not person.is_active:
            return
        to = pick([space for space in self.writable_spaces(person) if space != resource.space], space_number)
        answer = self.clients[person.id].post(f"{address(resource)}/move", {"space": str(to)})
        if resource.owner != person.id or resource.space not in self.team.readable_spaces(person.id):
            assert answer.status_code == 404
            return
        before, resource.space, self.last = resource.space, to, resource
        gained = [
            id for id in self.clients if id in self.team.readers(to) and before not in self.team.readable_spaces(id)
        ]
        reader = self.clients[gained[0]] if gained else None
        word = next(iter(resource.entries[0].words))
        if reader and not resource.entries[0].is_forgotten:
            wait_for(lambda: link(resource, resource.entries[0]) in self.search(reader, word), "the search to find it")

    @rule(person_number=NUMBER, group_number=NUMBER, is_in=st.booleans())
    def change_membership(self, person_number: int, group_number: int, is_in: bool) -> None:
        person, group = pick(list(self.team.people), person_number), pick(list(self.team.groups), group_number)
        sent = {"person": str(person), "change": "add" if is_in else "remove"}
        self.administrator.post(f"/spaces/{group}/members", sent)
        (self.team.groups[group].add if is_in else self.team.groups[group].discard)(person)

    @rule(person_number=NUMBER, is_active=st.booleans())
    def set_active(self, person_number: int, is_active: bool) -> None:
        person = pick(list(self.team.people.values()), person_number)
        self.administrator.post(f"/admin/people/{person.id}/active", {"active": "yes" if is_active else "no"})
        person.is_active, person.epoch = is_active, person.epoch + 1
        assert self.clients[person.id].get("/").headers["location"].startswith("/sign-in")
        if is_active:
            self.clients[person.id] = self.cato.sign_in(self.clients[person.id])

    @rule(person_number=NUMBER, resource_number=NUMBER)
    def forget(self, person_number: int, resource_number: int) -> None:
        person, found = self.actor(person_number), list(self.team.findable_entries(self.order).items())
        if person is None or not found:
            return
        id, (resource, entry) = pick(found, resource_number)
        answer = self.clients[person.id].post(f"/m/{id}/forget")
        may = person.id == resource.owner and resource.space in self.team.readable_spaces(person.id)
        may = may or person.id == entry.author
        assert answer.status_code == (302 if may else 404)
        if may:
            entry.was_forgotten, self.last = True, resource

    @rule(resource_number=NUMBER)
    def delete(self, resource_number: int) -> None:
        resources = [
            resource
            for resource in self.team.resources_in(self.order, "thread", "document")
            if self.team.people[resource.owner].is_active
            and resource.space in self.team.readable_spaces(resource.owner)
        ]
        if not resources:
            return
        resource = pick(resources, resource_number)
        verb = "delete" if resource.kind == "thread" else "forget"
        assert self.clients[resource.owner].post(f"{address(resource)}/{verb}").status_code in (200, 302)
        resource.is_deleted, self.last = True, resource

    @rule(person_number=NUMBER, resource_number=NUMBER)
    def open_page(self, person_number: int, resource_number: int) -> None:
        person = self.actor(person_number)
        if person is None or len(self.pages) > 3:
            return
        resource = pick(
            [*self.team.resources_in(self.team.readable_spaces(person.id), "thread"), None], resource_number
        )
        thread = str(resource.id) if resource else None
        socket = self.open.enter_context(open_socket(self.clients[person.id], thread))
        if resource is not None:
            socket.hello()
            assert words_in(socket.until("harbour")) >= set().union(*(entry.words for entry in resource.entries))
        self.pages.append(OpenPage(person, resource, person.epoch, socket))

    # Checks against the model

    @invariant()
    def nobody_reaches_what_they_may_not(self) -> None:
        self.steps += 1
        for person in self.team.people.values():
            self.ever[person.id] |= self.allowed_words(person)
        for at, person in enumerate(self.team.people.values()):
            if not person.is_active:
                answers = [self.clients[person.id].get(path) for path in ("/", "/documents", "/search?q=harbour")]
                assert {answer.status_code for answer in answers} == {302}
                continue
            self.check_lists(person)
            if self.last is not None:
                self.check_pages(person, self.last)
            if at == self.steps % len(self.team.people):
                self.check_own_data(person)
        self.check_sockets()

    def allowed_words(self, person: Person) -> set[str]:
        """Return the words that may appear on any page of this person."""
        readable = self.team.readable_spaces(person.id)
        return self.team.words(readable) | {name for space, name in self.team.names.items() if space in readable}

    def example_words(self, text: str) -> set[str]:
        """Return the words of this example in the text."""
        everything = set().union(*(resource.words for resource in self.team.resources), self.team.names.values())
        return words_in(text) & everything

    def check_lists(self, person: Person) -> None:
        """Check the sidebar, the lists, and the total on the statistics page."""
        client, readable = self.clients[person.id], self.team.readable_spaces(person.id)
        may = self.allowed_words(person)
        titles = {word for resource in self.team.resources_in(readable, "thread") for word in resource.names}
        names = {word for resource in self.team.resources_in(readable, "document") for word in resource.names}
        groups = {name for space, name in self.team.names.items() if space in readable}
        for path, must in (("/", groups | titles), ("/threads", titles), ("/documents", names | groups)):
            answer = client.get(path)
            assert answer.status_code == 200, path
            tile = self.example_words(answer.text)
            assert must <= tile <= may, (path, tile - may, must - tile)
        assert self.exchange_count(client) == self.before + len(self.team.findable_entries(readable))

    def exchange_count(self, client: Client) -> int:
        tile = re.search(r'<dd class="stat-tile__value">([\d,]+)</dd>', client.get("/stats").text)
        assert tile
        return int(tile[1].replace(",", ""))

    def check_pages(self, person: Person, resource: Resource) -> None:
        """Check all pages of a resource, and searches for its words."""
        client, may = self.clients[person.id], self.allowed_words(person)
        is_visible = resource.space in self.team.readable_spaces(person.id) and not resource.is_deleted
        for path in addresses(resource):
            self.check_opens(client, path, str(resource.id), is_visible, may)
        for entry in resource.entries:
            found = is_visible and not entry.is_forgotten
            self.check_opens(client, f"/m/{entry.exchange}", str(entry.exchange), found, may)
            if entry.turn:
                self.check_opens(client, f"/turns/{entry.turn}/recalled", str(entry.turn), is_visible, may)
            self.check_search(person, resource, entry, found)
        for word in resource.names:
            box = client.get(f"/find?q={word}", headers=HTMX).text
            assert (f'href="{address(resource)}' in box) == is_visible
            assert self.example_words(box) <= may | {word}

    def check_opens(self, client: Client, path: str, id: str, is_visible: bool, may: set[str]) -> None:
        """Check that the page opens, or looks exactly like a missing one."""
        answer = client.get(path)
        assert self.example_words(answer.text) <= may, path
        if is_visible:
            assert answer.status_code in (200, 302), path
            return
        missing = client.get(path.replace(id, str(uuid.uuid4())))
        assert (answer.status_code, plain(answer)) == (404, plain(missing)), path

    def check_search(self, person: Person, resource: Resource, entry: Entry, is_found: bool) -> None:
        """Check the search page, quick search and command cards with the entry's word."""
        client, may = self.clients[person.id], self.allowed_words(person)
        (word,) = entry.words
        for text in (self.search(client, word), client.get(f"/find?q={word}", headers=HTMX).text):
            assert (link(resource, entry) in text) == is_found
            assert self.example_words(text) <= may | {word}
        card = self.command(person, f"/vquery {word} 100")
        assert (str(entry.exchange) in card) == is_found
        assert self.example_words(card) <= may | {word}
        card = self.command(person, f"/vget {entry.exchange}")
        assert (word in self.example_words(card)) == is_found
        if not is_found:
            missing = str(uuid.uuid4())
            assert card == self.command(person, f"/vget {missing}")

    def check_own_data(self, person: Person) -> None:
        """Check the export, the number on the card, and the spaces that can be chosen."""
        client, readable = self.clients[person.id], self.team.readable_spaces(person.id)
        with zipfile.ZipFile(io.BytesIO(client.export_everything())) as archive:
            archive_words = self.example_words(
                " ".join(archive.namelist()) + "".join(archive.read(n).decode() for n in archive.namelist())
            )
        own_words = self.team.exported_words(person.id)
        assert own_words <= archive_words <= self.allowed_words(person), (
            own_words - archive_words,
            archive_words - self.allowed_words(person),
        )
        assert f"{self.before + len(self.team.findable_entries(readable)):,}" in self.command(person, "/vstats")
        for space, name in self.team.names.items():
            if space not in readable:
                card = self.command(person, f'/vadd "nothing" --space "Crew {name}"')
                missing = self.command(person, '/vadd "nothing" --space "Crew of nobody"')
                assert card.replace(name, "of nobody") == missing

    def check_sockets(self) -> None:
        """Check that open pages receive only readable data, and that those without access close within seconds."""
        for page in list(self.pages):
            resource, reads = page.resource, self.team.readable_spaces(page.person.id)
            is_lost = not page.person.is_active or page.person.epoch != page.epoch
            is_lost |= resource is not None and (resource.space not in reads or resource.is_deleted)
            if is_lost:
                assert page.socket.close_code(15) in LOST
                self.pages.remove(page)
                with open_socket(self.clients[page.person.id], str(resource.id) if resource else None) as reconnected:
                    if resource is None and page.person.is_active:
                        continue
                    if (
                        resource is not None
                        and page.person.is_active
                        and resource.space in reads
                        and not resource.is_deleted
                    ):
                        continue
                    assert reconnected.close_code() in REFUSED
            else:
                self.drain(page.socket)
            received_words = self.example_words("".join(page.socket.received))
            assert received_words <= self.ever[page.person.id], received_words - self.ever[page.person.id]

    def drain(self, socket: PageSocket) -> None:
        """Receive pending frames; a page with access may be told to reconnect, but not be rejected."""
        try:
            while True:
                socket.received.append(str(socket.connection.recv(timeout=0)))
        except TimeoutError:
            return
        except ConnectionClosed as closed:
            raise AssertionError("an open page of somebody who may read it was let go") from closed

    def search(self, client: Client, word: str) -> str:
        return client.get(f"/search?q={word}", headers=HTMX).text

    def command(self, person: Person, text: str) -> str:
        sent = {"message": text, "client_key": str(uuid.uuid4())}
        return plain(self.clients[person.id].post("/", sent, htmx=True), keep=True)


def address(resource: Resource) -> str:
    return f"/{'t' if resource.kind == 'thread' else 'd'}/{resource.id}"


def addresses(resource: Resource) -> list[str]:
    """Return the pages and files of a resource."""
    if resource.kind == "thread":
        return [address(resource), *(f"{address(resource)}/export/{kind}" for kind in ("md", "json", "html"))]
    if resource.kind == "document":
        return [address(resource), f"{address(resource)}/row", f"{address(resource)}/original/1"]
    return []


def link(resource: Resource, entry: Entry) -> str:
    """Return the link to the entry on a page that found it."""
    return address(resource) if resource.kind == "document" else f"/m/{entry.exchange}"


def plain(answer: httpx.Response, *, keep: bool = False) -> str:
    """Return the page without its volatile parts."""
    text = re.sub(r'(csrfmiddlewaretoken" value="|X-CSRFToken": "|client_key" value=")[\w-]+', "TOKEN", answer.text)
    return text if keep else re.sub(UUID, "ID", text)


def test_no_page_card_file_or_socket_reveals_unreadable_data(
    cato: Cato, administrator: Client, endpoint: FakeEndpoint
) -> None:
    endpoint.script("cato", answer="All right.")
    running = RunningCato(cato, administrator)
    run_state_machine_as_test(
        lambda: PagesOfATeam(running),
        settings=settings(
            derandomize=True,
            max_examples=5 if IS_LONG else 2,
            stateful_step_count=10,
            deadline=None,
            database=None,
            phases=[Phase.generate],
        ),
    )
