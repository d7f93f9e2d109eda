"""Which spaces' text a remote embedding provider is sent: of exchanges, documents, questions, instructions and /v1."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.urls import reverse
from django.utils.translation import override

from cato_web.cli import actions
from cato_web.cli.messages import CommandRequest
from chat.models import Turn
from memory.embeddings import cache
from memory.errors import EmbeddingError, InvalidInputError
from memory.index import embedding_policy, indexing, reconcile
from memory.models import EmbeddingJob, Job
from memory.retrieval.instruction_detection import are_instructions
from memory.retrieval.search import LEXICAL_ONLY, NOT_EMBEDDED
from memory.retrieval.tuning.sampling import sample_exchanges
from memory.spaces import access
from memory.spaces.data_policy import DataPolicy
from tests.factories import (
    AdministratorFactory,
    api_client,
    exchange,
    group,
    process_documents,
    signed_in,
    thread,
    upload,
)
from tests.usage import answer, connect, posted, write_titles

pytestmark = pytest.mark.django_db(transaction=True)

KEY = "embedding-policy"  # the API key of the provider
QUESTION = "Where does the spare key hang?"


@pytest.fixture(autouse=True)
def remote(memory, endpoint, settings) -> None:
    """Embed with a remote provider, and connect a model."""
    endpoint.script(KEY, answer="Behind the clock.")
    endpoint.clear(KEY)
    changed = settings.CATO.vector_store.model_dump() | {
        "embedding_provider": "openai", "embedding_base_url": endpoint.openai_url, "embedding_api_key": KEY, "embedding_dimensions": 64,
    }  # fmt: skip
    store = type(settings.CATO.vector_store).model_validate(changed)
    settings.CATO = settings.CATO.model_copy(update={"vector_store": store})
    write_titles(settings, False)
    connect(endpoint)


def sent(endpoint: Any) -> str:
    """Return all that the provider was sent to embed."""
    return json.dumps(endpoint.requests(KEY, "/v1/embeddings"))


def listed(*places: object) -> None:
    embedding_policy.set_embedding_policy(DataPolicy.LISTED, [str(getattr(place, "id", place)) for place in places])


def job_of(one: Any) -> EmbeddingJob:
    return EmbeddingJob.objects.get(exchange=one)


# What is stored


def test_only_text_of_permitted_spaces_is_sent(memory, endpoint, person):
    crew, others = group("Crew", person), group("Others", person)
    listed(crew)
    open_, secret = exchange(person, "behind the clock", space=crew), exchange(person, "the swordfish", space=others)
    own = exchange(person, "under the doormat")
    assert memory.index_pending() == 3

    assert "behind the clock" in sent(endpoint)
    assert "swordfish" not in sent(endpoint)
    assert "doormat" not in sent(endpoint)
    assert [(job_of(one).state, job_of(one).parts > 0) for one in (open_, secret, own)] == [
        (Job.State.DONE, True), (Job.State.DONE, False), (Job.State.DONE, False),
    ]  # fmt: skip
    assert reconcile.measure_drift() == reconcile.Drift(rows_without_vector=0, vectors_without_row=0)


def test_a_document_of_a_forbidden_space_can_be_found_by_its_words(endpoint, person):
    crew = group("Crew", person)
    embedding_policy.set_embedding_policy(DataPolicy.NONE, [])
    upload(person, "manual.txt", "The spare key hangs behind the swordfish.", space=crew)
    process_documents()

    page = signed_in(person).get(reverse("search"), {"q": "swordfish"}, headers={"HX-Request": "true"})
    assert "The spare key hangs behind the" in page.content.decode()
    assert sent(endpoint) == "[]"


def test_what_may_be_sent_from_now_on_is_embedded_without_being_touched(memory, endpoint, person):
    crew = group("Crew", person)
    embedding_policy.set_embedding_policy(DataPolicy.NONE, [])
    one = exchange(person, "behind the clock", space=crew)
    memory.index_pending()
    assert job_of(one).parts == 0

    listed(crew)
    assert memory.index_pending() == 1
    assert job_of(one).parts > 0
    assert "behind the clock" in sent(endpoint)


def test_a_worker_that_read_the_former_policy_does_not_settle_the_exchange(memory, person, monkeypatch):
    embedding_policy.set_embedding_policy(DataPolicy.NONE, [])
    one = exchange(person, "behind the clock")
    decide = indexing._get_vectors

    def decide_before_the_change(*args: Any) -> Any:
        vectors = decide(*args)
        monkeypatch.setattr(indexing, "_get_vectors", decide)
        embedding_policy.set_embedding_policy(DataPolicy.ALL, [])
        return vectors

    monkeypatch.setattr(indexing, "_get_vectors", decide_before_the_change)
    memory.index_pending()
    EmbeddingJob.objects.update(locked_until=None)  # the lease of the first worker ends
    memory.index_pending()
    assert job_of(one).parts > 0


def test_vectors_that_exist_stay_in_use(memory, endpoint, person):
    crew = group("Crew", person)
    one = exchange(person, "behind the clock", space=crew)
    memory.index_pending()
    embedding_policy.set_embedding_policy(DataPolicy.NONE, [])
    memory.index_pending()
    assert job_of(one).parts > 0


def test_a_policy_cannot_list_a_space_that_does_not_exist(person):
    for place in (str(access.personal_space(person.id).id), "nothing"):
        with pytest.raises(InvalidInputError):
            embedding_policy.set_embedding_policy(DataPolicy.LISTED, [place])


# What is asked


def test_a_message_of_a_forbidden_thread_recalls_by_words_and_says_so(memory, endpoint, person):
    crew, others = group("Crew", person), group("Others", person)
    listed(crew)
    exchange(person, "The spare key hangs behind the clock.", space=others)
    memory.index_pending()
    one = answer(posted(person, in_thread=thread(person, space=others), message=QUESTION))

    assert one.state == Turn.State.COMPLETE
    assert sent(endpoint) == "[]"
    assert one.recall_note == NOT_EMBEDDED
    page = signed_in(person).get(reverse("thread", args=[one.thread_id])).content.decode()
    assert "The embedding provider may not receive this text; recalled by keyword only" in page
    assert "behind the clock" in page


def test_a_message_of_a_permitted_thread_is_embedded(memory, endpoint, person):
    crew = group("Crew", person)
    listed(crew)
    one = answer(posted(person, in_thread=thread(person, space=crew), message=QUESTION))
    assert QUESTION in sent(endpoint)
    assert one.recall_note == ""


def test_a_search_is_embedded_if_it_searches_any_permitted_space(memory, endpoint, person):
    crew, others = group("Crew", person), group("Others", person)
    exchange(person, "The spare key hangs behind the clock.", space=others)
    listed(crew)
    memory.index_pending()

    found = memory.search("first words", spaces=frozenset({others.id}))
    assert (found.note, "first words" in sent(endpoint)) == (NOT_EMBEDDED, False)
    assert found.is_lexical_only
    found = memory.search("second words", spaces=frozenset({others.id, crew.id}))
    assert (found.note, "second words" in sent(endpoint)) == ("", True)
    # What the model asks in a thread is text of this thread, whatever it searches.
    found = memory.search("third words", spaces=frozenset({others.id, crew.id}), text_space=others.id)
    assert (found.note, "third words" in sent(endpoint)) == (NOT_EMBEDDED, False)


def test_pages_say_that_the_words_were_not_sent_and_not_that_the_index_is_down(person):
    embedding_policy.set_embedding_policy(DataPolicy.NONE, [])
    page = signed_in(person).get(reverse("search"), {"q": "key"}, headers={"HX-Request": "true"}).content.decode()
    assert "The embedding provider may not receive text of these spaces: found by keywords only." in page
    assert "cannot be used at the moment" not in page


def test_the_command_line_says_so_in_english(person):
    embedding_policy.set_embedding_policy(DataPolicy.NONE, [])
    with override("de"):
        found = actions.query(CommandRequest("query", text="key"), person)
    assert "The embedding provider may not receive text of these spaces" in found.text


def test_a_broken_index_is_still_called_broken(memory, person, monkeypatch, settings):
    monkeypatch.setattr(cache, "embed_query", _fail)
    assert memory.search("anything", spaces=memory.readable_space_ids(person.id)).note == LEXICAL_ONLY


def _fail(*args: Any, **kwargs: Any) -> Any:
    raise EmbeddingError("no answer", permanent=False)


def test_records_are_found_by_words(memory, endpoint, person):
    embedding_policy.set_embedding_policy(DataPolicy.NONE, [])
    client = api_client(person, "read", "write")
    body = {"records": [{"id": "1", "text": "The spare key hangs behind the clock."}]}
    assert client.post("/api/records", json.dumps(body), content_type="application/json").status_code < 300
    memory.index_pending()
    found = client.post("/api/records/query", json.dumps({"text": "spare key"}), content_type="application/json")
    assert [row["id"] for row in found.json()["records"]] == ["1"]
    assert sent(endpoint) == "[]"


# What else embeds


def test_statements_are_not_checked_with_a_provider_that_may_not_receive_them(endpoint, person):
    crew = group("Crew", person)
    embedding_policy.set_embedding_policy(DataPolicy.NONE, [])
    with pytest.raises(EmbeddingError, match=r"does not allow sending this text to 127\.0\.0\.1"):
        are_instructions(["Always answer in French."], space=crew)
    assert sent(endpoint) == "[]"


def test_samples_for_calibration_have_no_forbidden_text(memory, person):
    crew, others = group("Crew", person), group("Others", person)
    kept = exchange(person, "behind the clock", space=crew)
    exchange(person, "the swordfish", space=others)
    memory.index_pending()
    listed(crew)
    assert [one.id for one in sample_exchanges(10, None)] == [kept.id]


def test_texts_of_api_clients_count_as_personal(endpoint, person):
    client = api_client(person, "read")
    body = json.dumps({"input": "a text"})
    listed(access.team_space())
    refused = client.post("/v1/embeddings", body, content_type="application/json")
    assert refused.status_code >= 400
    assert "An administrator does not allow sending this text" in refused.json()["error"]["message"]
    assert sent(endpoint) == "[]"
    listed(DataPolicy.PERSONAL)
    assert client.post("/v1/embeddings", body, content_type="application/json").status_code == 200


def test_the_local_model_receives_everything(memory, person, settings):
    embedding_policy.set_embedding_policy(DataPolicy.NONE, [])
    assert embedding_policy.embedding_policy_of("local") == DataPolicy()


# The page


def test_an_administrator_sets_the_policy(person):
    crew = group("Crew", person)
    page = signed_in(AdministratorFactory())
    assert "127.0.0.1" in page.get(reverse("model_endpoints")).content.decode()
    saved = page.post(reverse("embedding_policy"), {"policy": "listed", "allowed_in": [str(crew.id)]}, follow=True)
    assert "May receive text of: Crew." in saved.content.decode()
    assert embedding_policy.embedding_policy_of("openai") == DataPolicy(DataPolicy.LISTED, frozenset({str(crew.id)}))
    form = page.get(reverse("embedding_policy")).content.decode()
    assert "Text that it may not receive is found by" in form
    assert signed_in(person).post(reverse("embedding_policy"), {"policy": "all"}).status_code == 403


def test_there_is_no_policy_for_the_local_model(settings):
    local = settings.CATO.vector_store.model_copy(update={"embedding_provider": "local"})
    settings.CATO = settings.CATO.model_copy(update={"vector_store": local})
    page = signed_in(AdministratorFactory())
    assert page.get(reverse("embedding_policy")).status_code == 404
    assert reverse("embedding_policy") not in page.get(reverse("model_endpoints")).content.decode()
