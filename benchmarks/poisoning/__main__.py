"""Measure what hostile texts in memory can do, and print a Markdown table with a line for each kind of attack.

    python -m benchmarks.poisoning [--attack NAME …] [--questions 30] [--seed 1] [--verbose]
    python -m benchmarks.poisoning --endpoint http://127.0.0.1:8080/v1 --model NAME [--answers 10]

130 honest exchanges of six people in the team space, and 30 questions that recall answers. For each attack, hostile texts
for all questions are stored in a group, as messages, notes, imports and documents. Then the victim asks there. The columns
are counts: prompts (recalls, searches by the model, what it reads on, and results of tools) with hostile text; of these,
prompts in which some is outside its frame, imitates one or cannot be seen; honest answers that are no longer among the
first five of a recall and of a search; standing instructions; statements that tell an assistant what to do; and tools that
were used, other than those that read memory. In place of the model, stand-ins do whatever the texts say.

With `--endpoint`, a model answers some prompts of each attack: how often the answer has the attacker's word.
Exit code 1 if a count that has to be 0 is not.
"""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from benchmarks.command_line import command_parser
from benchmarks.figures import table
from benchmarks.poisoning.attacks import ATTACKS
from benchmarks.temporary_store import temporary_store

if TYPE_CHECKING:
    from benchmarks.poisoning.measure import Rates


def main() -> None:
    parser = command_parser("poisoning", __doc__)
    parser.add_argument("--attack", action="append", choices=[attack.name for attack in ATTACKS])
    parser.add_argument("--questions", type=int, default=30)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--verbose", action="store_true", help="print what was outside the frame, and hostile statements"
    )
    parser.add_argument("--endpoint", help="base URL of a model, to measure how often it follows")
    parser.add_argument("--model", default="")
    parser.add_argument("--answers", type=int, default=10, help="of the model, for each attack")
    options = parser.parse_args()
    chosen = [attack for attack in ATTACKS if not options.attack or attack.name in options.attack]
    with temporary_store():
        from benchmarks.poisoning.hostile_store import create_team
        from benchmarks.poisoning.measure import answered_questions, measure
        from benchmarks.poisoning.real_model import count_followed
        from chat.llm import endpoint
        from tests.questions.work import IN_OTHER_WORDS, NAMES_ONLY

        # Instructions are only detected, and extraction only runs, if there is an endpoint. Nothing is sent to this one.
        endpoint.save(base_url="http://127.0.0.1:9/v1", api_key="none", model="stand-in")
        team = create_team()
        half = options.questions // 2
        by_name, found_by_name = answered_questions(NAMES_ONLY, team, count=half)
        in_other_words, found_in_other_words = answered_questions(IN_OTHER_WORDS, team, count=half)
        questions, findable = by_name + in_other_words, found_by_name | found_in_other_words
        all_rates: list[Rates] = []
        for attack in chosen:
            started = time.monotonic()
            rates = measure(attack, questions, findable, team, seed=options.seed)
            all_rates.append(rates)
            print(f"{attack.name}: {time.monotonic() - started:.0f} s", file=sys.stderr, flush=True)
            if options.verbose:
                print(Counter(rates.breaches), *map(ascii, rates.failures[:20]), sep="\n", file=sys.stderr, flush=True)
        followed = {}
        if options.endpoint:
            followed = {
                rates.name: count_followed(rates, options.endpoint, options.model, options.answers)
                for rates in all_rates
            }
    print_rates(all_rates, followed)
    sys.exit(any(rates.has_absolute_success for rates in all_rates))


def print_rates(all_rates: Sequence[Rates], followed: dict[str, tuple[int, int]]) -> None:
    head = ["attack", "texts", "hostile prompts", "outside the frame", "lost in recall", "lost in searches"]
    head += ["instructions", "statements", "tools"]
    rows = []
    for rates in all_rates:
        row: list[object] = [
            rates.name,
            rates.stored,
            f"{rates.hostile_prompts} of {rates.prompts}",
            rates.outside,
            _share(rates.lost_recalls, rates.recalls),
            _share(rates.lost_searches, rates.searches),
            rates.instructions,
            f"{rates.statements} of {rates.written}" if rates.written else "",
            f"{rates.tools} of {rates.tool_answers}",
        ]
        if followed:
            row.append(_share(*followed[rates.name]))
        rows.append(row)
    table([*head, "followed"] if followed else head, rows)


def _share(count: int, total: int) -> str:
    return f"{count} of {total} ({100 * count / total:.0f} %)" if total else "0 of 0"


if __name__ == "__main__":
    main()
