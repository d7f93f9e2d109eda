"""What a model thinks aloud at the head of its answer, told apart from the answer."""

from __future__ import annotations

_OPEN, _CLOSE = "<think>", "</think>"
_MAX_BLANK = 1_000  # characters of white space before it; more are an answer that says nothing


class ReasoningSplitter:
    """Splits a stream that may begin with `<think>…</think>`, as open models write where their server leaves it in."""

    def __init__(self) -> None:
        self._held = ""
        self._state = "begin"

    def feed(self, text: str) -> tuple[str, str]:
        """Take in the next piece; returns what was thought and what was said, either may be empty."""
        if self._state == "between":
            text = text.lstrip()
            self._state = "answer" if text else "between"
        if self._state in ("answer", "between"):
            return "", text
        self._held += text
        if self._state == "begin":
            head = self._held.lstrip()
            if len(head) < len(_OPEN) and _OPEN.startswith(head) and len(self._held) <= _MAX_BLANK:
                return "", ""
            if not head.startswith(_OPEN):
                return "", self._give_rest()
            self._state, self._held = "thinking", head[len(_OPEN) :].lstrip("\n")
        thought, found, said = self._held.partition(_CLOSE)
        if found:
            said = said.lstrip()
            self._state, self._held = "answer" if said else "between", ""
            return thought.rstrip(), said
        # The end of what is held may be half of the closing mark.
        sure = max(0, len(self._held) - len(_CLOSE) + 1)
        given, self._held = self._held[:sure], self._held[sure:]
        return given, ""

    def end(self) -> tuple[str, str]:
        """What is still held when nothing more comes."""
        if self._state == "thinking":
            rest, self._held = self._held, ""
            return rest, ""
        return "", self._give_rest()

    def _give_rest(self) -> str:
        rest, self._held, self._state = self._held, "", "answer"
        return rest
