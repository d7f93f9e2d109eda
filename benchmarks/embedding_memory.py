"""Memory of a process after embedding hostile messages: `python -m benchmarks.embedding_memory`.

Embeds conversations with answers of up to 8 MB as the worker does, in one process, and prints its resident memory after
each step. Nothing is stored.
"""

from __future__ import annotations

import gc
import os
import random
import resource
from collections.abc import Iterator

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "cato_web.settings")

SIZES = [(100_000, 30), (1_000_000, 9), (8_000_000, 3)]


def resident_mb() -> float:
    """Return the resident memory of this process."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * resource.getpagesize() / 1e6


def answers(size: int, count: int) -> Iterator[str]:
    """Return answers of about `size` characters: words, one word, and punctuation."""
    chosen = random.Random(size)
    words = [f"word{number}" for number in range(5000)]
    kinds = (lambda: " ".join(chosen.choices(words, k=size // 8)), lambda: "x" * size, lambda: "{}[]<>" * (size // 6))
    for number in range(count):
        yield kinds[number % 3]()


def main() -> None:
    import django

    django.setup()

    from memory import embeddings
    from memory.index.parts import embedding_texts
    from memory.models import Exchange

    print(f"start                       {resident_mb():6.0f} MB")
    embedder = embeddings.get_embedder()
    embedder.embed_documents(["A short text."] * 16)
    print(f"model loaded                {resident_mb():6.0f} MB")
    embedder.embed_documents(["A text of ordinary length. " * 40] * 64)
    print(f"64 texts of a page          {resident_mb():6.0f} MB")
    for size, count in SIZES:
        for answer in answers(size, count):
            exchange = Exchange(user_message="Tell me all of it.", assistant_message=answer)
            exchange.previous = None
            embedder.embed_documents(embedding_texts(exchange))
        del answer, exchange
        gc.collect()
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000
        print(f"{count:4} answers of {size:9,} chars {resident_mb():6.0f} MB, highest {peak:.0f} MB", flush=True)


if __name__ == "__main__":
    main()
