"""Who may reach what, said again with sets and dicts: what the property tests hold the product against.

Every text, title, name and metadata value carries a made-up word of its own, so that a leak is visible as a word.
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
    """Words that no text has, of one length, that no stemmer shortens and none of which begins another."""
    for a in _LETTERS:
        for b in _LETTERS:
            for c in _LETTERS:
                yield f"zq{a}a{b}o{c}k"


def words_in(*said: object) -> set[str]:
    """The made-up words in anything that can be written down."""
    return {word for each in said for word in _WORD.findall(str(each).lower())}


def sentence(word: str) -> str:
    """A text that holds the word, beside words that all of them share."""
    return f"The {word.capitalize()} lies in the {COMMON} until the evening."


@dataclass
class Piece:
    """What somebody said or kept. `exchange` is None where memory keeps nothing of it; `recalled` is what came back for
    it; `of` is what it was copied from, with which it is forgotten."""

    words: set[str]
    author: UUID
    exchange: UUID | None = None
    turn: UUID | None = None
    recalled: tuple[UUID, ...] = ()
    of: Piece | None = None
    was_forgotten: bool = False

    @property
    def is_forgotten(self) -> bool:
        return self.was_forgotten or (self.of is not None and self.of.is_forgotten)

    @property
    def kept_as(self) -> UUID | None:
        return self.exchange or (self.of.kept_as if self.of else None)


@dataclass(eq=False)
class Thing:
    """A thread, note, record or document: somebody's, in one space, called by `names`, with the metadata `zone`, made of
    pieces."""

    kind: str
    id: UUID
    owner: UUID
    space: UUID
    names: set[str] = field(default_factory=set)
    zone: set[str] = field(default_factory=set)
    pieces: list[Piece] = field(default_factory=list)
    is_remembered: bool = True
    is_deleted: bool = False
    is_under_way: bool = False

    @property
    def source(self) -> str:
        return {"thread": "chat", "note": "vadd_command", "record": "api", "document": "upload"}[self.kind]

    @property
    def words(self) -> set[str]:
        """All that stands on its page: a forgotten turn's words stay in its thread, anything else's are gone."""
        shown = [piece.words for piece in self.pieces if self.kind == "thread" or not piece.is_forgotten]
        return set().union(*shown, self.called if shown or self.kind == "document" else ())

    @property
    def called(self) -> set[str]:
        return self.names | self.zone


@dataclass
class Person:
    """Somebody with an account; `epoch` counts how often they were let out or in again."""

    id: UUID
    own: UUID
    is_active: bool = True
    is_administrator: bool = False
    epoch: int = 0


@dataclass
class Team:
    """Everybody, the groups with who is in them and what they are called, and all there is."""

    team: UUID
    people: dict[UUID, Person]
    groups: dict[UUID, set[UUID]]
    names: dict[UUID, str]
    things: list[Thing] = field(default_factory=list)

    def reads(self, person: UUID) -> frozenset[UUID]:
        """Their own space, their groups', the team's."""
        groups = {group for group, members in self.groups.items() if person in members}
        return frozenset({self.people[person].own, self.team} | groups)

    def read_by_all_of(self, space: UUID) -> frozenset[UUID]:
        """What everyone who reads the space may read."""
        owner = next((person.id for person in self.people.values() if person.own == space), None)
        return frozenset({space, self.team}) if owner is None else self.reads(owner)

    def readers(self, space: UUID) -> set[UUID]:
        """Those with an open account who read it."""
        return {id for id, person in self.people.items() if person.is_active and space in self.reads(id)}

    def there(self, spaces: Iterable[UUID], *kinds: str) -> list[Thing]:
        """What lies in the spaces and was not deleted, of all kinds unless told."""
        held = set(spaces)
        things = [thing for thing in self.things if thing.space in held and not thing.is_deleted]
        return [thing for thing in things if not kinds or thing.kind in kinds]

    def found(self, spaces: Iterable[UUID]) -> dict[UUID, tuple[Thing, Piece]]:
        """What memory may find in the spaces, by exchange."""
        pieces = [(thing, piece) for thing in self.there(spaces) for piece in thing.pieces]
        return {piece.exchange: (thing, piece) for thing, piece in pieces if piece.exchange and not piece.is_forgotten}

    def words(self, spaces: Iterable[UUID]) -> set[str]:
        """Every word that stands somewhere in these spaces."""
        return set().union(*(thing.words for thing in self.there(spaces)))

    def found_words(self, spaces: Iterable[UUID]) -> set[str]:
        """The words of what memory may find in the spaces, with what each stands in is called."""
        found = self.found(spaces).values()
        return set().union(*(piece.words | thing.called for thing, piece in found))

    def said_by(self, person: UUID) -> set[str]:
        """What is a person's own, as far as they still read it: what they take along when they ask for all of it."""
        readable, own = self.reads(person), self.people[person].own
        words: set[str] = set()
        for thing in self.there(readable):
            gone = set().union(*(piece.words for piece in thing.pieces if piece.is_forgotten))
            is_document, theirs = thing.kind == "document", person == thing.owner or own == thing.space
            if (thing.owner == person and thing.kind == "thread") or (theirs and is_document):
                words |= thing.called - gone
            for piece in thing.pieces:
                is_theirs = piece.author == person or (thing.space == own and piece.exchange is not None)
                # A passage that was forgotten by itself stays in the file that was uploaded.
                if is_theirs and (is_document or not piece.is_forgotten):
                    words |= piece.words | thing.zone
        return words

    def times_recalled(self, spaces: Iterable[UUID]) -> dict[UUID, int]:
        """How often each exchange came back for what may be found in the spaces."""
        times: dict[UUID, int] = {}
        for _, asked in self.found(spaces).values():
            for exchange in asked.recalled:
                times[exchange] = times.get(exchange, 0) + 1
        return times
