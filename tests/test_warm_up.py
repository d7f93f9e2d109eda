"""Before the first message, a web process loads what it would wait for, and exempts that from garbage collection."""

from __future__ import annotations

import gc

import pytest
from asgiref.sync import async_to_sync

from cato_web import lifespan


@pytest.fixture(autouse=True)
def unfrozen():
    yield
    gc.unfreeze()


@pytest.mark.parametrize("answers", [(True,), (False, True), (False, False, False)])
def test_what_is_loaded_is_exempt_from_garbage_collection_even_without_the_vector_store(monkeypatch, answers):
    frozen, attempts = [], iter(answers)

    def warm_up() -> bool:
        frozen.append(gc.get_freeze_count())
        return next(attempts)

    monkeypatch.setattr(lifespan, "_warm_up", warm_up)
    monkeypatch.setattr(lifespan, "_WARM_UP_ATTEMPTS", 3)
    monkeypatch.setattr(lifespan, "_WARM_UP_INTERVAL", 0)

    async_to_sync(lifespan._warm_up_loop)()

    assert frozen == [0] * len(answers)
    assert gc.get_freeze_count() > 10_000
