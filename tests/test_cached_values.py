"""Values in the cache are missing, and nothing fails, when its server or a value cannot be read."""

from __future__ import annotations

import logging
from typing import Any

import pytest
from django.core.cache import cache

from chat import cached_values
from tests.topology import free_port


class _Former:
    """A class of another version of Cato."""


def test_a_value_is_kept_for_callers_that_expect_its_class() -> None:
    cached_values.keep("a-key", "a text", 60)

    assert cached_values.kept("a-key", str) == "a text"
    assert cached_values.kept("a-key", bytes) is None
    assert cached_values.kept("another-key", str) is None


def test_a_server_that_is_away_keeps_nothing(settings: Any, caplog: pytest.LogCaptureFixture) -> None:
    server = {"BACKEND": "django.core.cache.backends.redis.RedisCache", "LOCATION": f"redis://127.0.0.1:{free_port()}"}
    settings.CACHES = {"default": server}

    with caplog.at_level(logging.WARNING):
        cached_values.keep("a-key", "a text", 60)
        assert cached_values.kept("a-key", str) is None

    assert len(caplog.records) == 2


def test_a_value_whose_class_is_gone_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    cache.set("a-key", _Former(), 60)
    monkeypatch.delattr(f"{__name__}._Former")

    assert cached_values.kept("a-key", object) is None
