"""Property test in process: after any sequence of actions everybody reaches exactly what they may read."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from datetime import timedelta
from itertools import islice
from typing import Any, TypeVar

import pytest
from django.contrib.auth.backends import ModelBackend
from django.contrib.sessions.models import Session as LoginSession
from django.db import transaction
from django.utils import timezone
from hypothesis import Phase
from hypothesis import settings as examples
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

from cato_web.accounts import groups, roles
from cato_web.accounts.export import archive
from cato_web.accounts.export.selection import select_own
from cato_web.accounts.models import User
from chat import access, commands, export, quick_search
from chat import services as chat
from chat.answers import persistence, preparation, recall
from chat.errors import ChatError
from chat.llm import endpoint
from chat.models import Thread, Turn
from chat.realtime import frames, sync
from chat.realtime.notifications import active_readers
from chat.rows import sidebar
from chat.rows.personal_recall import personal_rows
from chat.rows.turns import turn_rows
from memory import api as memory
from memory.documents.queries import active_documents, document_statuses, list_chunks, readable_document
from memory.errors import CatoError, NotFoundError
from memory.exchanges.feedback import set_feedback
from memory.filters import parse_filter
from memory.index import generations, store
from memory.lexical.candidates import build_lexical_query, lexical_candidates
from memory.models import Chunk, Collection, Space
from memory.retrieval import strategies
from memory.retrieval.candidate_rows import CandidateLoader
from memory.retrieval.levels import configured_level
from memory.retrieval.recall_filter import RecallFilter, describe_recall_filter
from memory.retrieval.recall_log import RecallRate, recall_counts, recall_rate
from memory.retrieval.search import rank
from memory.spaces import access as spaces
from memory.views.forms import space_choices
from tests.factories import AdministratorFactory, PersonFactory, answer_job, process_documents, upload
from tests.factories import group as make_group
from tests.property_model import COMMON, Entry, Person, Resource, Team, made_up_words, sentence, words_in
from tests.topology import IS_LONG

pytestmark = pytest.mark.django_db

T = TypeVar("T")
NUMBER = st.integers(0, 23)
ALL = 100
NOWHERE = uuid.UUID(int=7)


@dataclass(frozen=True)
class Base:
    """State before each example: accounts with their spaces, and groups, with unique words as names."""

    people: list[User]
    groups: list[Space]
    names: list[str]


@pytest.fixture
def base(chroma: None, db: None) -> Base:
    people = [AdministratorFactory(), PersonFactory(), PersonFactory(), PersonFactory()]
    names = list(islice(made_up_words(), 2))
    spaces_ = [make_group(f"Crew {name}") for name in names]
    endpoint.save(base_url="http://127.0.0.1:9/v1", api_key="none", model="fake")
    generations.active_generation()
    return Base(people, spaces_, names)


def pick(items: Sequence[T], number: int) -> T | None:
    """Return the element of `items` that the number selects."""
    return items[number % len(items)] if items else None


class TeamLife(RuleBasedStateMachine):
    """A team at work; after each step, everything that its people can reach is compared with the model.

    An example runs in a savepoint that is rolled back at its end, and its collections are dropped. So each starts with
    the same accounts and groups, and no collection contains earlier vectors.
    """

    def __init__(self, base: Base) -> None:
        super().__init__()
        self.example = transaction.atomic()
        self.example.__enter__()
        self.rows = {person.pk: person for person in base.people}
        self.ids, self.admin = list(self.rows), base.people[0]
        people = {
            p.pk: Person(p.pk, spaces.personal_space(p.pk).pk, is_administrator=p.is_administrator) for p in base.people
        }
        names = {group.pk: name for group, name in zip(base.groups, base.names, strict=True)}
        self.team = Team(spaces.team_space().pk, people, {group: set() for group in names}, names)
        self.words = islice(made_up_words(), len(base.names), None)
        self.order = [*(person.personal_space for person in people.values()), *names, self.team.team]
        self.seats: list[tuple[access.SocketIdentity, int, str, Resource | None]] = []
        self.last: Resource | None = None
        self.is_settled, self.steps = True, 0

    def teardown(self) -> None:
        for collection in Collection.objects.values_list("name", flat=True):
            store.drop(collection)
        transaction.set_rollback(True)
        self.example.__exit__(None, None, None)

    # Selection, always in order of creation, so that equal numbers select equal elements.

    def actor(self, number: int) -> Person | None:
        return pick([person for person in self.team.people.values() if person.is_active], number)

    def writable_spaces(self, person: Person) -> list[uuid.UUID]:
        readable = self.team.readable_spaces(person.id)
        return [space for space in self.order if space in readable]

    def add(self, resource: Resource) -> None:
        self.team.resources.append(resource)
        self.mark_changed(resource)

    def mark_changed(self, resource: Resource) -> None:
        self.last, self.is_settled = resource, False

    def assert_refused(self, verb: Any, *arguments: Any, **options: Any) -> None:
        """Assert that the call fails as for a missing object."""
        with pytest.raises((ChatError, CatoError)) as caught:
            verb(*arguments, **options)
        with pytest.raises(type(caught.value)) as unknown:
            verb(*(uuid.uuid4() if argument is arguments[-1] else argument for argument in arguments), **options)
        assert str(caught.value) == str(unknown.value)

    # Actions

    @initialize()
    def create_team(self) -> None:
        _, bob, cleo, _ = self.ids
        first, second = self.team.groups
        for person, group in ((bob, first), (cleo, first), (cleo, second)):
            groups.add_member(memory.get_group(group), self.rows[person], by=self.admin)
            self.team.groups[group].add(person)
        self.send_message(1, 0, 1, True, True)
        self.send_message(2, 0, 3, True, False)
        self.add_note(2, 0)
        self.upsert_record(1, 1)
        self.upload(2, 1)
        self.run_worker()
        self.send_message(1, 0, 0, True, True)
        self.send_message(2, 0, 2, True, True)
        self.run_worker()
        for person_number in range(len(self.ids)):
            self.open_page(person_number, 0)
        self.move(1, 0, 1)

    @rule(
        person_number=NUMBER,
        resource_number=NUMBER,
        space_number=NUMBER,
        is_remembered=st.booleans(),
        is_titled=st.booleans(),
    )
    def send_message(
        self, person_number: int, resource_number: int, space_number: int, is_remembered: bool, is_titled: bool
    ) -> None:
        person = self.actor(person_number)
        if person is None:
            return
        text, reply, title = islice(self.words, 3)
        message = f"Where lies the {text.capitalize()}? What lies in the {COMMON} until the evening?"
        resource = pick(
            [None, *self.team.resources_in(self.team.readable_spaces(person.id), "thread")], resource_number
        )
        key = uuid.uuid4()
        if resource is None:
            space = pick(self.writable_spaces(person), space_number)
            space_row = spaces.get_space(person.id, space)
            turn = chat.create_thread_with_message(
                person.id, message=message, client_key=key, space=space_row, is_remembered=is_remembered
            ).turn
            resource = Resource("thread", turn.thread_id, person.id, space_row.pk, {text}, is_remembered=is_remembered)
            self.team.resources.append(resource)
            if is_titled:
                chat.rename_thread(turn.thread, f"About {title}")
                resource.names = {title}
        else:
            thread = access.get_thread(person.id, resource.id)
            turn = chat.post_message(thread.id, author_id=person.id, message=message, client_key=key).turn
        self.answer(turn, resource, person, text, reply)

    def answer(self, turn: Turn, resource: Resource, person: Person, text: str, reply: str) -> None:
        """Log the recall for a turn, and remember its answer."""
        may = self.team.shared_by_all_readers(resource.space)
        history = {entry.stored_as for entry in resource.entries if not entry.is_forgotten}
        candidates = {id for id in self.team.findable_entries(may) if id not in history}
        job = answer_job(turn)
        turn_recall = recall.recall_for_turn(job)
        recalled = {result.exchange.id for result in turn_recall.search_results.results}
        assert recalled <= candidates, "what was recalled is for all who read the thread"
        if self.is_settled:
            assert len(recalled) == min(5, len(candidates)), "what all who read the thread may read is recalled"
        prepared = preparation.prepare_answer(job, turn_recall, 7)
        assert prepared is not None
        own_words = {word for entry in resource.entries if not entry.is_forgotten for word in entry.words}
        assert words_in(prepared.messages) <= self.team.findable_words(may) | own_words | {text}
        ending = persistence.AnswerOutcome(Turn.State.COMPLETE, f"Noted, {reply}.")
        persistence.complete_turn(job, ending, prepared.revision + 1)
        turn.refresh_from_db()
        assert (turn.exchange_id is not None) == resource.is_remembered
        resource.entries.append(Entry({text, reply}, person.id, turn.exchange_id, turn.id, tuple(recalled)))
        self.mark_changed(resource)

    @rule(person_number=NUMBER, space_number=NUMBER)
    def add_note(self, person_number: int, space_number: int) -> None:
        person = self.actor(person_number)
        space = pick(self.writable_spaces(person), space_number) if person else None
        if person is None or space is None:
            return
        word = next(self.words)
        space_row = spaces.get_space(person.id, space)
        (stored,) = memory.add_note(
            sentence(word), space=space_row, owner_id=person.id, source="vadd_command", manual_entry=True
        )
        self.add(Resource("note", stored.pk, person.id, space, entries=[Entry({word}, person.id, stored.pk)]))

    @rule(person_number=NUMBER, space_number=NUMBER)
    def upsert_record(self, person_number: int, space_number: int) -> None:
        person = self.actor(person_number)
        space = pick(self.writable_spaces(person), space_number) if person else None
        if person is None or space is None:
            return
        name, word, value = islice(self.words, 3)
        record = memory.NewRecord(name, sentence(word), {"zone": value})
        (stored,) = memory.upsert_records([record], space=spaces.get_space(person.id, space), owner_id=person.id)
        self.add(Resource("record", stored, person.id, space, {name}, {value}, [Entry({word}, person.id, stored)]))

    @rule(person_number=NUMBER, space_number=NUMBER)
    def upload(self, person_number: int, space_number: int) -> None:
        person = self.actor(person_number)
        space = pick(self.writable_spaces(person), space_number) if person else None
        if person is None or space is None:
            return
        name, word, value = islice(self.words, 3)
        space_row, owner = spaces.get_space(person.id, space), self.rows[person.id]
        received = upload(owner, f"{name}.txt", sentence(word), space=space_row, metadata={"zone": value})
        entries = [Entry({word}, person.id)]
        self.add(
            Resource(
                "document", received.version.document_id, person.id, space, {name}, {value}, entries, is_running=True
            )
        )

    @rule(person_number=NUMBER, resource_number=NUMBER, space_number=NUMBER)
    def move(self, person_number: int, resource_number: int, space_number: int) -> None:
        resource = pick(self.movable_resources(), resource_number)
        # Usually its owner; others are refused.
        person = self.team.people[resource.owner] if resource and person_number % 4 else self.actor(person_number)
        if person is None or resource is None or not person.is_active:
            return
        to = pick([space for space in self.writable_spaces(person) if space != resource.space], space_number)
        space_row = spaces.get_space(person.id, to)
        if resource.kind == "thread":
            if resource.owner != person.id or resource.space not in self.team.readable_spaces(person.id):
                self.assert_refused(access.get_owned_thread, person.id, resource.id)
                return
            chat.move_thread(access.get_owned_thread(person.id, resource.id), to=space_row, by=person.id)
        else:
            if resource.space not in self.team.readable_spaces(person.id):
                self.assert_refused(readable_document, spaces.readable_space_ids(person.id), resource.id)
                return
            document = readable_document(spaces.readable_space_ids(person.id), resource.id)
            if resource.is_running:
                with pytest.raises(CatoError, match="still being read"):
                    memory.move_document(document, to=space_row, by=person.id)
                return
            memory.move_document(document, to=space_row, by=person.id)
        resource.space = space_row.pk
        self.mark_changed(resource)

    def movable_resources(self) -> list[Resource]:
        return [resource for resource in self.team.resources_in(self.order) if resource.kind in ("thread", "document")]

    @rule(group_number=NUMBER, person_number=NUMBER)
    def join_group(self, group_number: int, person_number: int) -> None:
        group, person = pick(list(self.team.groups), group_number), pick(self.ids, person_number)
        assert group
        assert person
        groups.add_member(memory.get_group(group), self.rows[person], by=self.admin)
        self.team.groups[group].add(person)

    @rule(group_number=NUMBER, person_number=NUMBER)
    def leave_group(self, group_number: int, person_number: int) -> None:
        group, person = pick(list(self.team.groups), group_number), pick(self.ids, person_number)
        assert group
        assert person
        groups.remove_member(memory.get_group(group), person, by=self.admin)
        self.team.groups[group].discard(person)

    @property
    def others(self) -> list[Person]:
        """Return everybody but the administrator, who cannot change their own role or account."""
        return [person for person in self.team.people.values() if person.id != self.admin.pk]

    @rule(person_number=NUMBER, is_active=st.booleans())
    def set_active(self, person_number: int, is_active: bool) -> None:
        person = pick(self.others, person_number)
        assert person
        roles.set_active(person.id, is_active, by=self.admin)
        person.is_active, person.epoch = is_active, person.epoch + 1

    @rule(person_number=NUMBER, role=st.sampled_from(User.Role.values))
    def change_role(self, person_number: int, role: str) -> None:
        person = pick(self.others, person_number)
        assert person
        roles.set_role(self.rows[person.id], role, by=self.admin)
        person.is_administrator = role == User.Role.ADMINISTRATOR

    @rule(person_number=NUMBER, resource_number=NUMBER)
    def forget(self, person_number: int, resource_number: int) -> None:
        person, found = self.actor(person_number), list(self.team.findable_entries(self.order).items())
        chosen = pick(found, resource_number)
        if person is None or chosen is None:
            return
        id, (resource, entry) = chosen
        may = person.is_administrator or (resource.kind == "thread" and resource.owner == person.id)
        verb = chat.forget_exchange
        if entry.author == person.id or (may and resource.space in self.team.readable_spaces(person.id)):
            verb(person.id, id, is_administrator=person.is_administrator)
            entry.was_forgotten = True
            self.mark_changed(resource)
        else:
            self.assert_refused(verb, person.id, id, is_administrator=person.is_administrator)

    @rule(resource_number=NUMBER, is_remembered=st.booleans(), forgets=st.booleans())
    def set_remembered(self, resource_number: int, is_remembered: bool, forgets: bool) -> None:
        resource = pick(self.team.resources_in(self.order, "thread"), resource_number)
        if resource is None:
            return
        thread = Thread.objects.get(id=resource.id)
        chat.set_memory_enabled(thread, is_remembered)
        resource.is_remembered = is_remembered
        if forgets and not is_remembered:
            chat.forget_thread_exchanges(thread, by=resource.owner)
            for entry in resource.entries:
                entry.was_forgotten = entry.was_forgotten or entry.exchange is not None
        self.mark_changed(resource)

    @rule(resource_number=NUMBER)
    def delete(self, resource_number: int) -> None:
        resource = pick(self.team.resources_in(self.order, "thread", "document", "record"), resource_number)
        if resource is None:
            return
        if resource.kind == "thread":
            chat.delete_thread(Thread.objects.get(id=resource.id))
        else:
            if resource.kind == "document":
                memory.forget_documents([resource.id], by=resource.owner)
            else:
                deleted_count = memory.delete_records(
                    spaces=frozenset({resource.space}), by=resource.owner, ids=resource.names
                )
                assert deleted_count == (not resource.entries[0].is_forgotten)
            for entry in resource.entries:
                entry.was_forgotten = True
        resource.is_deleted = True
        self.mark_changed(resource)

    @rule(resource_number=NUMBER, person_number=NUMBER)
    def restore(self, resource_number: int, person_number: int) -> None:
        person = self.actor(person_number)
        resource = pick([t for t in self.team.resources if t.kind == "thread" and t.is_deleted], resource_number)
        if person is None or resource is None:
            return
        is_visible = Thread.objects.filter(id=resource.id).exists()
        if resource.owner == person.id and resource.space in self.team.readable_spaces(person.id) and is_visible:
            assert chat.restore_thread(access.get_deleted_thread(person.id, resource.id))
            resource.is_deleted = False
            self.mark_changed(resource)
        else:
            self.assert_refused(access.get_deleted_thread, person.id, resource.id)

    @rule()
    def erase_deleted(self) -> None:
        Thread.objects.exclude(deleted_at=None).update(deleted_at=timezone.now() - timedelta(minutes=1))
        while chat.purge_deleted():
            self.is_settled = False
        for resource in self.team.resources:
            for entry in resource.entries if resource.is_deleted else ():
                entry.was_forgotten = True

    @rule(person_number=NUMBER, resource_number=NUMBER, at=NUMBER)
    def fork(self, person_number: int, resource_number: int, at: int) -> None:
        person = self.actor(person_number)
        resource = pick(self.team.resources_in(self.order, "thread"), resource_number)
        entry = pick(resource.entries, at) if resource else None
        if person is None or resource is None or entry is None:
            return
        if resource.space not in self.team.readable_spaces(person.id):
            self.assert_refused(access.get_turn, person.id, resource.id, entry.turn)
            return
        forked = chat.fork_thread(access.get_turn(person.id, resource.id, entry.turn), person_id=person.id)
        copied = resource.entries[: resource.entries.index(entry) + 1]
        turns = list(forked.turns.order_by("position").values_list("id", flat=True))
        entries = [Entry(p.words, p.author, turn=turn, of=p) for p, turn in zip(copied, turns, strict=True)]
        own_space, is_remembered = self.team.people[person.id].personal_space, resource.is_remembered
        self.add(
            Resource("thread", forked.id, person.id, own_space, set(resource.names), set(), entries, is_remembered)
        )

    @rule(person_number=NUMBER, resource_number=NUMBER)
    def pin(self, person_number: int, resource_number: int) -> None:
        person = self.actor(person_number)
        found = list(self.team.findable_entries(self.team.readable_spaces(person.id))) if person else []
        chosen = pick(found, resource_number)
        if person and chosen:
            set_feedback(person.id, access.get_exchange(person.id, chosen), "pinned")

    @rule(person_number=NUMBER, resource_number=NUMBER)
    def open_page(self, person_number: int, resource_number: int) -> None:
        person = self.actor(person_number)
        if person is None:
            return
        resource = pick(
            [None, *self.team.resources_in(self.team.readable_spaces(person.id), "thread")], resource_number
        )
        user = User.objects.get(pk=person.id)
        login_session = LoginSession.objects.create(
            session_key=uuid.uuid4().hex, expire_date=timezone.now() + timedelta(days=1)
        )
        seat = access.SocketIdentity(
            person.id, login_session.session_key, user.epoch, resource.id if resource else None
        )
        self.seats.append((seat, person.epoch, user.get_session_auth_hash(), resource))

    @rule()
    def run_worker(self) -> None:
        process_documents()
        chat.interrupt_stale_answers()
        for resource in self.team.resources_in(self.order, "document"):
            if resource.is_running:
                (chunk,) = Chunk.objects.filter(version__document_id=resource.id)
                resource.entries[0].exchange, resource.is_running = chunk.exchange_id, False
        self.is_settled = True

    # Checks against the model

    @invariant()
    def everybody_reaches_exactly_what_they_may(self) -> None:
        self.steps += 1
        self.check_sockets()
        self.check_shared_pages()
        for at, person in enumerate(self.team.people.values()):
            self.check_core(person)
            # The other interfaces take longer: after each step, half of them for one person.
            if at == self.steps // 2 % len(self.team.people):
                (self.check_own_data if self.steps % 2 else self.check_last_changed)(person)

    def compare(
        self, interface: str, actual: AbstractSet[T], may: AbstractSet[T], *, must: AbstractSet[T] | None = None
    ) -> None:
        """Assert that an interface returned only allowed words and all required ones (by default all allowed)."""
        more, less = set(actual) - set(may), set(may if must is None else must) - set(actual)
        assert not more, f"{interface} gives more: {more}"
        assert not less, f"{interface} gives less: {less}"

    def check_sockets(self) -> None:
        """Check subscribers, notifications and login sessions."""
        allowed = access.authorize_sockets(seat for seat, *_ in self.seats)
        for seat, epoch, signed, resource in self.seats:
            person = self.team.people[seat.person_id]
            is_readable = resource is None or (
                resource.space in self.team.readable_spaces(person.id) and not resource.is_deleted
            )
            assert (seat in allowed) == (person.is_active and person.epoch == epoch and is_readable)
            is_same = User.objects.get(pk=person.id).get_session_auth_hash() == signed
            assert is_same == (person.epoch == epoch), "a sign-in ends with the epoch it began in"
        for person in self.team.people.values():
            assert (ModelBackend().get_user(person.id) is not None) == person.is_active
        for space in Space.objects.all():
            self.compare("told", active_readers(space), self.team.readers(space.pk))

    def check_shared_pages(self) -> None:
        """Check what is rendered once for all readers of a thread: page, frames, exports."""
        for resource in self.team.resources_in(self.order, "thread"):
            thread = Thread.objects.select_related("space", "owner").get(id=resource.id)
            turns = list(thread.turns.active_branch().select_related("author"))
            found = self.team.findable_entries(self.team.shared_by_all_readers(resource.space))
            listed_ids = {id for entry in resource.entries for id in entry.recalled if id in found}
            labels = {word for id in listed_ids for word in found[id][0].label_words | found[id][1].words}
            panels = memory.recalled_for(
                [t.id for t in turns], spaces=spaces.space_ids_shared_by_all_readers(thread.space_id)
            )
            in_panels = {item.exchange.id for items in panels.values() for item in items if item.exchange}
            self.compare("panels", in_panels, listed_ids)
            page = words_in(turn_rows(thread, turns))
            self.compare("page", page, resource.words | labels, must=resource.words - resource.label_words)
            if resource is self.last:
                for write in (export.to_markdown, export.to_json, export.to_html):
                    self.compare(
                        "export", words_in("".join(write(thread, turns))), resource.words | labels, must=resource.words
                    )

    def check_core(self, person: Person) -> None:
        """Check the basic interfaces: spaces, vector and lexical search, lists, ids."""
        readable, team = spaces.readable_space_ids(person.id), self.team
        may = team.readable_spaces(person.id)
        found = team.findable_entries(may)
        self.compare("spaces", readable, may)
        results = memory.search(COMMON, spaces=readable, count=ALL).results
        self.compare("search", {result.exchange.id for result in results}, found)
        self.compare("what search shows", words_in(results), team.findable_words(may), must=self.texts_of(found))
        reader = CandidateLoader(readable, generations.active_generation().pk)
        sharing = lexical_candidates(build_lexical_query(COMMON, readable), list(readable), ALL)
        reader.read(sharing)
        self.compare("words", {uuid.UUID(id) for id in sharing if id in reader.rows}, found)
        self.compare("what is beside them", {uuid.UUID(id) for id in reader.rows}, found)
        threads, documents = team.resources_in(may, "thread"), team.resources_in(may, "document")
        listed = {link.id for part in sidebar.thread_list(person.id, None).groups for link in part.threads}
        self.compare("list", listed, {resource.id for resource in threads})
        states = document_statuses(active_documents(readable).select_related("space", "owner"))
        self.compare("documents", {state.id for state in states}, {resource.id for resource in documents})
        if self.last is not None:
            self.check_by_id(person, self.last)
        figures = memory.memory_counts(readable)
        sources = [resource.source for resource, _ in found.values()]
        assert figures.exchanges == len(found)
        assert figures.by_source == {source: sources.count(source) for source in set(sources)}
        if self.is_settled:
            assert (figures.pending, figures.failed, figures.to_erase) == (0, 0, 0)

    def check_by_id(self, person: Person, resource: Resource) -> None:
        """Check the object's page: it opens, or looks like a missing one."""
        may = resource.space in self.team.readable_spaces(person.id) and not resource.is_deleted
        if resource.kind == "thread":
            self.check_opens("thread", may, access.get_thread, person.id, resource.id)
        if resource.kind == "document":
            self.check_opens("document", may, readable_document, spaces.readable_space_ids(person.id), resource.id)
        for entry in resource.entries:
            if entry.exchange:
                is_visible = may and not entry.is_forgotten
                self.check_opens("exchange", is_visible, access.get_exchange, person.id, entry.exchange)

    def check_opens(self, interface: str, may: bool, verb: Any, *arguments: Any) -> None:
        text = ""
        try:
            verb(*arguments)
        except (ChatError, CatoError) as error:
            text = str(error)
        assert text == ("" if may else str(NotFoundError())), f"{interface} gives {'less' if may else 'more'}"

    def check_own_data(self, person: Person) -> None:
        """Check interfaces to all data of a person: by id, vector search, records, counts, export."""
        readable, team = spaces.readable_space_ids(person.id), self.team
        may = team.readable_spaces(person.id)
        found = team.findable_entries(may)
        records = {id for id, (resource, _) in found.items() if resource.kind == "record"}
        hits = memory.query_records(spaces=readable, text=COMMON, top_k=ALL)
        self.compare("records", {hit.exchange_id for hit in hits}, records)
        self.check_counts(person)
        by_meaning = rank(COMMON, spaces=readable, limit=ALL, strategy_name="default").results
        exact = found if self.is_settled else ()
        self.compare("meaning", {result.exchange.id for result in by_meaning}, found, must=exact)
        threads = team.resources_in(may, "thread")
        groups_of = {team.names[space] for space in may if space in team.names}
        drawn = words_in(frames.thread_list(person.id, threads[0].id if threads else None))
        self.compare("drawn list", drawn, self.names(threads) | groups_of, must=self.names(threads))
        self.compare("groups", words_in(*(space_row.name for space_row in space_choices(person.id))), groups_of)
        for resource in team.resources[self.steps % 3 :: 3]:
            self.check_by_id(person, resource)
        export_text = b"".join(
            b"".join(member.chunks)
            for member in archive.archive_files(select_own(self.rows[person.id], timezone.now()))
        )
        text = team.exported_words(person.id)
        self.compare(
            "own data", words_in(export_text.decode()), text | groups_of | self.recalled_labels(person), must=text
        )

    def check_last_changed(self, person: Person) -> None:
        """Check the interfaces to the resource that changed last."""
        readable, team, last = spaces.readable_space_ids(person.id), self.team, self.last
        if last is None:
            return
        may = team.readable_spaces(person.id)
        found, readable_resources, all_words = team.findable_entries(may), team.resources_in(may), team.words(may)
        is_readable = last in readable_resources
        words = sorted(last.label_words.union(*(entry.words for entry in last.entries)))
        self.check_search_for(person, words[self.steps % len(words)])
        if last.kind == "thread":
            entries = {id for id, (resource, _) in found.items() if resource is last}
            topic = memory.search_by_topic(COMMON, spaces=readable, thread_id=last.id).results
            self.compare("topic", {result.exchange.id for result in topic}, entries)
            others = {
                t.id
                for t in readable_resources
                if t.kind == "thread" and t is not last and any(p.exchange in found for p in t.entries)
            }
            related = {thread.thread_id for thread in memory.related_threads(last.id, spaces=readable)}
            self.compare("related", related, others if entries else (), must=())
            if is_readable:
                html = sync.missing_updates(person.id, last.id, {})[0]
                self.compare("socket", words_in(html), all_words, must=last.words - last.label_words)
                turn = Turn.objects.select_related("thread").filter(thread_id=last.id).last()
                rows = personal_rows(turn, person.id, is_administrator=person.is_administrator) if turn else []
                self.compare("own panel", words_in(rows), all_words, must=())
        if last.kind == "document" and is_readable:
            document = readable_document(readable, last.id)
            chunk_rows = list_chunks(document, since=0, count=9)
            text = set() if last.is_running else last.words - last.label_words
            self.compare("document", words_in(document.name, document.metadata, chunk_rows), last.label_words | text)
        if last.kind == "document":
            options = last.names & words_in(*describe_recall_filter(RecallFilter((last.id,)), spaces=readable))
            assert bool(options) == is_readable
        self.check_commands(person, last)

    def check_counts(self, person: Person) -> None:
        """Check recall counts and answers with context as far as this person may know them."""
        readable, may = spaces.readable_space_ids(person.id), self.team.readable_spaces(person.id)
        entries = [entry for resource in self.team.resources for entry in resource.entries]
        times = recall_counts([entry.exchange for entry in entries if entry.exchange], spaces=readable)
        assert times == self.team.times_recalled(may)
        answers = [entry for _, entry in self.team.findable_entries(may).values() if entry.turn]
        with_context = sum(1 for entry in answers if entry.recalled)
        assert recall_rate(readable) == RecallRate(answers=len(answers), with_context=with_context)

    def check_search_for(self, person: Person, word: str) -> None:
        """Check everything that searches for text, with one word."""
        readable, may = spaces.readable_space_ids(person.id), self.team.readable_spaces(person.id)
        found, all_words = self.team.findable_entries(may), self.team.words(may)
        holding = {id for id, (resource, entry) in found.items() if word in entry.words}
        hits = {result.exchange.id for result in memory.search(word, spaces=readable).results}
        self.compare(f"search for {word}", hits, found, must=holding)
        box = quick_search.quick_search(word, person_id=person.id)
        self.compare("box", words_in(box.memories), all_words, must=self.texts_of(holding))
        options = [resource for resource in self.team.resources_in(may) if word in resource.names]
        self.compare("box of threads", {t.id for t in box.threads}, {t.id for t in options if t.kind == "thread"})
        self.compare("box of documents", {d.pk for d in box.documents}, {t.id for t in options if t.kind == "document"})
        turns = {
            entry.turn: entry
            for resource in self.team.resources_in(may, "thread")
            if not resource.is_remembered
            for entry in resource.entries
            if word in entry.words and entry.exchange is None and not entry.is_forgotten
        }
        self.compare("box of turns", {turn.id for turn in box.turns}, turns)
        zone_filter = parse_filter({"metadata.zone": word})
        filtered = {
            result.exchange.id for result in memory.search(COMMON, spaces=readable, filters=zone_filter).results
        }
        zoned = {id for id, (resource, entry) in found.items() if word in resource.zone}
        self.compare("filter", filtered, zoned)
        context = memory.get_relevant_context(f"The {word} lies in the {COMMON}.", spaces=readable, max_tokens=2000)
        self.compare("context", words_in(context), self.team.findable_words(may), must=())

    def check_commands(self, person: Person, last: Resource) -> None:
        """Check slash commands of this person."""
        found, may = (
            self.team.findable_entries(self.team.readable_spaces(person.id)),
            self.team.readable_spaces(person.id),
        )
        is_readable = last.space in may and not last.is_deleted
        thread = Thread.objects.get(id=last.id) if last.kind == "thread" and is_readable else None
        caller = commands.CommandContext(person.id, person.is_administrator, "on", lambda mode: None, thread)
        stats = commands.run("/vstats", caller).lines[0]
        assert stats.figure == f"{len(found):,}"
        card = commands.run(f"/vquery {COMMON} {ALL}", caller)
        self.compare("/vquery", {row.exchange_id for row in card.results}, found)
        assert words_in(card) <= self.team.findable_words(may)
        if thread is not None:
            card = commands.run("/vget thread", caller)
            self.compare(
                "/vget", {row.exchange_id for row in card.results}, {p.exchange for p in last.entries} & set(found)
            )
            assert words_in(commands.run("/history", caller)) <= last.words
        if last.kind == "thread" and not is_readable:
            self.assert_same_message(caller, f"/continue {last.id}", str(last.id))
        for entry in last.entries:
            if entry.exchange and entry.exchange not in found:
                self.assert_same_message(caller, f"/vget {entry.exchange}", str(entry.exchange))
                self.assert_same_message(caller, f"/vdelete {entry.exchange}", str(entry.exchange))
        for space, name in self.team.names.items():
            if space not in may:
                self.assert_same_message(caller, f'/vadd something --space "Crew {name}"', f"Crew {name}")

    def assert_same_message(self, caller: commands.CommandContext, command: str, term: str) -> None:
        """Assert that the command is refused with the same message as for a missing object."""
        messages = []
        for text, name in ((command, term), (command.replace(term, str(NOWHERE)), str(NOWHERE))):
            with pytest.raises(CatoError) as refused:
                commands.run(text, caller)
            messages.append(str(refused.value).replace(name, "it"))
        assert messages[0] == messages[1]

    def names(self, resources: Iterable[Resource]) -> set[str]:
        return set().union(*(resource.names for resource in resources))

    def texts_of(self, exchanges: Iterable[uuid.UUID]) -> set[str]:
        found = self.team.findable_entries(self.order)
        return set().union(*(found[id][1].words for id in exchanges))

    def recalled_labels(self, person: Person) -> set[str]:
        """Return the labels of recalled exchanges in the panels of a person's own threads."""
        words: set[str] = set()
        for resource in self.team.resources_in(self.team.readable_spaces(person.id), "thread"):
            found = self.team.findable_entries(self.team.shared_by_all_readers(resource.space))
            words |= self.names(found[id][0] for entry in resource.entries for id in entry.recalled if id in found)
        return words


def test_everybody_reaches_exactly_what_they_may_read(base: Base, monkeypatch: pytest.MonkeyPatch) -> None:
    # The sentences differ in a word or two and would count as near-duplicates.
    monkeypatch.setattr(strategies, "configured_level", lambda model: replace(configured_level(model), duplicate=2.0))
    run_state_machine_as_test(
        lambda: TeamLife(base),
        settings=examples(
            derandomize=True,
            max_examples=9 if IS_LONG else 3,
            stateful_step_count=14,
            deadline=None,
            database=None,
            phases=[Phase.generate],
        ),
    )
