"""The search page finds exchanges by meaning and term, limited by the chosen filters."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from django.urls import reverse

from memory.spaces import access
from tests.factories import PersonFactory, exchange, group, signed_in

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def crew(memory, person):
    """Return a group of two people, with an exchange of each in it and one elsewhere, indexed."""
    ines = PersonFactory(name="Ines Dvorak")
    space = group("Boat crew", person, ines)
    march, may = datetime(2026, 3, 2, 12, tzinfo=UTC), datetime(2026, 5, 4, 12, tzinfo=UTC)
    exchange(person, "Where is the boat moored in winter?", "At the north quay.", space=space, timestamp=march)
    exchange(ines, "Who painted the boat?", "Two painters from Halden.", space=space, timestamp=may)
    exchange(person, "The boat licence is in the drawer.", "", source="vadd_command", timestamp=may, manual_entry=True)
    memory.index_pending()
    return space, ines


def found(person, **filters) -> set[str]:
    """Return which of the three exchanges the page shows for the query `boat`."""
    html = signed_in(person).get(reverse("search"), {"q": "boat"} | filters).content.decode()
    texts = {"winter": "moored in winter", "paint": "Who painted", "licence": "licence is in"}
    return {name for name, text in texts.items() if text in html}


def test_without_filters_everything_readable_is_found(crew, person):
    assert found(person) == {"winter", "paint", "licence"}


def test_filters_limit_author_source_space_and_dates(crew, person):
    space, ines = crew
    assert found(person, who=ines.pk) == {"paint"}
    assert found(person, source="vadd_command") == {"licence"}
    assert found(person, space=space.pk) == {"winter", "paint"}
    assert found(person, since="2026-04-01") == {"paint", "licence"}
    assert found(person, until="2026-03-02") == {"winter"}, "the last day is included"
    assert found(person, who=person.pk, space=space.pk, until="2026-12-31") == {"winter"}


def test_an_invalid_filter_is_reported_and_nothing_is_searched(crew, person):
    answer = signed_in(person).get(reverse("search"), {"q": "boat", "since": "yesterday"})
    assert "Enter a valid date." in answer.content.decode()
    assert "moored in winter" not in answer.content.decode()


def test_a_space_that_the_person_cannot_read_is_no_filter(crew, person):
    stranger = PersonFactory()
    html = signed_in(stranger).get(reverse("search"), {"q": "boat", "space": crew[0].pk}).content.decode()
    assert "Select a valid choice." in html
    assert found(stranger, space=access.personal_space(person.pk).pk) == set()


def test_filters_stay_open_and_can_be_cleared(crew, person):
    html = signed_in(person).get(reverse("search"), {"q": "boat", "source": "chat"}).content.decode()
    assert '<details class="filter-bar__more search-page__filters" id="search-filters" open>' in html
    assert 'href="/search?q=boat"' in html


def test_only_authors_of_readable_exchanges_can_be_chosen(crew, person):
    PersonFactory(name="Somebody Else")
    html = signed_in(person).get(reverse("search")).content.decode()
    assert "Ines Dvorak" in html
    assert "Somebody Else" not in html
