"""Renders answers as HTML block by block, so that finished blocks never change while the answer grows.

The cost is bounded: the size of blocks and the amount of Markdown per answer are limited.
"""

from __future__ import annotations

from html import escape

from chat.rendering.block_splitting import Block, Splitter
from chat.rendering.citations import Citations, cited_numbers
from chat.rendering.markdown import render, render_open_code, render_plain
from chat.rendering.open_line import readable_line, without_first_row

# A longer open block is sent as plain text in segments of this size.
MAX_SEGMENT_CHARS = 4_000  # characters
# The number of characters rendered as Markdown, to which each block adds its weight; the rest is plain text.
_MAX_MARKDOWN_CHARS, _BLOCK_WEIGHT = 120_000, 100


def render_blocks(text: str, citations: Citations | None = None) -> list[str]:
    """Render a complete answer, as one HTML string per block."""
    answer = GrowingAnswer(citations=citations)
    return answer.feed(text) + answer.close()


class GrowingAnswer:
    """Renders a growing answer: finished blocks and segments are returned once, the open block on request.

    The result does not depend on how the text is divided between calls.
    """

    def __init__(self, text: str = "", citations: Citations | None = None) -> None:
        self.citations = citations
        self.has_finished = False
        # The numbers of the passages that the finished blocks cite, in order.
        self.cited: list[int] = []
        self._splitter = Splitter()
        self._line = ""
        self._segmented = 0  # characters of the open block that were returned in segments
        self._rendered: tuple[int, str] = (0, "")
        self._markdown_left = _MAX_MARKDOWN_CHARS
        self.feed(text)

    def feed(self, text: str) -> list[str]:
        """Add text; return the HTML of the blocks that it finished."""
        finished: list[str] = []
        if self._markdown_left > 0:
            *lines, self._line = (self._line + text).split("\n")
            for number, line in enumerate(lines, start=1):
                finished += self._finish(self._splitter.feed(line + "\n"))
                if self._markdown_left <= 0:
                    self._line = self._splitter.text + "\n".join([*lines[number:], self._line])
                    self._splitter = Splitter()
                    break
        else:
            self._line += text
        if self._markdown_left <= 0:
            while len(self._line) > MAX_SEGMENT_CHARS:
                segment, self._line = _cut(self._line)
                finished.append(_block(render_plain(segment)))
        self.has_finished = self.has_finished or bool(finished)
        return finished

    def close(self) -> list[str]:
        """Return the HTML of the last blocks at the end of the answer."""
        rest, self._line = self._line, ""
        if self._markdown_left <= 0:
            return [_block(render_plain(rest))] if rest.strip() else []
        ended = self._splitter.feed(rest) if rest.strip() else []
        return self._finish([*ended, *self._splitter.close()])

    def segments(self) -> list[str]:
        """Return the new segments of an open block that is too long for Markdown; each is returned once."""
        rest = (self._splitter.text + self._line)[self._segmented :]
        if self._markdown_left <= 0 or (not self._segmented and len(rest) <= MAX_SEGMENT_CHARS):
            return []
        segments = []
        while len(rest) > MAX_SEGMENT_CHARS:
            segment, rest = _cut(rest)
            self._segmented += len(segment)
            segments.append(render_plain(segment))
        return segments

    @property
    def has_segments(self) -> bool:
        """Return whether segments of the open block were returned."""
        return bool(self._segmented)

    def open_html(self) -> str:
        """Return the open block without its segments: complete lines as Markdown, the last line as readable plain text.

        So no line is interpreted in two ways, and each state of the complete lines is rendered only once. Code is
        highlighted once its fence is closed.
        """
        splitter, line = self._splitter, self._line
        if self._segmented:
            return _block(render_plain((splitter.text + line)[self._segmented :]))
        text = splitter.text
        if self._markdown_left <= 0 or not (text + line).strip():
            return _block(render_plain(line)) if line.strip() else ""
        if splitter.is_code:
            return _block(render_open_code(text + line))
        if self._rendered[0] != len(text):
            head = splitter.head if splitter.is_continued else ""
            shown = text if splitter.is_table else without_first_row(text)
            block = Block(shown, head, splitter.number, splitter.is_continued)
            self._rendered = (len(text), self._render(block) if block.text.strip() else "")
        shown = readable_line(line)
        return self._rendered[1] + (_block(f'<p class="answer__typing">{escape(shown)}</p>') if shown.strip() else "")

    def _finish(self, blocks: list[Block]) -> list[str]:
        if blocks:
            self._segmented, self._rendered = 0, (0, "")
        self._markdown_left -= sum(len(block.head) + len(block.text) + _BLOCK_WEIGHT for block in blocks)
        finished = [self._render(block) for block in blocks]
        self.cited += [number for number in cited_numbers(finished) if number not in self.cited]
        return finished

    def _render(self, block: Block) -> str:
        html = render(block.head + block.text, self.citations, block.number)
        return _block(html, is_continued=block.is_continued)


def _cut(text: str) -> tuple[str, str]:
    """Split off the first segment, if possible at a line end."""
    end = text.rfind("\n", 0, MAX_SEGMENT_CHARS) + 1 or MAX_SEGMENT_CHARS
    return text[:end], text[end:]


def _block(html: str, *, is_continued: bool = False) -> str:
    continued = " answer__block--continued" if is_continued else ""
    return f'<div class="answer__block{continued}" dir="auto">{html.strip()}</div>'
