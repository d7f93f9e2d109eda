"""Answers as HTML, block by block, so that what is finished never changes while the rest grows.

What an answer costs is bounded whatever it holds: Markdown is read in blocks of limited size, and in so many of them.
"""

from __future__ import annotations

from html import escape

from chat.rendering.block_splitting import Block, Splitter
from chat.rendering.citations import Citations
from chat.rendering.markdown import open_code, plain, render

# An open block is drawn as Markdown up to this size, and beyond it sent as plain text in segments of this size.
LONGEST_SEGMENT = 4_000  # characters
# So many characters of an answer are read as Markdown, each block counting some more; the rest of it is plain text.
_MOST_MARKDOWN, _BLOCK_WEIGHT = 120_000, 100


def render_blocks(text: str, citations: Citations | None = None) -> list[str]:
    """The whole of an answer as one HTML string per block; its numbers in brackets lead to `citations`."""
    answer = GrowingAnswer(citations=citations)
    return answer.feed(text) + answer.close()


class GrowingAnswer:
    """An answer while it is written: feed it text, take finished blocks and segments once, and look at the open rest.

    What comes out does not depend on the sizes in which the text comes in.
    """

    def __init__(self, text: str = "", citations: Citations | None = None) -> None:
        self.citations = citations
        self.has_finished = False
        self._splitter = Splitter()
        self._line = ""
        self._given = 0  # how much of the open block has been given away in segments
        self._drawn: tuple[int, str] = (0, "")
        self._markdown_left = _MOST_MARKDOWN
        self.feed(text)

    def feed(self, text: str) -> list[str]:
        """Add `text`; returns the HTML of the blocks that it finished."""
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
            while len(self._line) > LONGEST_SEGMENT:
                segment, self._line = _cut(self._line)
                finished.append(_block(plain(segment)))
        self.has_finished = self.has_finished or bool(finished)
        return finished

    def close(self) -> list[str]:
        """The HTML of what is still open, now that nothing more comes."""
        rest, self._line = self._line, ""
        if self._markdown_left <= 0:
            return [_block(plain(rest))] if rest.strip() else []
        ended = self._splitter.feed(rest) if rest.strip() else []
        return self._finish([*ended, *self._splitter.close()])

    def segments(self) -> list[str]:
        """The HTML of what the open block is longer than is drawn as Markdown: each segment once, until the block ends."""
        rest = (self._splitter.text + self._line)[self._given :]
        if self._markdown_left <= 0 or (not self._given and len(rest) <= LONGEST_SEGMENT):
            return []
        given = []
        while len(rest) > LONGEST_SEGMENT:
            segment, rest = _cut(rest)
            self._given += len(segment)
            given.append(plain(segment))
        return given

    @property
    def has_segments(self) -> bool:
        """Whether segments of the open block have been given away."""
        return bool(self._given)

    def open_html(self) -> str:
        """What is open and in no segment: whole lines as Markdown, drawn once each, the line being written as plain text.

        So nothing flickers between two meanings, and the cost of a look does not grow with the block. Code is not
        highlighted before its fence closes.
        """
        splitter, line = self._splitter, self._line
        if self._given:
            return _block(plain((splitter.text + line)[self._given :]))
        text = splitter.text
        if self._markdown_left <= 0 or not (text + line).strip():
            return _block(plain(line)) if line.strip() else ""
        if splitter.is_code:
            return _block(open_code(text + line))
        if self._drawn[0] != len(text):
            head = splitter.head if splitter.is_continued else ""
            block = Block(text, head, splitter.number, splitter.is_continued)
            self._drawn = (len(text), self._render(block) if text.strip() else "")
        return self._drawn[1] + (_block(f'<p class="answer__typing">{escape(line)}</p>') if line.strip() else "")

    def _finish(self, blocks: list[Block]) -> list[str]:
        if blocks:
            self._given, self._drawn = 0, (0, "")
        self._markdown_left -= sum(len(block.head) + len(block.text) + _BLOCK_WEIGHT for block in blocks)
        return [self._render(block) for block in blocks]

    def _render(self, block: Block) -> str:
        html = render(block.head + block.text, self.citations, block.number)
        return _block(html, is_continued=block.is_continued)


def _cut(text: str) -> tuple[str, str]:
    """The first segment of `text`, which ends with a line where it can, and the rest."""
    end = text.rfind("\n", 0, LONGEST_SEGMENT) + 1 or LONGEST_SEGMENT
    return text[:end], text[end:]


def _block(html: str, *, is_continued: bool = False) -> str:
    return f'<div class="answer__block{" answer__block--continued" if is_continued else ""}">{html.strip()}</div>'
