"""A model endpoint that does as it is told: OpenAI's and Ollama's HTTP, scripted per API key, remembering all.

Run it with `python -m tests.fake_endpoint --port N`, or from a test:

    with start() as endpoint:
        endpoint.script("alice", answer="Yes.", token_delay=0.05)
        ...  # ask endpoint.openai_url with the key "alice"
        assert endpoint.asked("alice")[-1]["messages"]
"""

from __future__ import annotations

import argparse
import asyncio
import base64
import hashlib
import json
import math
import os
import re
import socket
import struct
import subprocess
import sys
import threading
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote
from urllib.request import Request, urlopen

from tests.faults import FAULTS, Fault

Receive = Callable[[], Awaitable[dict[str, Any]]]
Send = Callable[[dict[str, Any]], Awaitable[None]]

# And error-<status>, and those of tests/faults.py; blind: 400 for pictures.
MODES = ("ok", "slow", "cut", "hang", "blind", "wrong-dimension")


@dataclass
class Script:
    """What the endpoint does for one key."""

    answer: str | list[str] | None = None  # a list: one for each request, the last one again and again
    reasoning: str = ""  # what is thought aloud before it
    reasoning_field: str = "reasoning_content"  # where that stands in a piece; servers disagree
    mode: str = "ok"
    first_delay: float = 0.0  # seconds before the first token, or before an answer that is not streamed
    token_delay: float = 0.0  # seconds before each token; 0.05 in the mode slow where not set
    tokens: int | None = None  # length of an answer without a text; in the mode cut, how many arrive
    fail_times: int | None = None  # so many requests fail as the mode says, then all is well
    retry_after: float = 1.0  # seconds, said with status 429


@dataclass
class Person:
    """What is known of one key: its script, and what was asked with it."""

    script: Script = field(default_factory=Script)
    asked: list[tuple[str, Any]] = field(default_factory=list)
    answered: int = 0
    failed: int = 0


class FakeEndpoint:
    """The test's end of it."""

    def __init__(self, url: str) -> None:
        self.url = url.rstrip("/")
        self.openai_url = f"{self.url}/v1"

    def script(self, key: str, **script: Any) -> None:
        """Set what happens to requests with this key (the fields of Script) and begin its counts anew."""
        self._call("POST", f"/script/{quote(key, safe='')}", script)

    def asked(self, key: str, path: str = "/v1/chat/completions") -> list[Any]:
        """The bodies of all requests with this key to this path, oldest first."""
        rows = self._call("GET", f"/asked/{quote(key, safe='')}")
        return [row["body"] for row in rows if row["path"] == path]

    def forget(self, key: str) -> None:
        """Forget what was asked with this key."""
        self._call("DELETE", f"/asked/{quote(key, safe='')}")

    def _call(self, method: str, path: str, body: Any = None) -> Any:
        data = None if body is None else json.dumps(body).encode()
        with urlopen(Request(self.url + path, data=data, method=method), timeout=10) as response:
            return json.load(response)


@contextmanager
def start() -> Iterator[FakeEndpoint]:
    """Run the endpoint in a process of its own, on a free port; it ends with the block or this process."""
    command = [sys.executable, "-m", "tests.fake_endpoint", "--port", "0", "--until-stdin-closes"]
    root = Path(__file__).resolve().parent.parent
    with subprocess.Popen(command, cwd=root, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            line = process.stdout.readline()  # it says its address as soon as it listens
            assert line, "the fake endpoint did not start"
            yield FakeEndpoint(line.strip())
        finally:
            process.kill()


people: dict[str, Person] = defaultdict(Person)


async def application(scope: dict[str, Any], receive: Receive, send: Send) -> None:
    """The endpoint as an ASGI application."""
    if scope["type"] != "http":
        return
    raw = b""
    while True:
        message = await receive()
        raw += message.get("body", b"")
        if not message.get("more_body"):
            break
    body = json.loads(raw) if raw else None
    method, path = scope["method"], scope["path"]
    cookie = dict(scope["headers"]).get(b"cookie")
    if path.startswith(("/script/", "/asked/")):
        await _steer(method, path, body, send)
        return
    person = people[_key(scope)]
    person.asked.append((path, body))
    if cookie:
        person.asked.append(("cookie", cookie.decode()))
    if path in ROUTES:
        await _answer(path, person, body, receive, send)
    else:
        await _json(send, {"error": {"message": f"no such path: {path}"}}, 404)


async def _steer(method: str, path: str, body: Any, send: Send) -> None:
    verb, _, key = path[1:].partition("/")
    key = unquote(key)
    if (method, verb) == ("POST", "script"):
        mode = body.get("mode", "ok")
        if mode not in (*MODES, *FAULTS) and not re.fullmatch(r"error-[45]\d\d", mode):
            await _json(send, {"error": f"no such mode: {mode}"}, 400)
            return
        people[key].script = Script(**body)
        people[key].answered = people[key].failed = 0
    elif (method, verb) == ("DELETE", "asked"):
        people[key].asked.clear()
    rows = [{"path": path, "body": said} for path, said in people[key].asked]
    await _json(send, rows)


async def _answer(path: str, person: Person, body: Any, receive: Receive, send: Send) -> None:
    script = person.script
    mode = script.mode
    if mode not in ("ok", "slow") and script.fail_times is not None:
        person.failed += 1
        if person.failed > script.fail_times:
            mode = "ok"
    if mode == "blind":
        mode = "error-400" if "image_url" in json.dumps(body) else "ok"
    if mode == "hang":
        while (await receive())["type"] != "http.disconnect":
            pass
    elif mode in FAULTS:
        await _fault(FAULTS[mode], receive, send)
    elif mode.startswith("error-"):
        status = int(mode.removeprefix("error-"))
        headers = [(b"retry-after", str(script.retry_after).encode())] if status == 429 else []
        await _json(send, {"error": {"message": f"scripted {status}", "type": "scripted"}}, status, headers)
    else:
        await ROUTES[path](person, mode, body or {}, receive, send)


async def _fault(fault: Fault, receive: Receive, send: Send) -> None:
    await send({"type": "http.response.start", "status": fault.status, "headers": list(fault.headers)})
    gone = asyncio.ensure_future(_until_gone(receive))
    for chunk in fault.chunks:
        if gone.done():
            return
        await send({"type": "http.response.body", "body": chunk, "more_body": True})
        await asyncio.sleep(0)
    if fault.end == "done":
        await send({"type": "http.response.body", "body": b""})
    elif fault.end == "hang":
        await gone
    gone.cancel()  # where nothing more is sent, uvicorn closes the connection in the middle of its response


async def _chat(person: Person, mode: str, body: Any, receive: Receive, send: Send) -> None:
    script = person.script
    pieces = re.findall(r"\s*\S+|\s+$", _text_of(person, body))
    asked = sum(len(str(message.get("content") or "").split()) for message in body.get("messages", []))
    usage = {"prompt_tokens": asked, "completion_tokens": len(pieces), "total_tokens": asked + len(pieces)}
    person.answered += 1
    await asyncio.sleep(script.first_delay)
    frame = {"id": "chatcmpl-fake", "created": 0, "model": body.get("model", "fake")}
    if not body.get("stream"):
        said = {"role": "assistant", "content": "".join(pieces)}
        choice = {"index": 0, "message": said, "finish_reason": "stop"}
        await _json(send, frame | {"object": "chat.completion", "choices": [choice], "usage": usage})
        return
    frame["object"] = "chat.completion.chunk"
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"text/event-stream")]})
    gone = asyncio.ensure_future(_until_gone(receive))
    delay = script.token_delay or (0.05 if mode == "slow" else 0)
    async for _, piece in _paced(re.findall(r"\s*\S+", script.reasoning), delay):
        await _event(send, frame | {"choices": [{"index": 0, "delta": {script.reasoning_field: piece}}]})
    async for number, piece in _paced(pieces, delay):
        if gone.done():
            return
        if mode == "cut" and number >= (2 if script.tokens is None else script.tokens):
            return  # uvicorn closes a connection whose response was not completed
        delta = {"content": piece} if number else {"role": "assistant", "content": piece}
        await _event(send, frame | {"choices": [{"index": 0, "delta": delta, "finish_reason": None}]})
    await _event(send, frame | {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})
    if (body.get("stream_options") or {}).get("include_usage"):
        await _event(send, frame | {"choices": [], "usage": usage})
    await send({"type": "http.response.body", "body": b"data: [DONE]\n\n"})
    gone.cancel()


async def _paced(pieces: Sequence[str], delay: float) -> AsyncIterator[tuple[int, str]]:
    """The pieces by the clock, so that what sending takes does not add up."""
    clock = asyncio.get_running_loop().time
    begun = clock()
    for number, piece in enumerate(pieces):
        await asyncio.sleep(max(begun + (number + 1) * delay - clock(), 0))
        yield number, piece


async def _until_gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


def _text_of(person: Person, body: Any) -> str:
    answer = person.script.answer
    if isinstance(answer, list):
        return answer[min(person.answered, len(answer) - 1)] if answer else ""
    if answer is not None:
        return answer
    if person.script.tokens is not None and person.script.mode != "cut":
        return " ".join(f"word{number}" for number in range(person.script.tokens))
    asked = [message for message in body.get("messages", []) if message.get("role") == "user"]
    last = asked[-1].get("content") if asked else ""
    if isinstance(last, list):
        last = " ".join(str(part.get("text", "")) for part in last)
    return f"You said:\n\n> {last}\n\nThat is **noted**, with a list:\n\n- one\n- two\n"


async def _openai_models(person: Person, mode: str, body: Any, receive: Receive, send: Send) -> None:
    rows = [{"id": name, "object": "model", "created": 0, "owned_by": "fake"} for name in ("fake", "fake-large")]
    await _json(send, {"object": "list", "data": rows})


async def _openai_embeddings(person: Person, mode: str, body: Any, receive: Receive, send: Send) -> None:
    texts = [body["input"]] if isinstance(body["input"], str) else body["input"]
    size = 100 if mode == "wrong-dimension" else body.get("dimensions") or 1536
    await asyncio.sleep(person.script.first_delay)
    vectors: list[Any] = [embed(text, size) for text in texts]
    if body.get("encoding_format") == "base64":
        vectors = [base64.b64encode(struct.pack(f"<{size}f", *vector)).decode() for vector in vectors]
    rows = [{"object": "embedding", "index": i, "embedding": vector} for i, vector in enumerate(vectors)]
    usage = {"prompt_tokens": len(texts), "total_tokens": len(texts)}
    await _json(send, {"object": "list", "model": body.get("model"), "data": rows, "usage": usage})


async def _ollama_embed(person: Person, mode: str, body: Any, receive: Receive, send: Send) -> None:
    texts = [body["input"]] if isinstance(body["input"], str) else body["input"]
    size = 100 if mode == "wrong-dimension" else body.get("dimensions") or 768
    await asyncio.sleep(person.script.first_delay)
    await _json(send, {"model": body.get("model"), "embeddings": [embed(text, size) for text in texts]})


async def _ollama_tags(person: Person, mode: str, body: Any, receive: Receive, send: Send) -> None:
    await _json(send, {"models": [{"name": "fake:latest", "model": "fake:latest"}]})


ROUTES: dict[str, Callable[[Person, str, Any, Receive, Send], Awaitable[None]]] = {
    "/v1/chat/completions": _chat,
    "/v1/models": _openai_models,
    "/v1/embeddings": _openai_embeddings,
    "/api/embed": _ollama_embed,
    "/api/tags": _ollama_tags,
}


def embed(text: str, size: int) -> list[float]:
    """Words hashed into `size` buckets, length 1: texts that share words are near, in every process alike."""
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
    own = [(b"content-type", b"application/json"), (b"content-length", str(len(data)).encode())]
    await send({"type": "http.response.start", "status": status, "headers": [*own, *headers]})
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
