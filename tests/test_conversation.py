"""The complete path through a running Cato: post, stream, remember and recall, by HTTP and socket."""

from __future__ import annotations

import re
import threading
import time
import uuid

import pytest

from tests.server import wait_for
from tests.socket import open_socket

KEY = "cato"
# Other tests store texts in the space of the team, of which one may be recalled as well.
RECALLED = re.compile(r"\d+ recalled")


@pytest.fixture(autouse=True)
def plain_answers(endpoint):
    """Let the endpoint answer immediately unless a test scripts it."""
    endpoint.script(KEY, answer="All right.")


def latest_prompt(endpoint, text: str) -> str:
    """Return the newest prompt whose last message is `text`."""
    for body in reversed(endpoint.requests(KEY)):
        messages = body.get("messages") if isinstance(body, dict) else None
        if messages and messages[-1]["content"].endswith(text):
            return messages[-1]["content"]
    return ""


def wait_until_remembered(person, thread: str) -> bool:
    return "Remembered</span>" in person.thread_page(thread)


def test_a_message_is_answered_remembered_and_recalled_in_a_new_thread(alice, endpoint):
    endpoint.script(KEY, answer="Noted: the greenhouse key hangs **behind the clock**.")
    first = alice.send_message("The greenhouse key hangs behind the clock.")
    wait_for(lambda: wait_until_remembered(alice, first), "the exchange to be remembered")
    assert "<strong>behind the clock</strong>" in alice.thread_page(first)

    question = "Where do I find what opens the glass house?"
    second = alice.send_message(question)
    page = wait_for(lambda: (p := alice.thread_page(second)) and RECALLED.search(p) and p, "the recall to be shown")

    prompt = wait_for(lambda: latest_prompt(endpoint, question), "the endpoint to be asked")
    assert "The greenhouse key hangs behind the clock." in prompt
    assert 'by="Alice Owner"' in prompt
    assert re.search(r'said="\d{4}-\d\d-\d\d', prompt)
    pages = [alice.get(link) for link in re.findall(r'href="(/m/[0-9a-f-]+)"', page)]
    # Other tests may have stored something for everyone, which is in no thread.
    assert {page.status_code for page in pages} <= {200, 302}
    assert any(page.headers.get("location", "").startswith(f"/t/{first}#turn-") for page in pages)


def test_recalled_text_is_not_stored_again(alice, cato, endpoint):
    thread = alice.send_message("The greenhouse key hangs behind the clock.")
    wait_for(lambda: wait_until_remembered(alice, thread), "the exchange to be remembered")
    second = alice.send_message("Where does the key of the greenhouse hang?")
    wait_for(lambda: wait_until_remembered(alice, second), "the second to be remembered")

    texts = cato.sql("SELECT user_message FROM memory_exchange WHERE thread_id = ?", uuid.UUID(second).hex)
    assert texts == [("Where does the key of the greenhouse hang?",)]


def test_the_answer_streams_by_block_and_late_pages_catch_up(alice, cato, endpoint):
    answer = "\n\n".join(f"Paragraph {n} with some words in it." for n in range(12))
    endpoint.script(KEY, answer=answer, token_delay=0.04)
    thread = alice.send_message("Tell me a long story")
    with open_socket(alice, thread) as early:
        early.hello()
        early.until("Paragraph 2 with")
        with open_socket(cato.sign_in(alice, cato.other_url), thread, url=cato.other_url) as late:
            late.hello()
            snapshot = late.until("Paragraph 0 with")
            assert "Paragraph 1 with" in snapshot
            if 'class="turn__actions"' not in snapshot:
                late.until(r'class="turn__actions"')
        early.until(r'class="turn__actions"')
    page = alice.thread_page(thread)
    blocks = re.search(r'id="turn-[0-9a-f-]+-blocks">(.*?)</div>\s*<div\s+class="answer__segments', page, re.S)
    sent = "".join(re.findall(r'beforeend:#turn-[0-9a-f-]+-blocks">(.*?</div>)</div>', "".join(early.received), re.S))
    assert blocks[1].endswith(sent.strip())


def test_closing_all_pages_does_not_stop_the_answer(alice, endpoint):
    endpoint.script(KEY, answer="One word after the other until the end.", token_delay=0.1)
    thread = alice.send_message("Go on without me")
    with open_socket(alice, thread) as page:
        page.hello()
        page.until("One")

    wait_for(lambda: "until the end." in alice.thread_page(thread), "the answer to be complete")


def test_stop_works_on_every_web_process(alice, cato, endpoint):
    endpoint.script(KEY, tokens=6000, token_delay=0.01)
    elsewhere = cato.sign_in(alice, cato.other_url)
    for number in range(6):
        thread = alice.send_message(f"Count to a thousand, try {number}")
        stop = wait_for(
            lambda thread=thread: re.search(r'formaction="(/t/[^"]+/stop)"', alice.thread_page(thread)), "a Stop button"
        )
        time.sleep(0.1 * number)
        (alice, elsewhere)[number % 2].post(stop[1], htmx=True)
        wait_for(lambda thread=thread: ">Stopped by Alice Owner<" in alice.thread_page(thread), "it to stop")


def test_a_message_sent_twice_creates_one_turn(alice, cato, endpoint):
    key = str(uuid.uuid4())
    thread = alice.send_message("Only once", key=key)
    assert alice.send_message("Only once", key=key) == thread
    again = str(uuid.uuid4())
    results = []
    senders = [
        threading.Thread(target=lambda: results.append(alice.send_message("Twice at once", thread, again)))
        for _ in "ab"
    ]
    for sender in senders:
        sender.start()
    for sender in senders:
        sender.join()

    assert cato.sql("SELECT count(*) FROM chat_turn WHERE thread_id = ?", uuid.UUID(thread).hex) == [(2,)]


def test_a_first_message_sent_twice_at_once_creates_one_thread(alice, cato):
    for _ in range(5):
        key, threads = str(uuid.uuid4()), []
        senders = [
            threading.Thread(target=lambda key=key, to=threads: to.append(alice.send_message("Once", key=key)))
            for _ in "ab"
        ]
        for sender in senders:
            sender.start()
        for sender in senders:
            sender.join()
        assert len(set(threads)) == 1
        assert cato.sql("SELECT count(*) FROM chat_turn WHERE thread_id = ?", uuid.UUID(threads[0]).hex) == [(1,)]


def test_another_text_with_the_key_of_a_message_is_posted(alice, cato):
    """The response to the first one was lost; the page kept its key, and the person has changed the text."""
    key = str(uuid.uuid4())
    first, other = alice.send_message("Who has the key?", key=key), alice.send_message("Who has the ladder?", key=key)
    for text in ("And the spare one?", "And the long one?", "And the spare one?"):
        alice.send_message(text, first, key=key)

    assert first != other
    rows = cato.sql("SELECT message FROM chat_turn WHERE thread_id = ? ORDER BY position", uuid.UUID(first).hex)
    assert rows == [("Who has the key?",), ("And the spare one?",), ("And the long one?",)]


def test_a_message_posted_while_an_answer_runs_is_queued(alice, cato, endpoint):
    endpoint.script(KEY, answer="Slowly but surely I answer.", token_delay=0.1)
    thread = alice.send_message("First")
    alice.send_message("Second", thread)
    assert "Queued until the previous answer ends" in alice.thread_page(thread)

    wait_for(lambda: alice.thread_page(thread).count("surely I answer.") == 2, "both answers")


@pytest.mark.parametrize(
    ("script", "sentence"),
    [
        ({"mode": "error-500"}, "server failed (HTTP 500)"),
        ({"mode": "error-429"}, "Rate limited by the model endpoint"),
        ({"mode": "error-401"}, "refuses the API key"),
        ({"mode": "cut", "tokens": 5}, "was cut off"),
    ],
)
def test_a_model_error_keeps_the_message_shows_the_reason_and_allows_a_retry(alice, endpoint, script, sentence):
    endpoint.script(KEY, **script)
    thread = alice.send_message("Do not lose this")
    page = wait_for(lambda: (p := alice.thread_page(thread)) and sentence in p and p, sentence)
    assert "Do not lose this" in page

    endpoint.script(KEY, answer="Here you are.")
    alice.post(re.search(r'formaction="(/t/[^"]+/retry)"', page)[1], htmx=True)
    wait_for(lambda: "Here you are." in alice.thread_page(thread), "the retried answer")


def test_an_unknown_model_is_named_as_in_the_thread(alice, endpoint):
    thread = alice.send_message("Hello")
    endpoint.script(KEY, models=["fake", "gone-1"])
    command = {"message": "/model gone-1", "client_key": str(uuid.uuid4())}
    wait_for(lambda: alice.post(f"/t/{thread}/messages", command, htmx=True).is_success, "the new list of models")
    endpoint.script(KEY, mode="error-404")
    alice.send_message("Are you there?", thread)

    reason = (
        "does not know the model gone-1. Choose another one below the message field, "
        "or ask an administrator to change it in the settings."
    )
    wait_for(lambda: reason in alice.thread_page(thread), "the reason")


def test_a_partial_answer_is_remembered_and_resuming_updates_the_same_exchange(alice, cato, endpoint):
    endpoint.script(KEY, mode="cut", tokens=6)
    thread = alice.send_message("Begin and break off")
    page = wait_for(lambda: (p := alice.thread_page(thread)) and "was cut off" in p and p, "the failure")
    (before,) = cato.sql("SELECT id, assistant_message FROM memory_exchange WHERE thread_id = ?", uuid.UUID(thread).hex)
    assert before[1].strip()

    endpoint.script(KEY, answer=" And this is the rest.")
    alice.post(re.search(r'formaction="(/t/[^"]+/resume)"', page)[1], htmx=True)
    wait_for(lambda: "And this is the rest." in alice.thread_page(thread), "the rest")
    (after,) = cato.sql("SELECT id, assistant_message FROM memory_exchange WHERE thread_id = ?", uuid.UUID(thread).hex)
    assert after[0] == before[0]
    assert after[1].startswith(before[1])
    assert after[1].endswith("And this is the rest.")


def test_a_thread_that_is_not_remembered_leaves_nothing_in_memory(alice, cato, endpoint):
    thread = alice.send_message("Something harmless")
    wait_for(lambda: wait_until_remembered(alice, thread), "the first to be remembered")
    alice.post(f"/t/{thread}/memory", {"wait_until_remembered": "no"})
    alice.send_message("My PIN is 8253", thread)
    wait_for(lambda: alice.thread_page(thread).count("All right.") == 2, "the answer")

    found = cato.sql("SELECT user_message FROM memory_exchange WHERE thread_id = ?", uuid.UUID(thread).hex)
    assert found == [("Something harmless",)]


def test_forgetting_shows_on_the_turn_and_where_it_was_recalled(alice, endpoint):
    first = alice.send_message("The greenhouse key hangs behind the clock.")
    page = wait_for(lambda: (p := alice.thread_page(first)) and "/forget" in p and "Remembered<" in p and p, "memory")
    second = alice.send_message("Where does the greenhouse key hang?")
    wait_for(lambda: RECALLED.search(alice.thread_page(second)), "the recall")
    with open_socket(alice, second) as open_page:
        open_page.hello()
        open_page.until(RECALLED.pattern)
        answer = alice.post(re.search(r'href="(/m/[^"]+/forget-everywhere)"', page)[1])
        assert answer.status_code == 302
        open_page.until("Forgotten")
    assert "by Alice Owner" in alice.thread_page(first)
    hits = alice.search_page("greenhouse key clock")
    assert "does the greenhouse key hang" in hits
    assert "behind the clock" not in hits


@pytest.mark.parametrize(
    ("message", "status", "expected"),
    [
        ("", 422, "empty"),
        (" \x00 ", 422, "empty"),
        ("x" * 150_000, 422, "at most 100,000"),
        ("/vquer x", 422, "Did you mean /vquery?"),
        ('/vget "open', 422, "closing quote"),
        ("/help", 200, "/vstats"),
    ],
)
def test_invalid_messages_and_commands_are_explained_and_store_nothing(alice, cato, message, status, expected):
    thread = alice.send_message("Hello")
    before = cato.sql("SELECT count(*) FROM chat_turn")
    answer = alice.post(f"/t/{thread}/messages", {"message": message, "client_key": str(uuid.uuid4())}, htmx=True)

    assert answer.status_code == status
    assert expected in answer.text.replace("&quot;", '"')
    assert cato.sql("SELECT count(*) FROM chat_turn") == before


@pytest.mark.parametrize("message", ["<script>alert(1)</script>", "‮right to left ‏שלום", "NUL\x00inside", "a\r\nb"])
def test_any_text_can_be_sent_and_is_escaped(alice, endpoint, message):
    endpoint.script(KEY, answer=message + " ![x](http://evil.example/x.png) <b onclick=x>")
    thread = alice.send_message(message)
    page = wait_for(lambda: (p := alice.thread_page(thread)) and "evil.example" in p and p, "the answer")

    assert "<script>alert" not in page
    assert "<img" not in page
    assert "<b onclick" not in page


def test_an_unreadable_thread_closes_the_socket_like_a_missing_one(alice, bob):
    thread = alice.send_message("Mine alone")
    codes = []
    for wanted in (thread, str(uuid.uuid4())):
        with open_socket(bob, wanted) as page:
            codes.append(page.close_code())
    assert codes == [4404, 4404]


@pytest.mark.parametrize("origin", ["http://evil.example", None, "null", "https://127.0.0.1"])
def test_a_socket_from_another_origin_is_closed(alice, origin):
    thread = alice.send_message("Mine alone")
    with open_socket(alice, thread, origin=origin) as page:
        assert page.close_code() == 4403


def test_signing_out_and_deactivation_close_open_pages_within_seconds(alice, bob, administrator, cato):
    alices_thread, bobs_thread = alice.send_message("Listening"), bob.send_message("Listening")
    with open_socket(alice, alices_thread) as alices_socket, open_socket(bob, bobs_thread) as bobs_socket:
        alices_socket.hello()
        bobs_socket.hello()
        alices_socket.until("Listening")
        bobs_socket.until("Listening")
        alice.post("/sign-out")
        people = administrator.get("/admin/people", params={"q": bob.email}).text
        administrator.post(re.search(r'formaction="(/admin/people/[^"]+/active)\?', people)[1], {"active": "no"})
        assert alices_socket.close_code(15) in (1013, 4404)
        assert bobs_socket.close_code(15) in (1013, 4404)
    assert bob.get("/").status_code == 302
    with open_socket(bob, bobs_thread) as again:
        assert again.close_code() == 4401


def test_an_invalid_frame_gets_an_explanation(alice):
    thread = alice.send_message("Hello")
    with open_socket(alice, thread) as page:
        page.connection.send("no json")
        assert "takes one JSON object" in page.until("error")
        page.hello()
        page.until("Hello")
