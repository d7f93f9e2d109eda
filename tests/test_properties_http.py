"""Whatever a team does on its pages, in whatever order: no page, card, file or socket gives what somebody may not read."""

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
# What a page sends where its reader lost the right: come back, and then signed out or nothing here.
LOST, REFUSED = (1013, 4401, 4404), (4401, 4404)


@dataclass
class Running:
    """A running Cato with its administrator, and words that no example before has used."""

    cato: Cato
    administrator: Client
    words: Iterator[str] = field(default_factory=made_up_words)


@dataclass(eq=False)
class Page:
    """A page somebody opened: who, on which thread (None: on none), signed in how often."""

    person: Person
    resource: Resource | None
    epoch: int
    socket: PageSocket


def one_of(some: Sequence[T], number: int) -> T:
    """The one of `some` that the number falls on."""
    return some[number % len(some)]


class PagesOfATeam(RuleBasedStateMachine):
    """Three people who joined for this example, in spaces of their own, two groups and the team's space.

    The team's space keeps what earlier examples and other tests left there: only this example's words are compared, and
    counts are held against what somebody read who had just joined.
    """

    def __init__(self, running: Running) -> None:
        super().__init__()
        self.cato, self.administrator, self.fresh = running.cato, running.administrator, running.words
        self.clients: dict[uuid.UUID, Client] = {}
        self.pages: list[Page] = []
        self.open = ExitStack()
        self.last: Resource | None = None
        self.steps = 0

    def teardown(self) -> None:
        self.open.close()

    @initialize()
    def people_join(self) -> None:
        people = {}
        for name in ("Bob", "Cleo", "Dan"):
            client = self.cato.join(self.administrator, f"{name} Team")
            id = self.id_of("SELECT id FROM people_user WHERE email = ?", client.email)
            own = self.id_of("SELECT id FROM memory_space WHERE owner_id = ?", id.hex)
            people[id], self.clients[id] = Person(id, own), client
        team = self.id_of("SELECT id FROM memory_space WHERE kind = 'team'")
        names = {self.group(name): name for name in (next(self.fresh), next(self.fresh))}
        self.team = Team(team, people, {group: set() for group in names}, names)
        self.ever = {id: set[str]() for id in people}
        self.before = self.count(self.clients[next(iter(people))])
        self.order = [*(person.personal_space for person in people.values()), *names, self.team.team]
        for who, which in ((0, 0), (1, 0), (1, 1)):
            self.join_or_leave(who, which, True)
        self.send_message(0, 0, 1)
        self.move(1, 0, 1)
        self.open_page(1, 0)
        self.let_in_or_out(2, True)

    def group(self, name: str) -> uuid.UUID:
        self.administrator.post("/admin/groups", {"name": f"Crew {name}"})
        group = self.id_of("SELECT id FROM memory_space WHERE name = ?", f"Crew {name}")
        self.administrator.post(f"/spaces/{group}/leave")
        return group

    def id_of(self, query: str, *parameters: object) -> uuid.UUID:
        return uuid.UUID(str(self.cato.sql(query, *parameters)[0][0]))

    def actor(self, number: int) -> Person | None:
        active = [person for person in self.team.people.values() if person.is_active]
        return one_of(active, number) if active else None

    def places(self, person: Person) -> list[uuid.UUID]:
        readable = self.team.readable_spaces(person.id)
        return [space for space in self.order if space in readable]

    def add(self, resource: Resource) -> None:
        self.last = resource
        self.team.resources.append(resource)

    # What people do.

    @rule(who=NUMBER, what=NUMBER, where=NUMBER)
    def send_message(self, who: int, what: int, where: int) -> None:
        person = self.actor(who)
        if person is None:
            return
        client, word = self.clients[person.id], next(self.fresh)
        resource = one_of([None, *self.team.resources_in(self.team.readable_spaces(person.id), "thread")], what)
        if resource is None:
            space = one_of(self.places(person), where)
            sent = {"message": sentence(word), "client_key": str(uuid.uuid4()), "space": str(space)}
            begun = client.post("/", sent).headers["location"].rsplit("/", 1)[1]
            resource = Resource("thread", uuid.UUID(begun), person.id, space, {word})
            self.team.resources.append(resource)
        else:
            client.send_message(sentence(word), str(resource.id))
        turn, exchange = wait_for(lambda: self.answered(resource.id, word), "the answer", every=0.02)
        resource.entries.append(Entry({word}, person.id, exchange, turn))
        self.last = resource

    def answered(self, thread: uuid.UUID, word: str) -> tuple[uuid.UUID, uuid.UUID] | None:
        query = "SELECT id, exchange_id FROM chat_turn WHERE thread_id = ? AND message = ? AND state = 'complete'"
        found = self.cato.sql(query, thread.hex, sentence(word))
        return (uuid.UUID(str(found[0][0])), uuid.UUID(str(found[0][1]))) if found else None

    @rule(who=NUMBER, where=NUMBER)
    def note(self, who: int, where: int) -> None:
        person = self.actor(who)
        if person is None:
            return
        space, word = one_of(self.places(person), where), next(self.fresh)
        name = self.label_words(space)
        card = self.command(person, f'/vadd "{sentence(word)}" --space "{name}"')
        assert "Remembered" in card
        kept = self.id_of("SELECT id FROM memory_exchange WHERE user_message = ?", sentence(word))
        self.add(Resource("note", kept, person.id, space, entries=[Entry({word}, person.id, kept)]))

    def label_words(self, space: uuid.UUID) -> str:
        if space in self.team.names:
            return f"Crew {self.team.names[space]}"
        return "team" if space == self.team.team else "own"

    @rule(who=NUMBER, where=NUMBER)
    def upload(self, who: int, where: int) -> None:
        person = self.actor(who)
        if person is None:
            return
        space, name, word = one_of(self.places(person), where), next(self.fresh), next(self.fresh)
        files = {"files": (f"{name}.txt", sentence(word).encode())}
        self.clients[person.id].post("/documents", {"space": str(space)}, files=files)
        query = "SELECT id FROM memory_document WHERE name = ? AND serving_id IS NOT NULL"
        wait_for(lambda: self.cato.sql(query, f"{name}.txt"), "the document to serve")
        entry = self.id_of("SELECT id FROM memory_exchange WHERE source_file = ?", f"{name}.txt")
        id = self.id_of(query, f"{name}.txt")
        self.add(Resource("document", id, person.id, space, {name}, set(), [Entry({word}, person.id, entry)]))

    @rule(who=NUMBER, what=NUMBER, where=NUMBER)
    def move(self, who: int, what: int, where: int) -> None:
        resources = self.team.resources_in(self.order, "thread", "document")
        resource = one_of(resources, what) if resources else None
        # Most often its owner; the others are refused.
        person = self.team.people[resource.owner] if resource and who % 4 else self.actor(who)
        if resource is None or person is None or not person.is_active:
            return
        to = one_of([space for space in self.places(person) if space != resource.space], where)
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

    @rule(who=NUMBER, which=NUMBER, is_in=st.booleans())
    def join_or_leave(self, who: int, which: int, is_in: bool) -> None:
        person, group = one_of(list(self.team.people), who), one_of(list(self.team.groups), which)
        sent = {"person": str(person), "change": "add" if is_in else "remove"}
        self.administrator.post(f"/spaces/{group}/members", sent)
        (self.team.groups[group].add if is_in else self.team.groups[group].discard)(person)

    @rule(who=NUMBER, is_active=st.booleans())
    def let_in_or_out(self, who: int, is_active: bool) -> None:
        person = one_of(list(self.team.people.values()), who)
        self.administrator.post(f"/admin/people/{person.id}/active", {"active": "yes" if is_active else "no"})
        person.is_active, person.epoch = is_active, person.epoch + 1
        assert self.clients[person.id].get("/").headers["location"].startswith("/sign-in")
        if is_active:
            self.clients[person.id] = self.cato.sign_in(self.clients[person.id])

    @rule(who=NUMBER, what=NUMBER)
    def forget(self, who: int, what: int) -> None:
        person, found = self.actor(who), list(self.team.findable_entries(self.order).items())
        if person is None or not found:
            return
        id, (resource, entry) = one_of(found, what)
        answer = self.clients[person.id].post(f"/m/{id}/forget")
        may = person.id == resource.owner and resource.space in self.team.readable_spaces(person.id)
        may = may or person.id == entry.author
        assert answer.status_code == (302 if may else 404)
        if may:
            entry.was_forgotten, self.last = True, resource

    @rule(what=NUMBER)
    def delete(self, what: int) -> None:
        resources = [
            resource
            for resource in self.team.resources_in(self.order, "thread", "document")
            if self.team.people[resource.owner].is_active
            and resource.space in self.team.readable_spaces(resource.owner)
        ]
        if not resources:
            return
        resource = one_of(resources, what)
        verb = "delete" if resource.kind == "thread" else "forget"
        assert self.clients[resource.owner].post(f"{address(resource)}/{verb}").status_code in (200, 302)
        resource.is_deleted, self.last = True, resource

    @rule(who=NUMBER, what=NUMBER)
    def open_page(self, who: int, what: int) -> None:
        person = self.actor(who)
        if person is None or len(self.pages) > 3:
            return
        resource = one_of([*self.team.resources_in(self.team.readable_spaces(person.id), "thread"), None], what)
        thread = str(resource.id) if resource else None
        socket = self.open.enter_context(open_socket(self.clients[person.id], thread))
        if resource is not None:
            socket.hello()
            assert words_in(socket.until("harbour")) >= set().union(*(entry.words for entry in resource.entries))
        self.pages.append(Page(person, resource, person.epoch, socket))

    # What they reach, held against the model.

    @invariant()
    def nobody_reaches_what_they_may_not(self) -> None:
        self.steps += 1
        for person in self.team.people.values():
            self.ever[person.id] |= self.may(person)
        for at, person in enumerate(self.team.people.values()):
            if not person.is_active:
                answers = [self.clients[person.id].get(path) for path in ("/", "/documents", "/search?q=harbour")]
                assert {answer.status_code for answer in answers} == {302}
                continue
            self.lists(person)
            if self.last is not None:
                self.at_its_address(person, self.last)
            if at == self.steps % len(self.team.people):
                self.whole(person)
        self.listen()

    def may(self, person: Person) -> set[str]:
        """The words that may be anywhere on this person's pages."""
        readable = self.team.readable_spaces(person.id)
        return self.team.words(readable) | {name for space, name in self.team.names.items() if space in readable}

    def words(self, text: str) -> set[str]:
        """This example's words in it."""
        everything = set().union(*(resource.words for resource in self.team.resources), self.team.names.values())
        return words_in(text) & everything

    def lists(self, person: Person) -> None:
        """What every page shows beside, the lists, and the number that counts it all."""
        client, readable = self.clients[person.id], self.team.readable_spaces(person.id)
        may = self.may(person)
        titles = {word for resource in self.team.resources_in(readable, "thread") for word in resource.names}
        names = {word for resource in self.team.resources_in(readable, "document") for word in resource.names}
        groups = {name for space, name in self.team.names.items() if space in readable}
        for path, must in (("/", groups | titles), ("/threads", titles), ("/documents", names | groups)):
            answer = client.get(path)
            assert answer.status_code == 200, path
            shown = self.words(answer.text)
            assert must <= shown <= may, (path, shown - may, must - shown)
        assert self.count(client) == self.before + len(self.team.findable_entries(readable))

    def count(self, client: Client) -> int:
        shown = re.search(r'<dd class="stat-tile__value">([\d,]+)</dd>', client.get("/stats").text)
        assert shown
        return int(shown[1].replace(",", ""))

    def at_its_address(self, person: Person, resource: Resource) -> None:
        """A thing at all of its addresses, and asked for by its words."""
        client, may = self.clients[person.id], self.may(person)
        is_there = resource.space in self.team.readable_spaces(person.id) and not resource.is_deleted
        for path in addresses(resource):
            self.opens(client, path, str(resource.id), is_there, may)
        for entry in resource.entries:
            found = is_there and not entry.is_forgotten
            self.opens(client, f"/m/{entry.exchange}", str(entry.exchange), found, may)
            if entry.turn:
                self.opens(client, f"/turns/{entry.turn}/recalled", str(entry.turn), is_there, may)
            self.asks_for(person, resource, entry, found)
        for word in resource.names:
            box = client.get(f"/find?q={word}", headers=HTMX).text
            assert (f'href="{address(resource)}' in box) == is_there
            assert self.words(box) <= may | {word}

    def opens(self, client: Client, path: str, id: str, is_there: bool, may: set[str]) -> None:
        """There or, in the very words with which something is not there that never was, not."""
        answer = client.get(path)
        assert self.words(answer.text) <= may, path
        if is_there:
            assert answer.status_code in (200, 302), path
            return
        never = client.get(path.replace(id, str(uuid.uuid4())))
        assert (answer.status_code, plain(answer)) == (404, plain(never)), path

    def asks_for(self, person: Person, resource: Resource, entry: Entry, is_found: bool) -> None:
        """Search page, the box and the cards of commands, asked for a piece's word."""
        client, may = self.clients[person.id], self.may(person)
        (word,) = entry.words
        for text in (self.search(client, word), client.get(f"/find?q={word}", headers=HTMX).text):
            assert (link(resource, entry) in text) == is_found
            assert self.words(text) <= may | {word}
        card = self.command(person, f"/vquery {word} 100")
        assert (str(entry.exchange) in card) == is_found
        assert self.words(card) <= may | {word}
        card = self.command(person, f"/vget {entry.exchange}")
        assert (word in self.words(card)) == is_found
        if not is_found:
            never = str(uuid.uuid4())
            assert card == self.command(person, f"/vget {never}")

    def whole(self, person: Person) -> None:
        """All of their own as a file, the number on the card, and the spaces they may name."""
        client, readable = self.clients[person.id], self.team.readable_spaces(person.id)
        with zipfile.ZipFile(io.BytesIO(client.post("/settings/export").content)) as archive:
            taken = self.words(
                " ".join(archive.namelist()) + "".join(archive.read(n).decode() for n in archive.namelist())
            )
        own = self.team.exported_words(person.id)
        assert own <= taken <= self.may(person), (own - taken, taken - self.may(person))
        assert f"{self.before + len(self.team.findable_entries(readable)):,}" in self.command(person, "/vstats")
        for space, name in self.team.names.items():
            if space not in readable:
                card = self.command(person, f'/vadd "nothing" --space "Crew {name}"')
                never = self.command(person, '/vadd "nothing" --space "Crew of nobody"')
                assert card.replace(name, "of nobody") == never

    def listen(self) -> None:
        """Open pages hear nothing that their reader could never read; who lost the right is let go within seconds."""
        for page in list(self.pages):
            resource, reads = page.resource, self.team.readable_spaces(page.person.id)
            is_lost = not page.person.is_active or page.person.epoch != page.epoch
            is_lost |= resource is not None and (resource.space not in reads or resource.is_deleted)
            if is_lost:
                assert page.socket.close_code(15) in LOST
                self.pages.remove(page)
                with open_socket(self.clients[page.person.id], str(resource.id) if resource else None) as again:
                    if resource is None and page.person.is_active:
                        continue
                    if (
                        resource is not None
                        and page.person.is_active
                        and resource.space in reads
                        and not resource.is_deleted
                    ):
                        continue
                    assert again.close_code() in REFUSED
            else:
                self.drain(page.socket)
            heard = self.words("".join(page.socket.received))
            assert heard <= self.ever[page.person.id], heard - self.ever[page.person.id]

    def drain(self, socket: PageSocket) -> None:
        """Hear what came; a page that is still allowed may be told to come back, but not to stay away."""
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
    """The pages and files of a thing."""
    if resource.kind == "thread":
        return [address(resource), *(f"{address(resource)}/export/{kind}" for kind in ("md", "json", "html"))]
    if resource.kind == "document":
        return [address(resource), f"{address(resource)}/row", f"{address(resource)}/original/1"]
    return []


def link(resource: Resource, entry: Entry) -> str:
    """What a page that found the piece leads to."""
    return address(resource) if resource.kind == "document" else f"/m/{entry.exchange}"


def plain(answer: httpx.Response, *, keep: bool = False) -> str:
    """The page without what differs each time it is asked for."""
    text = re.sub(r'(csrfmiddlewaretoken" value="|X-CSRFToken": "|client_key" value=")[\w-]+', "TOKEN", answer.text)
    return text if keep else re.sub(UUID, "ID", text)


def test_no_page_card_file_or_socket_gives_what_somebody_may_not_read(
    cato: Cato, administrator: Client, endpoint: FakeEndpoint
) -> None:
    endpoint.script("cato", answer="All right.")
    running = Running(cato, administrator)
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
