"""Whatever happens to exchanges, in any order, no statement is readable without a readable source that has its words."""

from __future__ import annotations

import random
import uuid
from typing import Any

import pytest

from memory.errors import CatoError
from memory.exchanges import lifecycle
from memory.exchanges.erasure import erase_forgotten
from memory.exchanges.forgetting import forget
from memory.exchanges.moving import move_thread
from memory.knowledge import decisions
from memory.knowledge.statements import NewStatement, NewSupport, add_statements, readable_statements
from memory.models import Exchange, Space, Statement, Support
from memory.spaces import access
from tests.factories import PersonFactory, exchange, group
from tests.topology import IS_LONG

pytestmark = pytest.mark.django_db

ACTIONS = 60
SEEDS = range(40 if IS_LONG else 6)


class Team:
    """Two people with a group, whose exchanges are in threads."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.people = [PersonFactory(), PersonFactory()]
        self.spaces: list[Space] = [group("Crew", *self.people), access.team_space()]
        self.spaces.append(access.personal_space(self.people[0].id))
        self.threads = [uuid.uuid4() for _number in range(3)]

    def act(self) -> str:
        """Do one thing at random; return its name. What is refused changes nothing."""
        actions = [
            *(self.store, self.store, self.extract, self.extract, self.forget, self.move, self.hide, self.show),
            *(self.change, self.decide, self.erase),
        ]
        action = self.random.choice(actions)
        try:
            action()
        except CatoError as error:
            return f"{action.__name__} refused: {error}"
        return action.__name__

    def exchanges(self, **fields: Any) -> list[Exchange]:
        rows = Exchange.objects.filter(forgotten_at=None, **fields).exclude(source=Exchange.Source.KNOWLEDGE)
        return list(rows.order_by("timestamp", "pk"))

    def some(self, most: int, **fields: Any) -> list[Exchange]:
        rows = self.exchanges(**fields)
        return self.random.sample(rows, min(len(rows), self.random.randint(1, most)))

    def store(self) -> None:
        person, space = self.random.choice(self.people), self.random.choice(self.spaces)
        text = f"The value is {self.random.randint(1, 9)}."
        exchange(person, text, space=space, thread_id=self.random.choice([None, *self.threads]))

    def extract(self) -> None:
        space = self.random.choice(self.spaces)
        sources = self.some(3, space=space, is_inactive=False)
        read = [NewSupport(one.pk, one.user_message, one.version) for one in sources]
        text = f"The value was {self.random.randint(1, 9)} at some time."
        if read:
            add_statements(space, [NewStatement(text=text, kind="fact", topic="Value", supports=read)], read=read)

    def forget(self) -> None:
        forget([one.pk for one in self.some(2)], by=self.people[0].id)

    def move(self) -> None:
        move_thread(self.random.choice(self.threads), to=self.random.choice(self.spaces), by=self.people[0].id)

    def hide(self) -> None:
        lifecycle.deactivate([one.pk for one in self.some(2)], are_citable=self.random.random() < 0.5)

    def show(self) -> None:
        lifecycle.activate([one.pk for one in self.some(3)])

    def change(self) -> None:
        for one in self.some(1):
            text = self.random.choice([f"{one.user_message} Really.", "Never mind."])
            lifecycle.update_exchange(one, user_message=text, assistant_message="")

    def decide(self) -> None:
        person = self.random.choice(self.people)
        rows = list(readable_statements(access.readable_space_ids(person.id)).order_by("last_said_at", "pk"))
        if not rows:
            return
        one, other = self.random.choice(rows), self.random.choice(rows)
        choice = self.random.choice(["confirm", "reject", "correct", "supersede", "contradict", "forget", "keep"])
        if choice == "forget":
            forget([one.pk], by=person.id)
        elif choice in ("supersede", "contradict"):
            if one.pk != other.pk and one.exchange.space_id == other.exchange.space_id:
                if choice == "supersede":
                    decisions.supersede(one, by_statement=other, by=None)
                else:
                    decisions.contradict(one, other)
        elif choice == "correct":
            decisions.correct(person.id, one.pk, f"The value is {self.random.random()}.", revision=one.revision)
        elif choice == "keep":
            decisions.keep(person.id, one.pk, other_id=None, revision=one.revision)
        else:
            getattr(decisions, choice)(person.id, one.pk, revision=one.revision)

    def erase(self) -> None:
        erase_forgotten()


def check(team: Team, story: list[str]) -> None:
    for person in team.people:
        spaces = access.readable_space_ids(person.id)
        for statement in readable_statements(spaces):
            sources = statement.supports.filter(exchange__in=Exchange.objects.findable()).select_related("exchange")
            assert sources, story
            assert all(source.exchange.space_id == statement.exchange.space_id for source in sources), story
            assert all(source.quote in source.exchange.user_message for source in sources), story
    assert not Support.objects.exclude(exchange__forgotten_at=None).exists(), story
    assert not Statement.objects.exclude(exchange__forgotten_at=None).exists(), story
    assert not Statement.objects.filter(supports=None).exists(), story
    texts = Exchange.objects.filter(source=Exchange.Source.KNOWLEDGE, forgotten_at=None)
    assert not texts.filter(statement=None).exists(), story
    for statement in Statement.objects.filter(state=Statement.State.CONFLICTING):
        assert decisions.conflicting_with(statement), story


@pytest.mark.parametrize("seed", SEEDS)
def test_no_order_of_actions_leaves_a_statement_without_a_readable_source(memory, seed):
    team, story = Team(seed), []
    for _number in range(ACTIONS):
        story.append(team.act())
        check(team, story)
    assert Statement.objects.exists() or "extract" in story
