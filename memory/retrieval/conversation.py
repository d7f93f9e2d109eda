"""What a message asks in its conversation: by itself, and where it leans on what was said before, together with that.

A follow-up ("and when was that?") finds nothing by itself; a new question joined with its predecessors is dragged back
to them. So both are asked and their results taken in turn, the joined one only where the message leans on others.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from memory.lexical.analyser import query_terms

_QUESTION = re.compile(r"[?？؟]")
# How messages begin that take up what was just said.
_OPENING = re.compile(
    r"^\W*(?:and|but|or|so|also|what about|how about|tell me|remind me|explain|show me|which|who|whom|whose|when|where|why"
    r"|how|und|aber|oder|also|was ist mit|und was|wer|wann|wo|warum|wieso|welche[rsnm]?|wie|erzähl|sag|zeig"
    r"|et|mais|ou|qui|quand|où|pourquoi|comment|quel(?:le)?s?|dis-moi|rappelle|explique"
    r"|y|pero|o|quién|cuándo|dónde|por qué|cómo|cuál(?:es)?|dime|recuérdame|explica)\b",
    re.IGNORECASE,
)
# A message with more content words than this says by itself what it is about.
_MAX_WORDS = 7


def is_follow_up(message: str) -> bool:
    """Whether the message seems to ask on about what was said before; thanks and the like do not ask."""
    asks = bool(_QUESTION.search(message) or _OPENING.match(message))
    return asks and len(query_terms(message)) <= _MAX_WORDS


def join_messages(messages: Sequence[str]) -> str:
    """Return the messages as one query text."""
    return "\n".join(messages)
