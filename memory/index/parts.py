"""What is embedded of an exchange: itself as it follows what was said before, and each of its messages.

A question is often near to one message only, or makes sense of an exchange by what came before it; the best vector
counts. Long messages are cut, since a model reads no further than a page.
"""

from __future__ import annotations

from memory.documents.chunking import Span, split
from memory.index.vectors import MOST_OF_ANSWER, MOST_OF_MESSAGE
from memory.models import Exchange
from memory.text import content_hash

# The local model reads 256 tokens, about so many characters.
_PIECE = 1000
_CONTEXT = 300
# Characters of a text that any model is given: endpoints read 16 kB at most, and a message may have megabytes, which would
# cost a tokenizer hundreds of them.
_READ = 16_384


def embedding_texts(exchange: Exchange) -> list[str]:
    """The texts whose vectors find this exchange, at most as many as there are PARTS.

    A note or a piece of a document embeds its own text. Of a conversation: the whole, preceded by the tail of what was
    said before, then its messages in pieces. `exchange.previous` should be loaded.
    """
    context = _context(exchange)
    before = f"{context}\n" if context else ""
    if not exchange.assistant_message:
        return [(before + exchange.user_message[:_READ])[:_READ]]
    whole = f"{before}User: {exchange.user_message[:_READ]}\nAssistant: {exchange.assistant_message[:_READ]}"
    message = _pieces(exchange.user_message, MOST_OF_MESSAGE)
    return [whole[:_READ], *message, *_pieces(exchange.assistant_message, MOST_OF_ANSWER)]


def embedding_hash(exchange: Exchange) -> str:
    """The hash of all that its vectors depend on."""
    return content_hash(exchange.user_message, exchange.assistant_message, _context(exchange))


def _context(exchange: Exchange) -> str:
    """The tail of what was said right before in the same session."""
    before = exchange.previous
    if exchange.session_id is None or before is None or before.forgotten_at or before.space_id != exchange.space_id:
        return ""
    text = f"{before.user_message}\n{before.assistant_message}".strip()
    return text if len(text) <= _CONTEXT else f"{text[: _CONTEXT // 2]} … {text[-_CONTEXT // 2 :]}"


def _pieces(text: str, most: int) -> list[str]:
    """The first pieces of the text, at most `most`; no more of it is looked at than they may need."""
    text = text[: (most + 1) * _PIECE]
    if len(text) <= _PIECE:
        return [text]
    spans: list[Span] = split(
        text,
        strategy="hybrid",
        chunk_size=_PIECE,
        chunk_overlap=0,
        max_chunk_size=_PIECE,
        preserve_sentence_boundaries=True,
    )
    return [text[span.start : span.end] for span in spans[:most]]
