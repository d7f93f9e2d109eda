"""A model of access with sets and dicts, against which the property tests check the product.

Every text, title, name and metadata value contains a unique made-up word, so a leak is visible as a word.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from uuid import UUID

COMMON = "harbour"
_WORD = re.compile(r"zq[a-z]{6}")
_LETTERS = "bdfgjklmnprt"


def made_up_words() -> Iterator[str]:
    """Yield words of equal length that occur in no text, keep their form when stemmed and are no prefix of each other."""
    for a in _LETTERS:
        for b in _LETTERS:
            for c in _LETTERS:
                yield f"zq{a}a{b}o{c}k"


def words_in(*values: object) -> set[str]:
    """Return the made-up words in the string forms of these values."""
    return {word for each in values for word in _WORD.findall(str(each).lower())}


def sentence(word: str) -> str:
    """Return a text with the word and words that all texts share."""
    return f"The {word.capitalize()} lies in the {COMMON} until the evening."


@dataclass
class Entry:
    """A message, note, record or chunk.

    `exchange` is None if memory does not store it, `recalled` are the exchanges recalled for it, and `of` is the entry
    that it is a copy of and with which it is forgotten.
    """

    words: set[str]
    author: UUID
    exchange: UUID | None = None
    turn: UUID | None = None
    recalled: tuple[UUID, ...] = ()
    of: Entry | None = None
    was_forgotten: bool = False

    @property
    def is_forgotten(self) -> bool:
        return self.was_forgotten or (self.of is not None and self.of.is_forgotten)

    @property
    def stored_as(self) -> UUID | None:
        return self.exchange or (self.of.stored_as if self.of else None)


@dataclass(eq=False)
class Resource:
    """A thread, note, record or document in one space, made of entries."""

    kind: str
    id: UUID
    owner: UUID
    space: UUID
    names: set[str] = field(default_factory=set)
    zone: set[str] = field(default_factory=set)
    entries: list[Entry] = field(default_factory=list)
    is_remembered: bool = True
    is_deleted: bool = False
    is_running: bool = False

    @property
    def source(self) -> str:
        return {"thread": "chat", "note": "vadd_command", "record": "api", "document": "upload"}[self.kind]

    @property
    def words(self) -> set[str]:
        """Return all words on its page: forgotten turns keep their words in their thread, everything else loses them."""
        visible = [entry.words for entry in self.entries if self.kind == "thread" or not entry.is_forgotten]
        return set().union(*visible, self.label_words if visible or self.kind == "document" else ())

    @property
    def label_words(self) -> set[str]:
        return self.names | self.zone


@dataclass
class Person:
    """An account; `epoch` counts deactivations and reactivations."""

    id: UUID
    personal_space: UUID
    is_active: bool = True
    is_administrator: bool = False
    epoch: int = 0


@dataclass
class Team:
    """All people, groups and resources."""

    team: UUID
    people: dict[UUID, Person]
    groups: dict[UUID, set[UUID]]
    names: dict[UUID, str]
    resources: list[Resource] = field(default_factory=list)

    def readable_spaces(self, person: UUID) -> frozenset[UUID]:
        """Return the personal space, the groups' and the team's."""
        groups = {group for group, members in self.groups.items() if person in members}
        return frozenset({self.people[person].personal_space, self.team} | groups)

    def shared_by_all_readers(self, space: UUID) -> frozenset[UUID]:
        """Return the spaces that every reader of the space may read."""
        owner = next((person.id for person in self.people.values() if person.personal_space == space), None)
        return frozenset({space, self.team}) if owner is None else self.readable_spaces(owner)

    def readers(self, space: UUID) -> set[UUID]:
        """Return the people with an active account who may read the space."""
        return {id for id, person in self.people.items() if person.is_active and space in self.readable_spaces(id)}

    def resources_in(self, spaces: Iterable[UUID], *kinds: str) -> list[Resource]:
        """Return the resources in the spaces that are not deleted, of all kinds by default."""
        space_ids = set(spaces)
        resources = [resource for resource in self.resources if resource.space in space_ids and not resource.is_deleted]
        return [resource for resource in resources if not kinds or resource.kind in kinds]

    def findable_entries(self, spaces: Iterable[UUID]) -> dict[UUID, tuple[Resource, Entry]]:
        """Return what memory may find in the spaces, by exchange."""
        entries = [(resource, entry) for resource in self.resources_in(spaces) for entry in resource.entries]
        return {
            entry.exchange: (resource, entry)
            for resource, entry in entries
            if entry.exchange and not entry.is_forgotten
        }

    def words(self, spaces: Iterable[UUID]) -> set[str]:
        """Return every word in these spaces."""
        return set().union(*(resource.words for resource in self.resources_in(spaces)))

    def findable_words(self, spaces: Iterable[UUID]) -> set[str]:
        """Return the words that memory may find in the spaces, with titles and metadata."""
        findable_entries = self.findable_entries(spaces).values()
        return set().union(*(entry.words | resource.label_words for resource, entry in findable_entries))

    def exported_words(self, person: UUID) -> set[str]:
        """Return the words of a person's own data, which their export contains, as far as they may still read it."""
        readable, personal_space = self.readable_spaces(person), self.people[person].personal_space
        words: set[str] = set()
        for resource in self.resources_in(readable):
            forgotten = set().union(*(entry.words for entry in resource.entries if entry.is_forgotten))
            is_document, is_own_resource = (
                resource.kind == "document",
                person == resource.owner or personal_space == resource.space,
            )
            if (resource.owner == person and resource.kind == "thread") or (is_own_resource and is_document):
                words |= resource.label_words - forgotten
            for entry in resource.entries:
                is_own = entry.author == person or (resource.space == personal_space and entry.exchange is not None)
                # A chunk forgotten on its own remains in the uploaded file.
                if is_own and (is_document or not entry.is_forgotten):
                    words |= entry.words | resource.zone
        return words

    def times_recalled(self, spaces: Iterable[UUID]) -> dict[UUID, int]:
        """Return how often each exchange was recalled for an entry in the spaces."""
        times: dict[UUID, int] = {}
        for _, entry in self.findable_entries(spaces).values():
            for exchange in entry.recalled:
                times[exchange] = times.get(exchange, 0) + 1
        return times
