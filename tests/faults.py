"""Faulty responses of model endpoints, byte by byte, as modes of the fake endpoint."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import repeat
from typing import Any

Headers = tuple[tuple[bytes, bytes], ...]


@dataclass(frozen=True)
class Fault:
    """One response: its chunks, and whether it ends, breaks off or hangs."""

    chunks: Iterable[bytes]
    status: int = 200
    headers: Headers = ((b"content-type", b"text/event-stream"),)
    end: str = "done"  # or "break" or "hang"


def event(data: Any) -> bytes:
    return b"data: " + (data if isinstance(data, bytes) else json.dumps(data).encode()) + b"\n\n"


def text(content: str, **choice: Any) -> bytes:
    return event({"choices": [{"index": 0, "delta": {"content": content}, **choice}]})


def finish(reason: str = "stop") -> bytes:
    return event({"choices": [{"index": 0, "delta": {}, "finish_reason": reason}]})


def usage(prompt: Any = 3, completion: Any = 4) -> bytes:
    return event(
        b'{"choices":[],"usage":{"prompt_tokens":%b,"completion_tokens":%b}}'
        % tuple(n if isinstance(n, bytes) else json.dumps(n).encode() for n in (prompt, completion))
    )


DONE = event(b"[DONE]")
ANSWER = text("Behind ") + text("the clock.")
WHOLE = ANSWER + finish()
JSON = ((b"content-type", b"application/json"),)


def redirect(status: int) -> Fault:
    return Fault([b""], status, ((b"location", b"/elsewhere/v1/chat/completions"),))


class Endless:
    """An infinite response of one repeated chunk."""

    def __init__(self, chunk: bytes) -> None:
        self._chunk = chunk

    def __iter__(self) -> Iterator[bytes]:
        return repeat(self._chunk)


_SPLIT = text("Grüße 🐈").replace(b"\n\n", b"\r\n\r\n") + finish()
FAULTS: dict[str, Fault] = {
    # Complete answers.
    "length": Fault([ANSWER, finish("length"), usage(), DONE]),
    "model-length": Fault([ANSWER, finish("model_length"), DONE]),
    "content-filter": Fault([ANSWER, finish("content_filter"), DONE]),
    "tool-calls": Fault([ANSWER, finish("tool_calls"), DONE]),
    "length-silent": Fault([finish("length"), DONE]),
    "filter-silent": Fault([finish("content_filter"), DONE]),
    "usage-text": Fault([WHOLE, usage("many"), DONE]),
    "usage-null": Fault([WHOLE, usage(None, None), DONE]),
    "usage-half": Fault([WHOLE, event(b'{"choices":[],"usage":{"prompt_tokens":3}}'), DONE]),
    "usage-list": Fault([WHOLE, event(b'{"choices":[],"usage":[1]}'), DONE]),
    "usage-infinite": Fault([WHOLE, usage(b"1e400"), DONE]),
    "usage-huge": Fault([WHOLE, usage(10**19), DONE]),
    "usage-digits": Fault([WHOLE, usage(b"9" * 5000), DONE]),
    "usage-negative": Fault([WHOLE, usage(-1), DONE]),
    "usage-deep": Fault([WHOLE, event(b'{"usage":' + b"[" * 200_000 + b"]" * 200_000 + b"}"), DONE]),
    "after-done": Fault([WHOLE, DONE, b"data: {broken\n\n", text("More.")]),
    "two-lines": Fault([ANSWER.replace(b'"delta"', b'\ndata: "delta"'), finish(), DONE]),
    "no-blank-lines": Fault([WHOLE.replace(b"\n\n", b"\n"), b"data: [DONE]\n"]),
    "no-done": Fault([WHOLE]),
    "break-after-finish": Fault([WHOLE], end="break"),
    "comments": Fault([b": ping\n\n", ANSWER, b"event: x\nid: 1\n\n", finish(), DONE]),
    "single-bytes": Fault([_SPLIT[i : i + 1] for i in range(len(_SPLIT))]),
    "cookie": Fault([WHOLE, DONE], headers=((b"set-cookie", b"who=alice; Path=/"),)),
    "odd-text": Fault([text("a\x00b"), event(b'{"choices":[{"delta":{"content":"\\ud83d"}}]}'),
                       event(b'{"choices":[{"delta":{"content":"\\udc08 c"}}]}'), finish(), DONE]),
    # Interrupted answers.
    "error-object": Fault([ANSWER, event({"error": {"message": "<b>secret</b>"}}), DONE]),
    "error-text": Fault([ANSWER, event({"error": "secret"})]),
    "reset": Fault([ANSWER], end="break"),
    "no-finish": Fault([ANSWER, DONE]),
    "finish-error": Fault([ANSWER, finish("error"), usage(), DONE]),
    "finish-overloaded": Fault([ANSWER, finish("insufficient_system_resource"), usage(), DONE]),
    "deep": Fault([ANSWER, event(b"{" + b'"a":{' * 100_000 + b"}" * 100_001)]),
    "choices-object": Fault([ANSWER, event({"choices": {"a": 1}})]),
    "choice-null": Fault([ANSWER, event({"choices": [None]})]),
    "content-number": Fault([ANSWER, event({"choices": [{"delta": {"content": 7}}]})]),
    "content-list": Fault([ANSWER, event({"choices": [{"delta": {"content": ["x"]}}]})]),
    "null": Fault([ANSWER, event(b"null")]),
    "hang-midway": Fault([ANSWER], end="hang"),
    "event-limited-midway": Fault([ANSWER, event({"error": {"message": "Slow down.", "code": 429}})]),
    "event-unsupported-midway": Fault([ANSWER, event({"error": {"type": "invalid_request_error",
                                                                "code": "unsupported_value", "param": "temperature"}})]),
    "event-rejected-midway": Fault([event({"choices": [{"delta": {"reasoning_content": "Hm."}}]}),
                                    event({"error": {"message": "No tools.", "code": 400}})]),
    # No answer.
    "event-error": Fault([event({"error": {"message": "secret"}}), DONE]),
    "event-limited": Fault([event({"error": {"message": "Slow down.", "type": "rate_limit_error"}}), DONE]),
    "event-too-long": Fault([event({"error": {"message": "The prompt is too long.", "code": "context_length_exceeded",
                                              "type": "invalid_request_error"}})]),
    "html": Fault([b"<html><h1>It works</h1></html>"], headers=((b"content-type", b"text/html"),)),
    "json": Fault([b'{"error": "no"}'], headers=JSON),
    "empty": Fault([b""]),
    "no-models": Fault([b'{"object": "list", "data": null}'], headers=JSON),
    "finish-error-silent": Fault([finish("error"), DONE]),
    "usage-alone": Fault([usage(), DONE]),
    "bad-gateway": Fault([b"<html>Bad gateway</html>"], 502, ((b"content-type", b"text/html"),)),
    "busy": Fault([b"{}"], 503, (*JSON, (b"retry-after", b"20"))),
    "redirect-302": redirect(302),
    "redirect-307": redirect(307),
    "redirect-308": redirect(308),
    "gzip-bomb": Fault(
        [gzip.compress(b"data: " + b"x" * 50_000_000)], headers=((b"content-encoding", b"gzip"),)
    ),
    "error-bomb": Fault(Endless(b"x" * 65536), 500, JSON),
    "line-without-end": Fault(Endless(b"data: " + b"x" * 65536)),
    # Infinite answers.
    "endless": Fault(Endless(text("word ") * 100)),
    "endless-blank": Fault(Endless(text(" ") * 100)),
    "endless-comments": Fault(Endless(b": ping\n\n")),
    "large-delta": Fault([text("x" * 500_000), finish(), DONE]),
}  # fmt: skip
