"""Print the accuracy of the probes on held-out sentences; with --write, refit those of the shipped model.

    python -m benchmarks.probes [--write]

The first table has, for each trait, the share of held-out sentences that are recognised rightly at .5, with and without
the trait, in all languages and in those without a sentence for fitting. The others have the same for the traits whose
level is not .5, at several levels.
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path

import django
import numpy as np

from benchmarks.figures import table

HELD_OUT = Path(__file__).parent.parent / "tests" / "traits"
NEW_LANGUAGES = ("nl", "pl", "ja")
LEVELS = {
    "wants_memory": (0.36, 0.4, 0.44, 0.48, 0.52),
    "former_state": (0.3, 0.35, 0.4, 0.45),
    "broad": (0.25, 0.3, 0.35),
    "standing_instruction": (0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="replace the probes in the package")
    options = parser.parse_args()
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "cato_web.settings")
    django.setup()

    from memory.embeddings.local import LocalEmbedder
    from memory.retrieval import probes
    from memory.retrieval.tuning.probe_fitting import fit_probes, load_examples

    embedder = LocalEmbedder(probes.SHIPPED_MODEL)
    fitted = fit_probes(embedder)
    if options.write:
        np.savez(probes.SHIPPED, **fitted)
    rows, level_tables = [], {}
    for trait in probes.TRAITS:
        examples = load_examples(trait, HELD_OUT)
        found = np.array([probes.probability(fitted[trait], v) for v in embedder.embed_queries(examples.texts)])
        has_trait, is_new = np.array(examples.labels) == 1, np.isin(examples.languages, NEW_LANGUAGES)
        rows.append((trait, *shares(found, has_trait, 0.5), *shares(found[is_new], has_trait[is_new], 0.5)))
        if trait in LEVELS:
            level_tables[trait] = [
                (level, *shares(found, has_trait, level), *shares(found[is_new], has_trait[is_new], level))
                for level in LEVELS[trait]
            ]
    table(("trait", "with", "without", "new languages: with", "without"), rows)
    for trait, level_rows in level_tables.items():
        table((f"{trait} at", "with", "without", "new languages: with", "without"), level_rows)


def shares(found: np.ndarray, has_trait: np.ndarray, level: float) -> tuple[str, str]:
    return f"{(found[has_trait] >= level).mean():.2f}", f"{(found[~has_trait] < level).mean():.2f}"


if __name__ == "__main__":
    main()
