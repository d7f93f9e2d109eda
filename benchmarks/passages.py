"""What merging neighbours and widening passages bring: how much of an answer a prompt holds, at an equal budget.

    python -m benchmarks.passages

Sixty questions about the three handbooks in `handbook/`, each with the sentences that answer it, on a real database and a
real Chroma server with the local embeddings. All ways take from the same ranking, ungated: its best pieces one by one, or
with neighbours among them as one passage, as many as the budget holds; or what a chat gets, which is at most
`context_results` passages, merged, and widened as far as there is room. The budget is for the passages with what frames
each of them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.figures import table
from benchmarks.handbook.questions import QUESTIONS, Question
from benchmarks.temporary_store import own_store

if TYPE_CHECKING:
    from memory.retrieval.types import Hit

HANDBOOK = Path(__file__).parent / "handbook"
BUDGETS = (300, 600, 1000, 2000, 3000)
RANKED = 40
_SENTENCE_END = re.compile(r"(?<=[.!?:|])\s+")


def main() -> None:
    with own_store() as person:
        from memory.retrieval.search import rank
        from memory.spaces import access
        from tests import factories

        for path in sorted(HANDBOOK.glob("*.md")):
            factories.document(person, path.name, path.read_bytes())
        readable = access.readable_space_ids(person.pk)
        ranked = [(q, rank(q.asks, spaces=readable, wanted=RANKED).results) for q in QUESTIONS]
        ways = {"best pieces, one by one": one_by_one, "neighbours merged": merged, "as a chat gets them": as_in_chat}
        rows = []
        for budget in BUDGETS:
            for name, way in ways.items():
                prompts = [(question, way(results, budget)) for question, results in ranked]
                rows.append((budget, name, *held(prompts)))
    table(("tokens", "passages", "of the answers' text", "whole answers", "tokens used"), rows)


def one_by_one(results: Sequence[Hit], budget: int) -> str:
    """Every piece a passage of its own."""
    return _filled(results, budget, lambda taken: [[result] for result in taken])


def merged(results: Sequence[Hit], budget: int) -> str:
    """Pieces that lie side by side are one passage; none brings what was not found."""
    from memory.retrieval.passages import group_adjacent

    return _filled(results, budget, group_adjacent)


def as_in_chat(results: Sequence[Hit], budget: int) -> str:
    """Through the product's own budget and prompt material."""
    from django.conf import settings

    from memory.retrieval.prompt_context import HEADING, TokenBudget, build_prompt_context

    room = TokenBudget(limit=settings.CATO.vector_store.context_results, max_tokens=budget)
    taken = [result for result in results if not room.is_spent and room.takes(result)]
    return build_prompt_context(taken, max_tokens=budget).removeprefix(HEADING).lstrip()


def held(prompts: Sequence[tuple[Question, str]]) -> list[str]:
    """Of the sentences that answer, the share of characters that the prompts hold; the share of whole answers; and how
    many tokens a prompt took on average."""
    from memory.retrieval.prompt_context import estimate_tokens

    shares = []
    for question, prompt in prompts:
        text = _plain(prompt)
        sentences = [s for excerpt in question.evidence for s in _SENTENCE_END.split(_plain(excerpt))]
        shares.append(sum(len(s) for s in sentences if s in text) / sum(map(len, sentences)))
    tokens = sum(estimate_tokens(prompt) for _, prompt in prompts) / len(prompts)
    whole = sum(share == 1 for share in shares) / len(shares)
    return [f"{sum(shares) / len(shares):.3f}", f"{whole:.3f}", f"{tokens:.0f}"]


def _filled(results: Sequence[Hit], budget: int, group: Callable[[Sequence[Hit]], list[list[Hit]]]) -> str:
    """As many of the results, from the best, as the budget holds once they are grouped."""
    from memory.retrieval.passages import build_passages
    from memory.retrieval.prompt_context import estimate_tokens, format_passage

    text = ""
    for count in range(1, len(results) + 1):
        groups = group(results[:count])
        longer = "\n\n".join(format_passage(build_passages(each)[0]) for each in groups)
        if text and estimate_tokens(longer) > budget:
            break
        text = longer
    return text


def _plain(text: str) -> str:
    return " ".join(text.split())


if __name__ == "__main__":
    main()
