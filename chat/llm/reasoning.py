"""Separates the reasoning at the beginning of a model's output from its answer."""

from __future__ import annotations

_OPEN, _CLOSE = "<think>", "</think>"
_MAX_BLANK = 1_000  # characters of white space before the opening tag


class ReasoningSplitter:
    """Splits a stream that can begin with `<think>…</think>`, as some servers of open models send it."""

    def __init__(self) -> None:
        self._pending = ""
        self._state = "begin"

    def feed(self, text: str) -> tuple[str, str]:
        """Add the next text; return the reasoning and the answer text it completes."""
        if self._state == "between":
            text = text.lstrip()
            self._state = "answer" if text else "between"
        if self._state in ("answer", "between"):
            return "", text
        self._pending += text
        if self._state == "begin":
            head = self._pending.lstrip()
            if len(head) < len(_OPEN) and _OPEN.startswith(head) and len(self._pending) <= _MAX_BLANK:
                return "", ""
            if not head.startswith(_OPEN):
                return "", self._flush()
            self._state, self._pending = "reasoning", head[len(_OPEN) :].lstrip("\n")
        reasoning, found, answer = self._pending.partition(_CLOSE)
        if found:
            answer = answer.lstrip()
            self._state, self._pending = "answer" if answer else "between", ""
            return reasoning.rstrip(), answer
        # The end can be the first part of the closing tag.
        safe = max(0, len(self._pending) - len(_CLOSE) + 1)
        reasoning, self._pending = self._pending[:safe], self._pending[safe:]
        return reasoning, ""

    def end(self) -> tuple[str, str]:
        """Return the remaining reasoning and answer text at the end of the stream."""
        return (self._flush(), "") if self._state == "reasoning" else ("", self._flush())

    def _flush(self) -> str:
        text, self._pending, self._state = self._pending, "", "answer"
        return text
