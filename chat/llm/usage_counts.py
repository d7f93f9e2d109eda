"""What requests to a model used: reported by the endpoint, or estimated where it reports nothing."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from chat.llm.events import StreamChunk
from memory.api import estimate_tokens


@dataclass(frozen=True, slots=True)
class UsageCounts:
    """Requests to one model and their tokens.

    `cached_tokens` are a part of `prompt_tokens`; `estimated_tokens` are those of both kinds that were not reported.
    """

    model: str
    requests: int = 0
    prompt_tokens: int = 0
    cached_tokens: int = 0
    completion_tokens: int = 0
    estimated_tokens: int = 0

    @property
    def tokens(self) -> int:
        """The tokens of prompts and completions."""
        return self.prompt_tokens + self.completion_tokens

    def __add__(self, other: UsageCounts) -> UsageCounts:
        """Return the sum of two counts of the same model."""
        return UsageCounts(
            self.model,
            self.requests + other.requests,
            self.prompt_tokens + other.prompt_tokens,
            self.cached_tokens + other.cached_tokens,
            self.completion_tokens + other.completion_tokens,
            self.estimated_tokens + other.estimated_tokens,
        )

    def as_json(self) -> dict[str, Any]:
        """Return the counts as a row stores them until they are added to the day."""
        return asdict(self)


class UsageMeter:
    """Counts what the requests for one text use while their responses arrive.

    A request that was refused before anything arrived used nothing.
    """

    def __init__(self) -> None:
        self._earlier = UsageCounts("")
        self._messages: list[Mapping[str, Any]] = []
        self._tools: Sequence[Mapping[str, Any]] = ()
        self._prompt_estimate: int | None = None
        self._has_received = False
        self._reported: Mapping[str, Any] | None = None
        self._unestimated: list[str] = []
        self._completion_estimate = 0

    def begin_request(
        self, messages: Sequence[Mapping[str, Any]], *, model: str, tools: Sequence[Mapping[str, Any]] = ()
    ) -> None:
        """Begin to count another request with these messages and definitions of tools to the same model."""
        self._earlier = replace(self._earlier + self.of_request(), model=model)
        self._messages, self._tools, self._prompt_estimate = list(messages), tools, None
        self._has_received, self._reported = False, None
        self._unestimated, self._completion_estimate = [], 0

    def add(self, chunk: StreamChunk) -> None:
        """Count a part of the response."""
        self._has_received = True
        self._reported = chunk.usage or self._reported
        calls = (call.arguments for call in chunk.tool_calls)
        self._unestimated += [part for part in (chunk.text, chunk.reasoning, *calls) if part]

    def total(self) -> UsageCounts | None:
        """Return what all requests used until now; None if that is nothing."""
        total = self._earlier + self.of_request()
        return total if total.requests else None

    def of_request(self) -> UsageCounts:
        """Return what the latest request used until now."""
        model = self._earlier.model
        if not self._has_received or not self._messages:
            return UsageCounts(model)
        if self._reported:
            prompt, completion = self._reported["prompt_tokens"], self._reported["completion_tokens"]
            cached = self._reported.get("prompt_tokens_details", {}).get("cached_tokens", 0)
            return UsageCounts(model, 1, prompt, min(cached, prompt), completion)
        if self._prompt_estimate is None:
            tokens = estimate_tokens(json.dumps(self._tools, ensure_ascii=False)) if self._tools else 0
            self._prompt_estimate = sum(map(_estimate_message, self._messages), tokens)
        if self._unestimated:
            self._completion_estimate += estimate_tokens("".join(self._unestimated))
            self._unestimated = []
        sent, received = self._prompt_estimate, self._completion_estimate
        return UsageCounts(model, 1, sent, 0, received, estimated_tokens=sent + received)


def _estimate_message(message: Mapping[str, Any]) -> int:
    """Estimate the tokens of a message without its images, whose tokens depend on the model."""
    content = message.get("content") or ""
    texts = [content] if isinstance(content, str) else [part.get("text", "") for part in content]
    calls = message.get("tool_calls")
    return sum(map(estimate_tokens, texts)) + (estimate_tokens(json.dumps(calls)) if calls else 0)
