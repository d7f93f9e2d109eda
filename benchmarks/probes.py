"""Print the accuracy of the probes on held-out sentences; with --write, refit those of the shipped model.

    python -m benchmarks.probes [--write]

The first table has, for each trait, the share of held-out sentences that are recognised rightly at .5, with and without
the trait, in all languages and in those without a sentence for fitting. Then the same follows for the traits whose level
is not .5, at several levels; `unseen` are the sentences that were not at hand while those for fitting were written. The
last table has, for each language, the share of unseen messages that are recognised as a standing instruction.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import django
import numpy as np
import yaml

from benchmarks.command_line import command_parser
from benchmarks.figures import table

HELD_OUT = Path(__file__).parent.parent / "tests" / "traits"
NEW_LANGUAGES = ("nl", "pl", "ja")
UNSEEN = HELD_OUT / "unseen"
LEVELS = {
    "wants_memory": (0.36, 0.4, 0.44, 0.48, 0.52),
    "informative": (0.02, 0.03, 0.04, 0.05),
    "former_state": (0.25, 0.3, 0.35, 0.4),
    "broad": (0.15, 0.2, 0.25, 0.3, 0.35),
    "what_happened": (0.1, 0.15, 0.2, 0.3, 0.4),
    "correction": (0.1, 0.15, 0.2, 0.25, 0.3),
    "standing_instruction": (0.18, 0.22, 0.25, 0.3, 0.36, 0.4, 0.5, 0.6),
}


def main() -> None:
    parser = command_parser("probes", __doc__)
    parser.add_argument("--write", action="store_true", help="replace the probes in the package")
    options = parser.parse_args()
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "cato_web.settings")
    django.setup()

    from memory.embeddings.local import LocalEmbedder
    from memory.retrieval import probes
    from memory.retrieval.tuning.probe_fitting import examples_hash, fit_probes, load_examples

    embedder = LocalEmbedder(probes.SHIPPED_MODEL)
    fitted = fit_probes(embedder)
    if options.write:
        probes.save_shipped(fitted, examples_hash())

    def read(trait: str, texts: Sequence[str]) -> np.ndarray:
        embed = embedder.embed_documents if trait in probes.DOCUMENT_TRAITS else embedder.embed_queries
        return fitted[trait].probability(embed(texts))

    rows, level_tables = [], {}
    for trait in probes.TRAITS:
        for folder in (HELD_OUT, UNSEEN):
            if not (folder / f"{trait}.yaml").exists():
                continue
            examples = load_examples(trait, folder)
            found = read(trait, examples.texts)
            has_trait, is_new = np.array(examples.labels) == 1, np.isin(examples.languages, NEW_LANGUAGES)
            name = trait if folder == HELD_OUT else f"{trait}, unseen"
            rows.append((name, *shares(found, has_trait, 0.5), *shares(found[is_new], has_trait[is_new], 0.5)))
            level_tables[name] = [
                (level, *shares(found, has_trait, level), *shares(found[is_new], has_trait[is_new], level))
                for level in LEVELS.get(trait, ())
            ]
    table(("trait", "with", "without", "new languages: with", "without"), rows)
    for name, level_rows in level_tables.items():
        if level_rows:
            table((f"{name} at", "with", "without", "new languages: with", "without"), level_rows)
    print_instructions(partial(read, probes.STANDING_INSTRUCTION))


def print_instructions(read: Callable[[Sequence[str]], np.ndarray]) -> None:
    """Print for each language the shares that are recognised as instructions, and suggested at least."""
    from memory.retrieval.instruction_detection import OF_MESSAGE

    content = yaml.safe_load((UNSEEN / "standing_instruction.yaml").read_text(encoding="utf-8"))
    content["ordinary"] = yaml.safe_load((UNSEEN / "ordinary.yaml").read_text(encoding="utf-8"))
    rows = []
    for language in content["ordinary"]:
        found = [read(content[side][language]) for side in ("positive", "ambiguous", "negative", "ordinary")]
        levels = (OF_MESSAGE.recognised, OF_MESSAGE.suggested)
        rows.append((language, *("/".join(f"{(side >= level).mean():.2f}" for level in levels) for side in found)))
    table(("recognised/suggested", "instructions", "ambiguous", "near misses", "ordinary"), rows)


def shares(found: np.ndarray, has_trait: np.ndarray, level: float) -> tuple[str, str]:
    return f"{(found[has_trait] >= level).mean():.2f}", f"{(found[~has_trait] < level).mean():.2f}"


if __name__ == "__main__":
    main()
