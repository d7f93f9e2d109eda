"""A fake model endpoint with OpenAI's and Ollama's HTTP API, scripted per API key; it records all requests.

Run it with `python -m tests.fake_endpoint --port N`, or from a test:

    with start() as endpoint:
        endpoint.script("alice", answer="Yes.", token_delay=0.05)
        ...  # call endpoint.openai_url with the key "alice"
        assert endpoint.requests("alice")[-1]["messages"]
"""

from __future__ import annotations

import argparse
import asyncio
import base64
import email
import hashlib
import io
import json
import math
import os
import re
import socket
import struct
import subprocess
import sys
import threading
import wave
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote
from urllib.request import Request, urlopen

from tests.faults import FAULTS, Fault, event
from tests.statement_replies import write_statements

Receive = Callable[[], Awaitable[dict[str, Any]]]
Send = Callable[[dict[str, Any]], Awaitable[None]]

# Fields that servers reject, with the error in which they do: OpenAI's reasoning models, and Mistral.
STRICT = {
    "reasoning-model": {
        name: {
            "error": {
                "message": f"Unsupported: '{name}'.",
                "type": "invalid_request_error",
                "param": name,
                "code": code,
            }
        }
        for name, code in {"max_tokens": "unsupported_parameter", "temperature": "unsupported_value"}.items()
    },
    "no-stream-options": {
        "stream_options": {
            "object": "error",
            "message": {"detail": [{"type": "extra_forbidden", "loc": ["body", "stream_options", "include_usage"]}]},
            "type": "invalid_request_error",
            "code": None,
        }
    },
}
# Also error-<status> and the names in tests/faults.py. "blind" answers 400 to messages with images, "toolless" to tools,
# "schemaless" to a response format, "overfull" to results of tools, "reads-arguments" to calls with arguments that are no
# JSON; "schemaless-500" answers 500 to a response format, "error-event" streams the error.
MODES = (
    "ok",
    "slow",
    "cut",
    "hang",
    "blind",
    "toolless",
    "overfull",
    "reads-arguments",
    "schemaless",
    "schemaless-500",
    "error-event",
    "wrong-dimension",
    *STRICT,
)


@dataclass
class Script:
    """What the endpoint does for one key."""

    answer: str | list[str] | None = None  # a list: one for each request, the last one repeated
    # For each request with tools, the calls that are made after its text, as pairs of a name and JSON arguments.
    calls: Sequence[Sequence[Sequence[str]]] = ()
    refuses: bool = False  # the answer is a refusal
    fingerprint: str | None = None  # its system_fingerprint
    # A request for statements gets one for each source that begins as `tests/statement_replies.py` says.
    extracts: bool = False
    cites: str = ""  # the answer cites the recalled passages that contain this
    usage_details: dict[str, Any] = field(default_factory=dict)  # more fields of its usage
    reasoning: str = ""  # reasoning sent before the answer
    reasoning_field: str = "reasoning_content"  # its field in a chunk; servers differ
    mode: str = "ok"
    first_delay: float = 0.0  # seconds before the first token, or before an answer without streaming
    token_delay: float = 0.0  # seconds before each token; default in mode "slow": 0.05
    tokens: int | None = None  # length of an answer without a text; in mode "cut" the number sent
    fail_times: int | None = None  # number of requests that fail before the others succeed
    retry_after: float = 1.0  # seconds, sent with status 429 and 503
    error: Any = None  # the body of errors; with it, only requests with a body fail, not the list of models
    models: Sequence[str] = ("fake", "fake-large")  # the chat models that it lists
    transcript: str = "The boat is red."  # the text of every recording
    transcription_usage: dict[str, Any] = field(default_factory=dict)  # "usage" of a transcription


@dataclass
class KeyState:
    """Script and recorded requests of one key."""

    script: Script = field(default_factory=Script)
    requests: list[tuple[str, Any]] = field(default_factory=list)
    answered: int = 0
    calling: int = 0
    failed: int = 0


class FakeEndpoint:
    """The test's interface to the endpoint."""

    def __init__(self, url: str) -> None:
        self.url = url.rstrip("/")
        self.openai_url = f"{self.url}/v1"

    def script(self, key: str, **script: Any) -> None:
        """Set the script of this key (the fields of Script) and reset its counters."""
        self._call("POST", f"/script/{quote(key, safe='')}", script)

    def requests(self, key: str, path: str = "/v1/chat/completions") -> list[Any]:
        """Return the bodies of all requests with this key to this path, oldest first."""
        rows = self._call("GET", f"/asked/{quote(key, safe='')}")
        return [row["body"] for row in rows if row["path"] == path]

    def clear(self, key: str) -> None:
        """Delete the recorded requests of this key."""
        self._call("DELETE", f"/asked/{quote(key, safe='')}")

    def _call(self, method: str, path: str, body: Any = None) -> Any:
        data = None if body is None else json.dumps(body).encode()
        with urlopen(Request(self.url + path, data=data, method=method), timeout=10) as response:
            return json.load(response)


@contextmanager
def start() -> Iterator[FakeEndpoint]:
    """Run the endpoint in a child process on a free port."""
    command = [sys.executable, "-m", "tests.fake_endpoint", "--port", "0", "--until-stdin-closes"]
    root = Path(__file__).resolve().parent.parent
    with subprocess.Popen(command, cwd=root, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            line = process.stdout.readline()  # the process prints its address once it listens
            assert line, "the fake endpoint did not start"
            yield FakeEndpoint(line.strip())
        finally:
            process.kill()


states: dict[str, KeyState] = defaultdict(KeyState)


async def application(scope: dict[str, Any], receive: Receive, send: Send) -> None:
    """Handle a request as an ASGI application."""
    if scope["type"] != "http":
        return
    raw = b""
    while True:
        message = await receive()
        raw += message.get("body", b"")
        if not message.get("more_body"):
            break
    headers = dict(scope["headers"])
    content_type = headers.get(b"content-type", b"").decode()
    body = _form(content_type, raw) if content_type.startswith("multipart/") else json.loads(raw) if raw else None
    method, path = scope["method"], scope["path"]
    cookie = headers.get(b"cookie")
    if path.startswith(("/script/", "/asked/")):
        await _control(method, path, body, send)
        return
    state = states[_key(scope)]
    state.requests.append((path, body))
    if cookie:
        state.requests.append(("cookie", cookie.decode()))
    if path in ROUTES:
        await _answer(path, state, body, receive, send)
    else:
        await _json(send, {"error": {"message": f"no such path: {path}"}}, 404)


async def _control(method: str, path: str, body: Any, send: Send) -> None:
    verb, _, key = path[1:].partition("/")
    key = unquote(key)
    if (method, verb) == ("POST", "script"):
        mode = body.get("mode", "ok")
        if mode not in (*MODES, *FAULTS) and not re.fullmatch(r"error-[45]\d\d", mode):
            await _json(send, {"error": f"no such mode: {mode}"}, 400)
            return
        states[key].script = Script(**body)
        states[key].answered = states[key].calling = states[key].failed = 0
    elif (method, verb) == ("DELETE", "asked"):
        states[key].requests.clear()
    rows = [{"path": path, "body": message} for path, message in states[key].requests]
    await _json(send, rows)


async def _answer(path: str, state: KeyState, body: Any, receive: Receive, send: Send) -> None:
    script = state.script
    mode = script.mode
    if mode not in ("ok", "slow") and script.fail_times is not None:
        state.failed += 1
        if state.failed > script.fail_times:
            mode = "ok"
    if mode == "blind":
        mode = "error-400" if "image_url" in json.dumps(body) else "ok"
    if mode == "overfull":
        mode = "error-400" if any(message["role"] == "tool" for message in (body or {}).get("messages", [])) else "ok"
    if mode == "reads-arguments":
        mode = "ok" if _has_valid_arguments((body or {}).get("messages", [])) else "error-400"
    if mode == "toolless":
        mode = "error-400" if (body or {}).get("tools") else "ok"
    if mode in ("schemaless", "schemaless-500"):
        status = 400 if mode == "schemaless" else 500
        mode = f"error-{status}" if (body or {}).get("response_format") else "ok"
    if mode in STRICT:
        errors = [error for name, error in STRICT[mode].items() if name in (body or {})]
        if errors:
            await _json(send, errors[0], 400 if mode == "reasoning-model" else 422)
            return
        mode = "ok"
    if mode == "hang":
        while (await receive())["type"] != "http.disconnect":
            pass
    elif mode in FAULTS:
        await _fault(FAULTS[mode], receive, send)
    elif mode == "error-event" and body:
        await _fault(Fault([event(script.error)]), receive, send)
    elif mode.startswith("error-") and (body or not script.error):
        status = int(mode.removeprefix("error-"))
        headers = [(b"retry-after", str(script.retry_after).encode())] if status in (429, 503) else []
        error = script.error or {"error": {"message": f"scripted {status}", "type": "scripted"}}
        await _json(send, error, status, headers)
    else:
        await ROUTES[path](state, mode, body or {}, receive, send)


async def _fault(fault: Fault, receive: Receive, send: Send) -> None:
    await send({"type": "http.response.start", "status": fault.status, "headers": list(fault.headers)})
    disconnected = asyncio.ensure_future(_wait_for_disconnect(receive))
    for chunk in fault.chunks:
        if disconnected.done():
            return
        await send({"type": "http.response.body", "body": chunk, "more_body": True})
        await asyncio.sleep(0)
    if fault.end == "done":
        await send({"type": "http.response.body", "body": b""})
    elif fault.end == "hang":
        await disconnected
    disconnected.cancel()  # unless the response is complete, uvicorn closes the connection


async def _chat(state: KeyState, mode: str, body: Any, receive: Receive, send: Send) -> None:
    script = state.script
    chunks = re.findall(r"\s*\S+|\s+$", _answer_for(state, body))
    calls = _calls_for(state, body)
    reason = "tool_calls" if calls else "stop"
    prompt_tokens = sum(len(str(message.get("content") or "").split()) for message in body.get("messages", []))
    usage = {
        "prompt_tokens": prompt_tokens,
        "completion_tokens": len(chunks),
        "total_tokens": prompt_tokens + len(chunks),
    } | script.usage_details
    state.answered += 1
    await asyncio.sleep(script.first_delay)
    frame = {"id": "chatcmpl-fake", "created": 0, "model": body.get("model", "fake")}
    if script.fingerprint:
        frame["system_fingerprint"] = script.fingerprint
    text_field = "refusal" if script.refuses else "content"
    if not body.get("stream"):
        message = {"role": "assistant", "content": "".join(chunks)} | ({"tool_calls": calls} if calls else {})
        choice = {"index": 0, "message": message, "finish_reason": reason}
        await _json(send, frame | {"object": "chat.completion", "choices": [choice], "usage": usage})
        return
    frame["object"] = "chat.completion.chunk"
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"text/event-stream")]})
    disconnected = asyncio.ensure_future(_wait_for_disconnect(receive))
    delay = script.token_delay or (0.05 if mode == "slow" else 0)
    async for _, chunk in _with_delay(re.findall(r"\s*\S+", script.reasoning), delay):
        await _event(send, frame | {"choices": [{"index": 0, "delta": {script.reasoning_field: chunk}}]})
    async for number, chunk in _with_delay(chunks, delay):
        if disconnected.done():
            return
        if mode == "cut" and number >= (2 if script.tokens is None else script.tokens):
            return  # uvicorn closes a connection whose response is incomplete
        delta = {text_field: chunk} if number else {"role": "assistant", text_field: chunk}
        logprobs = {"logprobs": token_logprobs(chunk, body, text_field)} if body.get("logprobs") else {}
        await _event(send, frame | {"choices": [{"index": 0, "delta": delta, "finish_reason": None} | logprobs]})
    for index, call in enumerate(calls):
        for part in _call_parts(call):
            delta = {"tool_calls": [{"index": index} | part]}
            await _event(send, frame | {"choices": [{"index": 0, "delta": delta, "finish_reason": None}]})
    await _event(send, frame | {"choices": [{"index": 0, "delta": {}, "finish_reason": reason}]})
    if (body.get("stream_options") or {}).get("include_usage"):
        await _event(send, frame | {"choices": [], "usage": usage})
    await send({"type": "http.response.body", "body": b"data: [DONE]\n\n"})
    disconnected.cancel()


def token_logprobs(token: str, body: Any, field: str) -> dict[str, Any]:
    """Return the `logprobs` of a choice with this token, and as many alternatives as the request wants."""
    number = body.get("top_logprobs") or 0
    top = [{"token": f"{token}{n}", "logprob": -0.5 - n, "bytes": [*f"{token}{n}".encode()]} for n in range(number)]
    entry = {"token": token, "logprob": -0.25, "bytes": [*token.encode()], "top_logprobs": top}
    return {"content": None, "refusal": None} | {field: [entry]}


async def _with_delay(chunks: Sequence[str], delay: float) -> AsyncIterator[tuple[int, str]]:
    """Yield the chunks by the clock, so that the time for sending does not add up."""
    clock = asyncio.get_running_loop().time
    started = clock()
    for number, chunk in enumerate(chunks):
        await asyncio.sleep(max(started + (number + 1) * delay - clock(), 0))
        yield number, chunk


async def _wait_for_disconnect(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


def _answer_for(state: KeyState, body: Any) -> str:
    answer = state.script.answer
    if state.script.extracts and "response_format" in body:
        return write_statements(body["messages"])
    if isinstance(answer, list):
        return answer[min(state.answered, len(answer) - 1)] if answer else ""
    if answer is not None:
        return answer + _citations(state.script.cites, body)
    if state.script.tokens is not None and state.script.mode != "cut":
        return " ".join(f"word{number}" for number in range(state.script.tokens))
    prompt_tokens = [message for message in body.get("messages", []) if message.get("role") == "user"]
    last = prompt_tokens[-1].get("content") if prompt_tokens else ""
    if isinstance(last, list):
        last = " ".join(str(part.get("text", "")) for part in last)
    return f"You said:\n\n> {last}\n\nThat is **noted**, with a list:\n\n- one\n- two\n"


def _calls_for(state: KeyState, body: Any) -> list[dict[str, Any]]:
    """Return the calls that are scripted for this request, none if it offers no tools."""
    if not body.get("tools"):
        return []
    state.calling += 1
    scripted = state.script.calls[state.calling - 1] if state.calling <= len(state.script.calls) else ()
    return [
        {"id": f"call-{state.calling}-{number}", "type": "function", "function": {"name": name, "arguments": arguments}}
        for number, (name, arguments) in enumerate(scripted, 1)
    ]


def _has_valid_arguments(messages: Sequence[dict[str, Any]]) -> bool:
    calls = [call for message in messages for call in message.get("tool_calls", ())]
    try:
        return all(isinstance(json.loads(call["function"]["arguments"]), dict) for call in calls)
    except ValueError:
        return False


def _call_parts(call: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the parts in which a call is streamed: its name, then its arguments in two pieces."""
    arguments = call["function"]["arguments"]
    half = len(arguments) // 2
    return [
        call | {"function": call["function"] | {"arguments": ""}},
        *({"function": {"arguments": piece}} for piece in (arguments[:half], arguments[half:])),
    ]


def _citations(key: str, body: Any) -> str:
    """Return the citations of the recalled passages in the prompt that contain the key, in any case."""
    if not key:
        return ""
    prompt = "\n".join(str(message.get("content") or "") for message in body.get("messages", []))
    passages = re.findall(r'<passage-\w+ number="(\d+)"[^>]*>\n(.*?)\n</passage-', prompt, re.DOTALL)
    return "".join(f" [{number}]" for number, text in passages if key.lower() in text.lower())


async def _openai_models(state: KeyState, mode: str, body: Any, receive: Receive, send: Send) -> None:
    rows = [{"id": name, "object": "model", "created": 0, "owned_by": "fake"} for name in state.script.models]
    await _json(send, {"object": "list", "data": rows})


async def _openai_embeddings(state: KeyState, mode: str, body: Any, receive: Receive, send: Send) -> None:
    texts = [body["input"]] if isinstance(body["input"], str) else body["input"]
    size = 100 if mode == "wrong-dimension" else body.get("dimensions") or 1536
    await asyncio.sleep(state.script.first_delay)
    vectors: list[Any] = [embed(text, size) for text in texts]
    if body.get("encoding_format") == "base64":
        vectors = [base64.b64encode(struct.pack(f"<{size}f", *vector)).decode() for vector in vectors]
    rows = [{"object": "embedding", "index": i, "embedding": vector} for i, vector in enumerate(vectors)]
    usage = {"prompt_tokens": len(texts), "total_tokens": len(texts)}
    await _json(send, {"object": "list", "model": body.get("model"), "data": rows, "usage": usage})


async def _ollama_embed(state: KeyState, mode: str, body: Any, receive: Receive, send: Send) -> None:
    texts = [body["input"]] if isinstance(body["input"], str) else body["input"]
    size = 100 if mode == "wrong-dimension" else body.get("dimensions") or 768
    await asyncio.sleep(state.script.first_delay)
    await _json(send, {"model": body.get("model"), "embeddings": [embed(text, size) for text in texts]})


async def _ollama_tags(state: KeyState, mode: str, body: Any, receive: Receive, send: Send) -> None:
    await _json(send, {"models": [{"name": "fake:latest", "model": "fake:latest"}]})


async def _transcription(state: KeyState, mode: str, body: Any, receive: Receive, send: Send) -> None:
    await asyncio.sleep(state.script.first_delay)
    usage = state.script.transcription_usage
    await _json(send, {"text": state.script.transcript} | ({"usage": usage} if usage else {}))


async def _speech(state: KeyState, mode: str, body: Any, receive: Receive, send: Send) -> None:
    """Send a sound of a tenth of a second for each word, which browsers play, in pieces."""
    await asyncio.sleep(state.script.first_delay)
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"audio/mpeg")]})
    sound = tone(len(body["input"].split()) / 10)
    for start in range(0, len(sound), 8_000):
        await send({"type": "http.response.body", "body": sound[start : start + 8_000], "more_body": True})
        await asyncio.sleep(state.script.token_delay)
        if mode == "cut":
            return
    await send({"type": "http.response.body", "body": b""})


def tone(seconds: float) -> bytes:
    """Return a WAV file with a quiet tone."""
    rate = 8_000
    samples = bytes(128 + round(20 * math.sin(number / 3)) for number in range(int(rate * seconds)))
    file = io.BytesIO()
    with wave.open(file, "wb") as writer:
        writer.setnchannels(1)
        writer.setsampwidth(1)
        writer.setframerate(rate)
        writer.writeframes(samples)
    return file.getvalue()


def _form(content_type: str, raw: bytes) -> dict[str, Any]:
    """Return the fields of a multipart form; of a file its name, its type and the number of its bytes."""
    message = email.message_from_bytes(b"Content-Type: " + content_type.encode() + b"\r\n\r\n" + raw)
    fields: dict[str, Any] = {}
    for part in message.walk():
        name, content = part.get_param("name", header="content-disposition"), part.get_payload(decode=True)
        if isinstance(name, str) and isinstance(content, bytes):
            file = part.get_filename()
            facts = {"name": file, "type": part.get_content_type(), "bytes": len(content)}
            fields[name] = facts if file else content.decode()
    return fields


ROUTES: dict[str, Callable[[KeyState, str, Any, Receive, Send], Awaitable[None]]] = {
    "/v1/chat/completions": _chat,
    "/v1/models": _openai_models,
    "/v1/embeddings": _openai_embeddings,
    "/v1/audio/transcriptions": _transcription,
    "/v1/audio/speech": _speech,
    "/api/embed": _ollama_embed,
    "/api/tags": _ollama_tags,
}


def embed(text: str, size: int) -> list[float]:
    """Hash words into `size` buckets and normalise: texts with common words are similar, identically in every process."""
    vector = [0.0] * size
    for word in re.findall(r"\w+", text.lower()) or [""]:
        digest = int.from_bytes(hashlib.sha256(word.encode()).digest()[:8], "big")
        vector[digest % size] += 1.0 if digest >> 63 else -1.0
    length = math.sqrt(sum(value * value for value in vector)) or 1.0
    return [value / length for value in vector]


def _key(scope: dict[str, Any]) -> str:
    headers: dict[bytes, bytes] = dict(scope["headers"])
    return headers.get(b"authorization", b"Bearer none").decode().removeprefix("Bearer ")


async def _event(send: Send, content: dict[str, Any]) -> None:
    data = f"data: {json.dumps(content)}\n\n".encode()
    await send({"type": "http.response.body", "body": data, "more_body": True})


async def _json(send: Send, content: Any, status: int = 200, headers: Sequence[tuple[bytes, bytes]] = ()) -> None:
    data = json.dumps(content).encode()
    basic = [(b"content-type", b"application/json"), (b"content-length", str(len(data)).encode())]
    await send({"type": "http.response.start", "status": status, "headers": [*basic, *headers]})
    await send({"type": "http.response.body", "body": data})


def main() -> None:
    """Serve on 127.0.0.1; the first line on stdout is the address."""
    import uvicorn

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--port", type=int, default=0, help="0 takes a free one")
    parser.add_argument("--until-stdin-closes", action="store_true", help="end with whoever started this")
    options = parser.parse_args()
    listener = socket.create_server(("127.0.0.1", options.port), backlog=1024)
    if options.until_stdin_closes:
        threading.Thread(target=lambda: (sys.stdin.read(), os._exit(0)), daemon=True).start()
    print(f"http://127.0.0.1:{listener.getsockname()[1]}", flush=True)
    config = uvicorn.Config(application, log_level="critical", lifespan="off", timeout_keep_alive=60)
    uvicorn.Server(config).run(sockets=[listener])


if __name__ == "__main__":
    main()
