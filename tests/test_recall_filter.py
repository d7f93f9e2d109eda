"""Recall filters and searches limited to documents or metadata."""

from __future__ import annotations

import re
import uuid

import pytest
from django.urls import reverse

from chat.answers.recall import recall_for_turn
from chat.models import Thread
from memory.errors import InvalidInputError
from memory.retrieval.recall_filter import RecallFilter, build_recall_filter, describe_recall_filter
from memory.spaces import access
from tests.factories import PersonFactory, answer_job, document, exchange, signed_in, thread, turn

pytestmark = pytest.mark.django_db(transaction=True)

FERRY = "The ferry to the island leaves at seven from the north quay. " * 8
TRAIN = "The train to the coast leaves at eight from the east station. " * 8


@pytest.fixture
def timetables(memory, person):
    """Upload two documents and remember an exchange, all about departures."""
    exchange(person, "When does the ferry to the island leave?", "At nine, somebody said.")
    memory.index_pending()
    return document(person, "ferry.txt", FERRY, metadata={"season": "winter"}), document(person, "train.txt", TRAIN)


def recalled(one) -> set[str]:
    return {result.exchange.source_file or "said" for result in recall_for_turn(answer_job(one)).search_results.results}


def test_a_thread_recalls_only_from_the_chosen_documents(person, timetables):
    ferry, _ = timetables
    of_person = thread(person)
    one = turn(of_person, "When does the ferry to the island leave?", state="recalling")
    assert recalled(one) >= {"said", "ferry.txt"}

    answer = signed_in(person).post(reverse("recall_filter", args=[of_person.id]), {"only": [str(ferry.pk)]})

    assert answer.status_code == 302
    assert recalled(one) == {"ferry.txt"}
    assert (
        "Recall limited to <b>ferry.txt</b>"
        in signed_in(person).get(reverse("thread", args=[of_person.id])).content.decode()
    )

    signed_in(person).post(reverse("recall_filter", args=[of_person.id]), {})
    assert recalled(one) >= {"said", "ferry.txt"}


def test_recall_can_be_limited_by_metadata(person, timetables):
    of_person = thread(person)
    one = turn(of_person, "When does the ferry to the island leave?", state="recalling")

    signed_in(person).post(reverse("recall_filter", args=[of_person.id]), {"only_metadata": "season: winter"})
    assert recalled(one) == {"ferry.txt"}
    signed_in(person).post(reverse("recall_filter", args=[of_person.id]), {"only_metadata": "season: summer"})
    assert recalled(one) == set()


def test_a_wrong_filter_is_shown_again_with_what_was_chosen_and_typed(person, timetables):
    ferry, _ = timetables
    of_person = thread(person)
    typed = {"only": [str(ferry.pk)], "only_metadata": "season winter"}
    answer = signed_in(person).post(reverse("recall_filter", args=[of_person.id]), typed)

    page = answer.content.decode()
    assert answer.status_code == 422
    assert "Line 1 has no colon." in page
    assert "season winter</textarea>" in page
    assert re.findall(r'name="only" value="([^"]*)" checked', page) == [str(ferry.pk)]
    assert Thread.objects.get().recall_filter == {}


def test_a_new_thread_starts_with_documents_chosen_on_their_page(person, timetables):
    ferry, _ = timetables
    client = signed_in(person)
    page = client.get(reverse("new_thread"), {"only": str(ferry.pk)}).content.decode()
    assert "Recall limited to <b>ferry.txt</b>" in page
    assert f'name="only" value="{ferry.pk}"' in page

    client.post(reverse("new_thread"), {"message": "When?", "client_key": str(uuid.uuid4()), "only": [str(ferry.pk)]})
    assert Thread.objects.get().recall_filter == {"documents": [str(ferry.pk)], "metadata": {}}


def test_a_document_chosen_in_the_composer_is_added_to_the_filter(person, timetables):
    ferry, train = timetables
    of_person, client = thread(person), signed_in(person)
    url = reverse("recall_filter", args=[of_person.id])
    client.post(url, {"only": [str(ferry.pk)], "only_metadata": "season: winter"})
    added = client.post(
        url, {"add": str(train.pk), "message": "When?"}, headers={"HX-Request": "true"}
    ).content.decode()

    of_person.refresh_from_db()
    assert of_person.recall_filter == {"documents": [str(ferry.pk), str(train.pk)], "metadata": {"season": "winter"}}
    assert "Recall limited to 3 filters" in added
    removed = client.post(url, headers={"HX-Request": "true"}).content.decode()
    of_person.refresh_from_db()
    assert of_person.recall_filter == {}
    assert "Recall limited" not in removed


def test_a_document_that_the_thread_cannot_recall_is_not_added(person, timetables):
    ferry, _ = timetables
    of_team = thread(person, space=access.team_space())
    answer = signed_in(person).post(reverse("recall_filter", args=[of_team.id]), {"add": str(ferry.pk)})

    assert answer.status_code == 422
    of_team.refresh_from_db()
    assert of_team.recall_filter == {}


def test_documents_are_chosen_in_the_composer_of_a_new_thread(person, timetables):
    ferry, train = timetables
    url = reverse("new_thread_recall_filter")
    fields = {"only": [str(ferry.pk)], "add": str(train.pk), "only_metadata": "season: winter"}
    page = signed_in(person).post(url, fields, headers={"HX-Request": "true"}).content.decode()
    assert [f'name="only" value="{one.pk}"' in page for one in (ferry, train)] == [True, True]
    assert 'name="only_metadata" value="season: winter"' in page

    stranger = signed_in(PersonFactory()).post(url, fields, headers={"HX-Request": "true"}).content.decode()
    assert 'name="only"' not in stranger
    assert signed_in(person).post(url, {}, headers={"HX-Request": "true"}).content.decode().count("<input") == 0


def test_search_is_limited_to_the_chosen_documents(person, timetables):
    _, train = timetables
    page = signed_in(person).get(reverse("search"), {"q": "when does it leave", "only": str(train.pk)}).content.decode()

    assert "Only in train.txt" in page
    assert re.search(r"train.txt\s*</a>", page)
    assert "ferry.txt</a>" not in page


@pytest.mark.parametrize("unknown", ["7d3a9b52-54d3-4e3f-9d5e-0d2a6f1a1c11", "ferry.txt"])
def test_unknown_documents_are_refused_instead_of_searching_everything(person, timetables, unknown):
    ferry, _ = timetables
    client, refusal = signed_in(person), "The chosen documents were deleted or cannot be read here."
    query = {"q": "when does it leave"}

    assert "ferry.txt" in client.get(reverse("search"), query).content.decode()
    page = client.get(reverse("search"), query | {"only": unknown}).content.decode()
    assert refusal in page
    assert "ferry.txt" not in page.replace(unknown, "")
    assert refusal in client.get(reverse("new_thread"), {"only": unknown}).content.decode()
    message = {"message": "When?", "client_key": str(uuid.uuid4()), "only": [unknown]}
    assert refusal in client.post(reverse("new_thread"), message).content.decode()
    assert not Thread.objects.exists()
    both = client.get(reverse("search"), query | {"only": [unknown, str(ferry.pk)]}).content.decode()
    assert "Only in ferry.txt" in both


def test_a_deleted_document_in_a_recall_filter_is_reported_and_recalls_nothing(memory, person, timetables):
    ferry, _ = timetables
    scope = RecallFilter((ferry.pk,))
    memory.forget_documents([ferry.pk], by=person.id)

    readable = access.readable_space_ids(person.id)
    assert describe_recall_filter(scope, spaces=readable) == ["a deleted document"]
    assert memory.recall(["When does the ferry leave?"], spaces=readable, filters=scope.filter()).results == ()


def test_a_recall_filter_reveals_no_documents_of_others(person, timetables):
    stranger = PersonFactory()
    ferry, _ = timetables

    with pytest.raises(InvalidInputError, match="deleted or cannot be read here"):
        build_recall_filter([str(ferry.pk)], {}, spaces=access.readable_space_ids(stranger.id))
    page = signed_in(stranger).get(reverse("new_thread"), {"only": str(ferry.pk)}).content.decode()
    assert "ferry.txt" not in page


def test_an_invalid_recall_filter_is_refused(person):
    with pytest.raises(InvalidInputError, match="at most 50"):
        build_recall_filter([str(uuid.uuid4()) for _ in range(51)], {}, spaces=frozenset())
    of_person = thread(person)
    page = signed_in(person).post(
        reverse("recall_filter", args=[of_person.id]), {"only_metadata": "no colon here"}, follow=True
    )
    assert "has no colon" in page.content.decode()
