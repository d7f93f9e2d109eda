"""Parse what people type into the search box: operators, phrases and excluded words."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

OPERATORS = ("from", "in", "since", "before", "type", "thread")
# What is read as a word if a space follows: without a minus, it is one.
_WITHOUT_VALUE = {f"{operator}:" for operator in OPERATORS}

_QUOTES = str.maketrans("“”„«»", '"""""')
_TOKEN = re.compile(
    rf'(?P<minus>-(?=["\w]))?(?:(?P<operator>{"|".join(OPERATORS)}):)?(?:"(?P<quoted>[^"]+)"|(?P<word>\S+))',
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class SearchQuery:
    """A parsed query.

    `text` is what to search for, `typed` the query without its operators. `operators` are the values by name. Hits
    contain all `phrases`, and nothing that is `excluded`. `negated_operators` follow a minus, which has no meaning.
    """

    text: str
    typed: str
    operators: dict[str, str] = field(default_factory=dict)
    phrases: tuple[str, ...] = ()
    excluded: tuple[str, ...] = ()
    negated_operators: tuple[str, ...] = ()


def parse_query(typed: str) -> SearchQuery:
    """Parse `from:jürgen "wet lid" -antenna why`; an unknown operator and a number after a minus are text.

    Of an operator that is typed twice, the last counts. A value with spaces is quoted: `from:"Ines Dvorak"`.
    """
    text, kept = [], []
    operators: dict[str, str] = {}
    phrases, excluded, negated = [], [], []
    for match in _TOKEN.finditer(typed.translate(_QUOTES)):
        value = (match["quoted"] or match["word"]).strip()
        operator = (match["operator"] or "").lower()
        if match["minus"] and (match["word"] or "").lower() in _WITHOUT_VALUE:
            operator = value[:-1].lower()
        if operator:
            if match["minus"]:
                negated.append(operator)
            else:
                operators[operator] = value
            continue
        if not value:
            continue
        kept.append(match[0])
        if match["minus"] and not value[:1].isdigit():
            excluded.append(value)
        elif match["quoted"]:
            phrases.append(value)
            text.append(value)
        else:
            text.append(match[0])
    return SearchQuery(" ".join(text), " ".join(kept), operators, tuple(phrases), tuple(excluded), tuple(negated))
