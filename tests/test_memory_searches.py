"""Searches of memory by the model: within the rights of the thread's readers, bounded, cited, recorded and forgotten."""

from __future__ import annotations

import html
import json
import re
import uuid
from typing import Any

import pytest

from tests.server import Client, wait_for

KEY = "cato"
FACT = "The contract with Bergmann ends on 31 March 2027."
# Nothing is recalled for it, so that what is found was searched for.
TASK = "Write a short poem about the sea."


@pytest.fixture(autouse=True)
def plain_answers(endpoint):
    endpoint.script(KEY, answer="All right.")
    endpoint.clear(KEY)


def search(query: str, **arguments: Any) -> list[str]:
    return ["search_memory", json.dumps({"query": query, **arguments})]


def remember(person: Client, message: str) -> str:
    thread = person.send_message(message)
    wait_for(lambda: "Remembered</span>" in person.thread_page(thread), "the message to be remembered")
    return thread


def ask(person: Client, endpoint, calls: list[list[list[str]]], *answers: str, message: str = TASK) -> str:
    """Send a message for which the model makes `calls`, one list for each request, and return the page of its thread."""
    endpoint.clear(KEY)
    endpoint.script(KEY, answer=[*answers], calls=calls)
    thread = person.send_message(message)
    return wait_for(lambda: complete_page(person, thread), "the answer")


def complete_page(person: Client, thread: str) -> str:
    page = person.thread_page(thread)
    return page if re.search(r"Remembered</span>|turn__status--failed", page) else ""


def text_of(page: str) -> str:
    return html.unescape(re.sub(r"\s+", " ", re.sub(r"<[^>]+>", "", page)))


def requests_with_tools(endpoint) -> list[dict[str, Any]]:
    return [body for body in endpoint.requests(KEY) if body.get("tools")]


def tool_results(endpoint) -> list[str]:
    last = requests_with_tools(endpoint)[-1]
    return [message["content"] for message in last["messages"] if message["role"] == "tool"]


def test_what_a_search_finds_is_numbered_cited_and_shown(alice, endpoint):
    remember(alice, FACT)
    # Other tests store texts that everybody can read.
    page = ask(alice, endpoint, [[search("Bergmann contract", limit=1)]], "Let me see.", "It ends in March 2027 [1].")

    first, second = requests_with_tools(endpoint)
    assert [tool["function"]["name"] for tool in first["tools"]] == ["search_memory", "read_more", "list_documents"]
    *_earlier, call, result = second["messages"]
    assert (call["role"], call["content"], call["tool_calls"][0]["id"]) == ("assistant", "Let me see.", "call-1-1")
    assert (result["role"], result["tool_call_id"]) == ("tool", "call-1-1")
    assert FACT in result["content"]
    assert 'number="1"' in result["content"]

    text = text_of(page)
    assert "Searched memory for “Bergmann contract” · 1 result" in text
    assert "cited as 1" in text
    assert "Based on 1 source" in text
    assert re.search(r'<a class="citation" data-source="1"', page)
    blocks = re.findall(r'class="answer__block" dir="auto"><p>(.*?)</p>', page)
    assert [text_of(block) for block in blocks[-2:]] == ["Let me see.", "It ends in March 2027 1."]


def test_a_resumed_answer_goes_on_with_the_sources_that_it_cites(alice, endpoint, cato):
    remember(alice, FACT)
    remember(alice, "The ferry to Skagen leaves at seven.")
    endpoint.clear(KEY)
    half = "It ends in March 2027 [1]. " + " ".join(f"word{n}" for n in range(200))
    endpoint.script(KEY, answer=["Let me see.", half], calls=[[search("Bergmann contract", limit=1)]], token_delay=0.05)
    thread = alice.send_message(TASK)
    begun = "SELECT id FROM chat_turn WHERE answer LIKE ? AND thread_id = ?"
    turn = wait_for(lambda: cato.sql(begun, "%word5 %", uuid.UUID(thread).hex), "the answer to begin")
    path = f"/t/{thread}/turns/{uuid.UUID(str(turn[0][0]))}"
    alice.post(f"{path}/stop")
    wait_for(lambda: f"{path}/resume" in alice.thread_page(thread), "the end")
    endpoint.script(KEY, answer=["And", " the ferry leaves at seven [2]."], calls=[[search("ferry Skagen", limit=1)]])
    alice.post(f"{path}/resume")
    page = wait_for(lambda: complete_page(alice, thread), "the rest")

    cited = re.findall(r'<a class="citation" data-source="(\d)"', page)
    assert cited == ["1", "2"]
    quoted = str(endpoint.requests(KEY)[-2]["messages"])
    assert 'number="1"' in quoted, "the passage that the partial text cites is in the prompt"
    assert FACT in quoted
    assert "the ferry leaves at seven" in text_of(page)
    searched = re.findall("Searched memory for “([^”]*)”", text_of(page))
    assert searched == ["Bergmann contract", "ferry Skagen"]
    assert text_of(page).index("Bergmann ends on") < text_of(page).rindex("The ferry to Skagen leaves")


def test_calls_of_one_round_are_answered_in_their_order(alice, endpoint):
    remember(alice, "The lighthouse keeper is called Oyvind.")
    remember(alice, "The ferry to Skagen leaves at seven.")
    calls = [
        [search("lighthouse keeper", limit=1), search("ferry Skagen", limit=1), search("lighthouse keeper", limit=1)]
    ]
    page = ask(alice, endpoint, calls, "", "Oyvind [1], at seven [2].")

    first, second, third = tool_results(endpoint)
    assert "Oyvind" in first
    assert "Skagen" in second
    assert third == "Already quoted above: [1]."
    assert text_of(page).count("Searched memory for “lighthouse keeper” · 1 result") == 2


def test_nothing_is_found_that_a_reader_of_the_thread_may_not_read(alice, bob, endpoint):
    remember(bob, "Bob’s secret parcel is buried under the pear tree.")
    page = ask(alice, endpoint, [[search("secret parcel buried pear tree")]], "", "I do not know.")

    (result,) = tool_results(endpoint)
    assert "pear tree" not in result.replace("secret parcel buried pear tree", "")
    assert "pear tree is" not in text_of(page)
    assert "buried under" not in page


def test_mistakes_of_the_model_are_explained_to_it(alice, endpoint):
    calls = [
        [["search_memory", '{"query": "'], ["search_memory", '{"query": "x", "limit": 99}'], ["delete_all", "{}"]],
        [search("x", space="No such space"), ["read_more", '{"passage": 9}']],
    ]
    page = ask(alice, endpoint, calls, "", "", "Never mind.")

    results = tool_results(endpoint)
    assert results[0] == "Error: The arguments must be valid JSON."
    assert results[1] == "Error: The argument limit must be at most 8."
    assert results[2].startswith("Error: There is no tool 'delete_all'")
    assert "No such space" in results[3]
    assert results[4] == "Error: There is no passage 9."
    assert "Never mind." in page
    assert text_of(page).count("The answer continues without it.") == 5


def test_a_model_that_searches_without_end_is_stopped(alice, endpoint):
    calls = [[search(f"{round} {number}") for number in range(3)] for round in range(9)]
    page = ask(alice, endpoint, calls, *[""] * 4, "Enough.")

    assert len(requests_with_tools(endpoint)) == 5
    assert requests_with_tools(endpoint)[-1]["tool_choice"] == "none"
    assert [result.startswith("No more searches") for result in tool_results(endpoint)] == [False] * 6 + [True] * 6
    text = text_of(page)
    assert "Searched memory 6 times" in text
    assert "Stopped after 6 searches" in text
    assert "Enough." in text


def test_a_model_that_never_answers_fails_with_the_reason(alice, endpoint):
    page = ask(alice, endpoint, [[search(str(round))] for round in range(9)], "")
    assert "The model used tools again and again and did not answer." in text_of(page)


def test_a_model_without_tools_is_asked_again_without_them_once(alice, endpoint):
    thread = remember(alice, "Hello.")
    # Not the model of the other tests: whether a model accepts tools is remembered.
    alice.post(f"/t/{thread}/messages", {"message": "/model fake-large", "client_key": str(uuid.uuid4())})
    endpoint.clear(KEY)
    endpoint.script(KEY, mode="toolless", answer="Yes.")
    for count, question in enumerate(("Is it so?", "And this?"), start=2):
        alice.send_message(question, thread)
        wait_for(lambda n=count: alice.thread_page(thread).count("Remembered</span>") == n, "the answer")
    asked = [
        bool(body.get("tools")) for body in endpoint.requests(KEY) if body["messages"][-1]["content"].endswith("?")
    ]
    assert asked == [True, False, False]


def test_a_model_is_offered_tools_again_after_a_message_that_was_too_long_with_them(alice, endpoint):
    thread = remember(alice, "Hello.")
    endpoint.clear(KEY)
    error = {"object": "error", "message": "This model's maximum context length is 8192 tokens.", "code": 400}
    endpoint.script(KEY, mode="toolless", error=error, answer="Yes.")
    for count, question in enumerate(("Is it long?", "And now?"), start=2):
        alice.send_message(question, thread)
        wait_for(lambda n=count: alice.thread_page(thread).count("Remembered</span>") == n, "the answer")
        endpoint.script(KEY, answer="Yes.")
    asked = [
        bool(body.get("tools")) for body in endpoint.requests(KEY) if body["messages"][-1]["content"].endswith("?")
    ]
    assert asked == [True, False, True]


def test_reading_on_gives_what_stands_around_a_passage(alice, endpoint):
    thread = remember(alice, "The valve of the third pump sticks.")
    alice.send_message("We oiled it on Monday with the blue can.", thread)
    wait_for(lambda: alice.thread_page(thread).count("Remembered</span>") == 2, "both to be remembered")
    calls = [[search("valve third pump sticks", limit=1)], [["read_more", '{"passage": 1}']]]
    page = ask(alice, endpoint, calls, "", "", "It was oiled [2].")

    assert "blue can" in tool_results(endpoint)[1]
    assert 'number="2"' in tool_results(endpoint)[1]
    assert "Read more around source 1 · 1 result" in text_of(page)


def test_forgetting_everywhere_deletes_the_queries(alice, endpoint, cato):
    page = ask(alice, endpoint, [[search("kingfisher nest")]], "", "No idea.", message="Where does the bird live?")
    searched = "SELECT COUNT(*) FROM chat_turn WHERE CAST(memory_searches AS TEXT) LIKE ?"
    assert cato.sql(searched, "%kingfisher%") == [(1,)]
    [path] = set(re.findall(r'href="(/m/[^"]+/forget-everywhere)"', page))
    alice.post(path)
    assert cato.sql("SELECT COUNT(*) FROM chat_turn WHERE CAST(memory_searches AS TEXT) LIKE ?", "%kingfisher%") == [
        (0,)
    ]
