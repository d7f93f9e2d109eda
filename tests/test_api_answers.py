"""Answers over the REST API: complete or streamed, with sources, and once per client key."""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from tests.factories import PNG
from tests.fake_endpoint import FakeEndpoint
from tests.server import Cato, Client, wait_for


def events_of(response: httpx.Response) -> list[tuple[str, Any]]:
    """Return the server-sent events in order."""
    found, name = [], ""
    for line in response.iter_lines():
        if line.startswith("event: "):
            name = line.removeprefix("event: ")
        elif line.startswith("data: "):
            found.append((name, json.loads(line.removeprefix("data: "))))
    return found


@pytest.fixture(autouse=True)
def plain_answers(endpoint: FakeEndpoint) -> Iterator[None]:
    """Restore the endpoint's script before each test."""
    endpoint.script("cato")
    yield
    endpoint.script("cato")


@pytest.fixture
def api(alice: Client) -> httpx.Client:
    return alice.api_client()


def test_a_complete_answer_contains_its_sources(api: httpx.Client) -> None:
    stored = api.post("/api/exchanges", json={"text": "The key of the archive hangs behind the boiler room's door."})
    (row,) = stored.json()["exchanges"]
    wait_for(lambda: api.get(f"/api/exchanges/{row['id']}").json()["state"] == "remembered", "the note to be embedded")

    turn = api.post("/api/ask", json={"message": "Where does the key of the archive hang?"}).json()

    assert (turn["state"], turn["error"]) == ("complete", None)
    assert turn["answer"]
    assert row["id"] in [source["exchange_id"] for source in turn["sources"]]
    assert turn["usage"]
    further = api.post(f"/api/threads/{turn['thread_id']}/ask", json={"message": "And the spare one?"}).json()
    thread = api.get(f"/api/threads/{turn['thread_id']}").json()
    assert [each["id"] for each in thread["turns"]] == [turn["id"], further["id"]]


def test_a_streamed_answer_arrives_in_parts(cato: Cato, alice: Client, endpoint: FakeEndpoint) -> None:
    endpoint.script("cato", answer="Once upon a time there was a key, and it hung behind a door.", token_delay=0.05)
    api_client = alice.api_client("ask")
    for url in {cato.url, cato.other_url}:
        with api_client.stream(
            "POST", f"{url}/api/ask", json={"message": "Tell me a story", "stream": True}
        ) as response:
            assert response.headers["content-type"].startswith("text/event-stream")
            assert "content-encoding" not in response.headers
            assert not response.cookies
            events = events_of(response)

        names = [name for name, _ in events]
        assert (names[0], names[-1]) == ("turn", "done")
        assert set(names[1:-1]) == {"delta"}
        assert len(names) > 4
        answer_text = "".join(data["text"] for name, data in events if name == "delta")
        assert events[-1][1]["answer"] == answer_text
        assert events[-1][1]["state"] == "complete"


def test_a_reader_stops_the_running_answer_of_a_thread(
    cato: Cato, api: httpx.Client, bob: Client, endpoint: FakeEndpoint
) -> None:
    endpoint.script("cato", answer="word " * 400, token_delay=0.1)
    with api.stream("POST", "/api/ask", json={"message": "Everything", "stream": True}) as response:
        lines = response.iter_lines()
        turn = json.loads(next(line for line in lines if line.startswith("data:"))[5:])
        path = f"/api/threads/{turn['thread_id']}/stop"
        wait_for(lambda: api.get(f"/api/threads/{turn['thread_id']}/turns/{turn['id']}").json()["answer"], "a word")
        assert bob.api_client().post(path).status_code == 404
        assert api.post(path).json() == {"turn_id": turn["id"]}
        done = json.loads([line for line in lines if line.startswith("data:")][-1][5:])

    assert done["state"] == "stopped"
    assert done["answer"].startswith("word")
    assert api.post(path).json() == {"turn_id": None}, "nothing runs any more"


def test_a_failed_answer_reports_the_reason_and_keeps_the_message(api: httpx.Client, endpoint: FakeEndpoint) -> None:
    endpoint.script("cato", mode="error-401")

    complete = api.post("/api/ask", json={"message": "Who has the key?"}).json()
    with api.stream("POST", "/api/ask", json={"message": "Who has the key?", "stream": True}) as response:
        events = dict(events_of(response))

    for turn in (complete, events["done"]):
        assert (turn["state"], turn["message"]) == ("failed", "Who has the key?")
        assert turn["error"]["message"]
    assert events["error"] == complete["error"]


def test_a_client_key_creates_one_turn_per_person(api: httpx.Client, bob: Client, endpoint: FakeEndpoint) -> None:
    body, key = {"message": f"What is the time? {time.time()}"}, {"Idempotency-Key": "nightly run"}

    first = api.post("/api/ask", json=body, headers=key).json()
    repeated = api.post("/api/ask", json=body, headers=key).json()
    of_bob = bob.api_client().post("/api/ask", json=body, headers=key).json()

    assert repeated == first | {"memory": repeated["memory"]}
    assert of_bob["id"] != first["id"]
    assert len(api.get(f"/api/threads/{first['thread_id']}").json()["turns"]) == 1


def test_another_message_with_the_same_key_is_refused(api: httpx.Client) -> None:
    message, key = f"What is the time? {time.time()}", {"Idempotency-Key": f"key {time.time()}"}
    first = api.post("/api/ask", json={"message": message}, headers=key).json()
    refused = api.post("/api/ask", json={"message": "What is the date?"}, headers=key)

    assert (refused.status_code, refused.json()["error"]["code"]) == (409, "idempotency_conflict")
    streamed = api.post("/api/ask", json={"message": message, "stream": True}, headers=key)
    assert first["id"] in streamed.text, "the stream of the same request"


def test_a_refused_message_leaves_its_key_free(api: httpx.Client) -> None:
    key = {"Idempotency-Key": f"key {time.time()}"}
    assert api.post("/api/ask", json={"message": " \n"}, headers=key).status_code == 422
    assert api.post("/api/ask", json={"message": "What is the date?"}, headers=key).status_code == 200


def test_a_message_has_a_model_and_pictures(api: httpx.Client, endpoint: FakeEndpoint) -> None:
    picture = f"data:image/png;base64,{base64.b64encode(PNG).decode()}"
    body = {"message": f"What is this? {time.time()}", "model": "fake-large", "images": [picture]}
    turn = api.post("/api/ask", json=body).json()

    assert (turn["state"], turn["model"]) == ("complete", "fake-large")
    request = endpoint.requests("cato")[-1]
    assert request["model"] == "fake-large"
    assert [part["type"] for part in request["messages"][-1]["content"]] == ["text", "image_url"]
    further = api.post(f"/api/threads/{turn['thread_id']}/ask", json={"message": "And now?", "model": "cato"}).json()
    assert further["model"] != "fake-large", "only for one answer"


@pytest.mark.parametrize(
    "wrong",
    [
        {"model": "gpt-none"},
        {"images": ["https://example.org/key.png"]},
        {"images": ["data:image/png;base64,%"]},
        {"images": ["data:image/png;base64,é"]},
    ],
)
def test_an_impossible_model_or_picture_is_refused(api: httpx.Client, wrong: dict[str, Any]) -> None:
    refused = api.post("/api/ask", json={"message": "What is this?"} | wrong)
    assert (refused.status_code, refused.json()["error"]["code"]) == (422, "invalid")


def test_an_invalid_message_is_refused(api: httpx.Client) -> None:
    for body in (
        {"message": " \n"},
        {"message": "\x00"},
        {"message": "a" * 400_000},
        {},
        {"message": "a", "stream": 1},
    ):
        answer = api.post("/api/ask", json=body)
        assert (answer.status_code, answer.json()["error"]["code"]) == (422, "invalid"), str(body)[:80]


def test_a_disconnected_client_does_not_stop_the_answer(api: httpx.Client) -> None:
    with api.stream("POST", "/api/ask", json={"message": "Tell me a story", "stream": True}) as response:
        line = next(line for line in response.iter_lines() if line.startswith("data: "))
    turn = json.loads(line.removeprefix("data: "))

    path = f"/api/threads/{turn['thread_id']}/turns/{turn['id']}"
    wait_for(lambda: api.get(path).json()["state"] == "complete", "the answer to be complete")
