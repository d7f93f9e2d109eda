"""The effect of merging and extending passages: how much of an answer a prompt contains, at equal budget.

    python -m benchmarks.passages

Sixty questions about the three handbooks in `handbook/`, each with the sentences that answer it, on a real database and
a real Chroma server with local embeddings. All variants use the same ungated ranking: the best chunks one by one, or
merged with adjacent chunks among the results, as many as the budget allows; or as in a chat, at most `context_results`
passages, merged and extended within the budget. The budget includes the frame of each passage.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.figures import table
from benchmarks.handbook.questions import QUESTIONS, Question
from benchmarks.temporary_store import temporary_store

if TYPE_CHECKING:
    from memory.retrieval.types import Hit

HANDBOOK = Path(__file__).parent / "handbook"
BUDGETS = (300, 600, 1000, 2000, 3000)
RANKED = 40
_SENTENCE_END = re.compile(r"(?<=[.!?:|])\s+")


def main() -> None:
    with temporary_store() as person:
        from memory.retrieval.search import rank
        from memory.spaces import access
        from tests import factories

        for path in sorted(HANDBOOK.glob("*.md")):
            factories.document(person, path.name, path.read_bytes())
        readable = access.readable_space_ids(person.pk)
        ranked = [(q, rank(q.asks, spaces=readable, limit=RANKED).results) for q in QUESTIONS]
        variants = {
            "best pieces, one by one": one_by_one,
            "neighbours merged": merge_neighbours,
            "as a chat gets them": as_in_chat,
        }
        rows = []
        for budget in BUDGETS:
            for name, variant in variants.items():
                prompts = [(question, variant(results, budget)) for question, results in ranked]
                rows.append((budget, name, *coverage(prompts)))
    table(("tokens", "passages", "of the answers' text", "whole answers", "tokens used"), rows)


def one_by_one(results: Sequence[Hit], budget: int) -> str:
    """Make each chunk a passage."""
    return _fill_budget(results, budget, lambda accepted: [[result] for result in accepted])


def merge_neighbours(results: Sequence[Hit], budget: int) -> str:
    """Merge adjacent chunks, without adding others."""
    from memory.retrieval.passages import group_adjacent

    return _fill_budget(results, budget, group_adjacent)


def as_in_chat(results: Sequence[Hit], budget: int) -> str:
    """Use the product's own budget and prompt context."""
    from django.conf import settings

    from memory.retrieval.prompt_context import HEADING, TokenBudget, build_prompt_context

    token_budget = TokenBudget(limit=settings.CATO.vector_store.context_results, max_tokens=budget)
    accepted = [result for result in results if not token_budget.is_full and token_budget.accept(result)]
    return build_prompt_context(accepted, max_tokens=budget).removeprefix(HEADING).lstrip()


def coverage(prompts: Sequence[tuple[Question, str]]) -> list[str]:
    """Return the shares of answer characters and of complete answers in the prompts, and the mean tokens."""
    from memory.retrieval.prompt_context import estimate_tokens

    shares = []
    for question, prompt in prompts:
        text = _plain(prompt)
        sentences = [s for excerpt in question.evidence for s in _SENTENCE_END.split(_plain(excerpt))]
        shares.append(sum(len(s) for s in sentences if s in text) / sum(map(len, sentences)))
    tokens = sum(estimate_tokens(prompt) for _, prompt in prompts) / len(prompts)
    complete = sum(share == 1 for share in shares) / len(shares)
    return [f"{sum(shares) / len(shares):.3f}", f"{complete:.3f}", f"{tokens:.0f}"]


def _fill_budget(results: Sequence[Hit], budget: int, group: Callable[[Sequence[Hit]], list[list[Hit]]]) -> str:
    """Return as many of the best results as fit into the budget after grouping."""
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
