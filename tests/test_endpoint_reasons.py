"""What a model endpoint says when it rejects a request: for clients and the log, without secrets and texts of people."""

from __future__ import annotations

import json
import time
import uuid

import openai
import pytest
from openai import OpenAI

from chat.errors import NO_REASON, EndpointReason
from chat.llm import failures
from chat.llm.endpoint import ModelEndpoint
from chat.llm.reasons import read_reason, reason_in
from tests.server import Client, wait_for
from tests.tokens import create_tokens

KEY = "cato"
TOO_LONG = "This model's maximum context length is 8192 tokens. However, you requested 10234 tokens."
CONTEXT_ERROR = {
    "error": {
        "message": TOO_LONG,
        "type": "invalid_request_error",
        "param": "messages",
        "code": "context_length_exceeded",
    }
}
ENDPOINT = ModelEndpoint("http://models.halden:8080/v1", "Zx-81_gQ7pLm2", "fake")


def reason_of(message: str, *messages: str, **fields: str) -> EndpointReason:
    body = json.dumps({"error": {"message": message} | fields}).encode()
    return read_reason(body, ENDPOINT, [{"role": "user", "content": text} for text in messages])


@pytest.mark.parametrize(
    "body",
    [
        {"error": {"message": "Too many tokens.", "type": "t", "code": "c"}},
        {"object": "error", "message": "Too many tokens.", "type": "t", "code": "c"},  # vLLM
        [{"error": {"message": "Too many tokens.", "type": "t", "code": "c"}}],  # Google
    ],
)
def test_reasons_of_servers_are_read(body):
    assert read_reason(json.dumps(body).encode(), ENDPOINT, []) == EndpointReason("Too many tokens.", "c", "t")


@pytest.mark.parametrize("body", [{"error": "Too many tokens."}, {"detail": "Too many tokens."}])
def test_reasons_without_a_code_are_read(body):
    assert read_reason(json.dumps(body).encode(), ENDPOINT, []) == EndpointReason("Too many tokens.")


@pytest.mark.parametrize(
    "body", [b"", b"<html>", b"[]", b"7", b'{"error": null}', b'{"error": {"message": {}, "code": 400, "type": [1]}}',
             b"\xff{", b"[" * 60_000, b"9" * 60_000],
)  # fmt: skip
def test_an_unknown_body_has_no_reason(body):
    assert read_reason(body, ENDPOINT, []) == NO_REASON


@pytest.mark.parametrize(
    "secret",
    [
        "http://10.1.2.3:8000/v1", "https://internal/x?key=1", "10.1.2.3", "10.1.2.3:8000", "[fd00::12:9]:8000",
        "fd00:1:2::9", "::1", "models.halden", "MODELS.HALDEN:8080", "vllm-2:8000", "gpu.cluster.local", "localhost",
        "sk-proj-****abcd", "Bearer abc", "org-Abc123Def456", "it@halden.example", "0f8fad5bd9cb469fa16570867728950e1",
        "data:image/png;base64,iVBORw0KGgo", "Zx******Lm2",
    ],
)  # fmt: skip
def test_addresses_and_keys_are_left_out(secret):
    message = reason_of(f"Rejected by {secret} as it is.", code=secret, type=secret)
    assert message == EndpointReason("Rejected by […] as it is.")


def test_a_reason_that_quotes_the_key_is_left_out():
    assert reason_of(f"The key {ENDPOINT.api_key} is wrong.") == NO_REASON
    assert reason_of("The key ends in gQ7pLm2_.") != NO_REASON
    assert reason_of("The key ends in _gQ7pLm2.") == NO_REASON
    short = ModelEndpoint("http://models.halden/v1", "hidden", "fake")
    assert read_reason(b'{"error": "Wrong: hidden"}', short, []) == NO_REASON


def test_ordinary_words_names_and_numbers_stay():
    message = "Invalid 'messages[0].content' at 12%: gpt-3.5-turbo and Qwen2.5-7B-Instruct take 4,096 tokens; max_tokens: 5000."
    assert reason_of(message, code="model.not_found").message == message
    assert reason_of(message, code="model.not_found").code == "model.not_found"


def test_texts_of_the_prompt_are_left_out():
    private = "The code of the vault is\n4711, as you know."
    quoted = reason_of("Bad input {'content': 'The code of the vault is\\n4711, as'}: the vault", private, "PIN 9", "?")
    assert quoted.message == "Bad input {'content': '[…]'}: the vault"
    assert reason_of("Cannot read: PIN 9", "PIN 9").message == "Cannot read: […]"
    assert reason_of("无法读取：保险库的密码是四七一一", "你好，保险库的密码是四七一一。").message == "无法读取：[…]"
    part = [{"role": "user", "content": [{"type": "text", "text": private}, {"type": "image_url", "image_url": {}}]}]
    assert read_reason(b'{"error": "No: the code of the vault"}', ENDPOINT, part).message == "No: […]"


def test_a_reason_is_one_bounded_line():
    message = reason_of("No.\n\x00\x1b[31m\u202e" + "again, " * 500).message
    assert len(message) == 400
    assert message.endswith("…")
    assert message.isprintable()


@pytest.mark.parametrize("hostile", ["a." * 1000, "a:" * 1000, "1." * 1000, "a-" * 1000, "::" * 1000, "a" * 2000])
def test_a_hostile_reason_takes_no_time(hostile):
    started = time.process_time()
    reason_of(hostile, "Hi")
    assert time.process_time() - started < 5


def test_the_time_of_the_next_try_passes_while_it_is_stored():
    stored = EndpointReason("No.", retry_after=20).as_json()
    assert EndpointReason.from_json(stored).retry_after in (19, 20)
    assert EndpointReason.from_json(stored | {"retry_at": time.time() - 1}) == EndpointReason("No.")
    assert EndpointReason.from_json(NO_REASON.as_json()) == NO_REASON == EndpointReason.from_json({})


@pytest.fixture(autouse=True)
def plain_answers(request):
    if "client" in request.fixturenames:
        request.getfixturevalue("endpoint").script(KEY, answer="All right.")


@pytest.fixture(scope="module")
def alice(cato, administrator):
    return cato.join(administrator, "Alice Rejected")


@pytest.fixture(scope="module")
def client(cato, alice) -> OpenAI:
    (token,) = create_tokens(cato, alice, "read write ask")
    return OpenAI(base_url=f"{cato.url}/v1", api_key=token, max_retries=0, timeout=30)


def chat(client: OpenAI, text: str, *, stream: bool, **options):
    answer = client.chat.completions.create(
        model="cato", messages=[{"role": "user", "content": text}], stream=stream, **options
    )
    return list(answer) if stream else answer


def background(client: OpenAI, text: str, *, stream: bool):
    return chat(client, text, stream=stream, extra_headers={"X-Cato-Background": "yes"})


def respond(client: OpenAI, text: str, *, stream: bool):
    answer = client.responses.create(model="cato", input=text, stream=stream)
    return list(answer) if stream else answer


REQUESTS = pytest.mark.parametrize("request_answer", [chat, respond, background])
STREAMS = pytest.mark.parametrize("stream", [False, True])


def unique(text: str) -> str:
    return f"{text} {uuid.uuid4().hex[:6]}"


@REQUESTS
@STREAMS
@pytest.mark.parametrize(("mode", "how"), [("error-400", "HTTP 400"), ("error-event", "with an error event")])
def test_clients_get_the_reason_of_a_rejected_request(client, cato, endpoint, request_answer, stream, mode, how):
    endpoint.script(KEY, mode=mode, error=CONTEXT_ERROR)
    with pytest.raises(openai.BadRequestError) as rejected:
        request_answer(client, unique("How long"), stream=stream)

    error = rejected.value
    assert TOO_LONG in error.message
    assert (error.code, error.type) == ("context_length_exceeded", "invalid_request_error")
    assert f"answered {how}: context_length_exceeded, invalid_request_error, {TOO_LONG}" in cato.logs()


@REQUESTS
@STREAMS
@pytest.mark.parametrize(("status", "code"), [(429, "scripted"), (503, "broken")])
@pytest.mark.parametrize(("seconds", "sent"), [(20, {"19", "20"}), (7200, {"3599", "3600"}), (10**9, {"60"})])
def test_clients_get_the_time_of_the_next_try(client, endpoint, request_answer, stream, status, code, seconds, sent):
    error = {"error": {"message": "Slow down.", "type": "tokens", "code": "scripted"}}
    endpoint.script(KEY, mode=f"error-{status}", retry_after=seconds, error=error)
    with pytest.raises(openai.APIStatusError) as limited:
        request_answer(client, unique("Again"), stream=stream)

    if status == 503 and seconds == 10**9:
        assert limited.value.status_code == 502
        return
    assert limited.value.status_code == status
    assert limited.value.response.headers["Retry-After"] in sent
    assert limited.value.code == code
    assert ("Slow down." in limited.value.message) == (status == 429), "the inside of a server is not about the request"


def page_with(person: Client, thread: str, sentence: str) -> str:
    """Return the page of the thread once it has the sentence."""
    return wait_for(lambda: sentence in (page := person.thread_page(thread)) and page, sentence, seconds=15)


def test_the_page_shows_a_sentence_and_not_the_reason(client, alice, endpoint):
    endpoint.script(KEY, mode="error-400", error=CONTEXT_ERROR)
    thread = alice.send_message(unique("How long"))
    assert "context length is 8192" not in page_with(alice, thread, "Send less, or choose another model.")

    endpoint.script(KEY, mode="error-400", error={"error": {"message": "Tides are not supported."}})
    thread = alice.send_message(unique("How high"))
    assert "Tides" not in page_with(alice, thread, "rejected the request (HTTP 400)")


def test_a_failed_response_is_returned_with_its_reason(client, cato, endpoint):
    endpoint.script(KEY, mode="error-400", error=CONTEXT_ERROR)
    message = unique("How long")
    with pytest.raises(openai.BadRequestError):
        respond(client, message, stream=False)
    ((turn,),) = cato.sql("SELECT id FROM chat_turn WHERE message = ?", message)
    saved = client.responses.retrieve(f"resp_{uuid.UUID(turn).hex}_0")
    assert saved.error.code == "context_length_exceeded"
    assert TOO_LONG in saved.error.message


def test_a_refused_key_is_no_reason_for_clients(client, endpoint):
    endpoint.script(KEY, mode="error-401", error={"error": {"message": "Ask the accounting.", "code": "expired"}})
    with pytest.raises(openai.APIStatusError) as refused:
        chat(client, unique("Who pays"), stream=False)
    assert "accounting" not in refused.value.message
    assert refused.value.code == "refused"


def test_a_body_that_does_not_end_is_no_reason(client, endpoint):
    endpoint.script(KEY, mode="error-bomb")
    with pytest.raises(openai.InternalServerError):
        chat(client, unique("Boom"), stream=False)


def test_a_retried_answer_has_no_old_reason(client, cato, endpoint):
    endpoint.script(KEY, mode="error-400", error=CONTEXT_ERROR)
    message = unique("How long")
    with pytest.raises(openai.BadRequestError):
        chat(client, message, stream=False)
    stored = "SELECT endpoint_reason FROM chat_turn WHERE message = ?"
    assert "context_length_exceeded" in str(cato.sql(stored, message))
    endpoint.script(KEY)
    chat(client, message, stream=False)
    assert "context_length_exceeded" not in str(cato.sql(stored, message))


@pytest.mark.parametrize(
    "error",
    [
        {"message": "Too many.", "code": "context_length_exceeded"},  # OpenAI
        {"message": "This model's maximum context length is 8192 tokens. However, you sent 9000.", "code": 400},  # vLLM
        {
            "message": "request (9000 tokens) exceeds the available context size (4096 tokens), try increasing it"
        },  # llama.cpp
        {"message": "prompt is too long: 208310 tokens > 200000 maximum", "type": "invalid_request_error"},  # Anthropic
        {"message": "Prompt contains 40000 tokens, too large for model with 32768 maximum context length"},  # Mistral
    ],
)
def test_a_prompt_that_is_too_long_is_recognised_for_any_server(error):
    reason = read_reason(json.dumps({"error": error}).encode(), ENDPOINT, [])
    failure = failures.status_error(400, "", host="models.halden", model="fake", reason=reason)
    assert str(failure) == "This is more than the model can read. Send less, or choose another model."


@pytest.mark.parametrize(
    ("message", "code"),
    [
        ("tools param requires --jinja flag", "rejected"),
        ("Unsupported param: tools", "rejected"),
        ("image input is not supported - hint: if this is unexpected, you may need to provide the mmproj", "rejected"),
        ("The tools param was read, and the server ran out of memory.", "broken"),
    ],
)
def test_llama_cpp_rejects_tools_and_images_with_500(message, code):
    """A request that is rejected is repeated without tools or images; one that fails is not."""
    error = {"code": 500, "message": message, "type": "server_error"}
    reason = read_reason(json.dumps({"error": error}).encode(), ENDPOINT, [])
    assert failures.status_error(500, "", host="models.halden", model="fake", reason=reason).code == code


@pytest.mark.parametrize(
    ("status", "error"),
    [
        (429, {"message": "You exceeded your current quota.", "code": "insufficient_quota"}),  # OpenAI
        (402, {"message": "Insufficient credits", "code": 402}),  # OpenRouter
        (402, {"message": "Insufficient Balance", "code": "invalid_request_error"}),  # DeepSeek
    ],
)
def test_an_account_without_credit_is_recognised_and_trying_again_is_not_advised(status, error):
    reason = read_reason(json.dumps({"error": error}).encode(), ENDPOINT, [])
    failure = failures.status_error(status, "", host="models.halden", model="fake", reason=reason)
    assert str(failure) == "The account at models.halden has no credit left. An administrator can add some."
    assert failure.code == "refused"


@pytest.mark.parametrize(
    ("error", "code", "sentence"),
    [
        ({"message": "Slow down.", "code": "rate_limit_exceeded"}, "rate_limited", "Rate limited"),  # OpenAI
        ({"message": "Slow down.", "type": "rate_limit_error"}, "rate_limited", "Rate limited"),  # Anthropic
        ({"message": "Slow down.", "code": 429}, "rate_limited", "Rate limited"),  # OpenRouter
        ({"message": "Slow down.", "code": "429"}, "rate_limited", "Rate limited"),
        ({"message": "Insufficient credits", "code": 402}, "refused", "no credit left"),
        ({"message": "Your quota is used up.", "code": "insufficient_quota"}, "refused", "no credit left"),
        ({"message": "No images.", "type": "BadRequestError", "code": 400}, "rejected", "rejected the request"),  # vLLM
        ({"message": "No images.", "type": "invalid_request_error"}, "rejected", "rejected the request"),
        ({"message": "The prompt is too long.", "type": "api_error"}, "rejected", "Send less"),
        ({"message": "Overloaded.", "code": 503}, "broken", "in the middle"),
        ({"message": "Overloaded.", "code": [4] * 3}, "broken", "in the middle"),
        ({"message": "Overloaded."}, "broken", "in the middle"),
    ],
)
def test_an_error_in_the_stream_is_classified_as_a_status_is(error, code, sentence):
    reason = reason_in({"error": error}, ENDPOINT, [])
    failure = failures.event_error(error.get("code"), host="halden", model="fake", reason=reason, has_begun=True)
    assert failure.code == code
    assert sentence in str(failure)
    assert failure.reason.message == (error["message"] if code in ("rate_limited", "rejected") else "")
