"""Shared fixtures: people and servers. Ada administers; Alice and Bob are members."""

from __future__ import annotations

import itertools
import os
import shutil
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests import server, templates, topology, webhook_receiver
from tests.fake_endpoint import FakeEndpoint
from tests.fake_endpoint import start as start_endpoint


@pytest.fixture(scope="session", autouse=True)
def home() -> Iterator[Path]:
    """Return the folder of this test process; it is removed at the end."""
    yield topology.HOME
    shutil.rmtree(topology.HOME, ignore_errors=True)


@pytest.fixture(scope="session")
def django_db_keepdb() -> bool:
    """Keep the copied database: Django migrates it, and the folder's owner removes it."""
    return topology.TOPOLOGY == "embedded"


@pytest.fixture(scope="session")
def django_db_modify_db_settings(django_db_modify_db_settings: None) -> None:
    """Start from a copy of the migrated database."""
    from django.conf import settings

    template, test = templates.template_database(), settings.DATABASES["default"].setdefault("TEST", {})
    if topology.TOPOLOGY == "services":
        test["TEMPLATE"] = template
    else:
        shutil.copyfile(template, test["NAME"])


@pytest.fixture(scope="session")
def chroma(home: Path) -> Iterator[None]:
    """Start a real Chroma server for tests that call memory in this process."""
    process = server.start_chroma(home, "chroma", home / "chroma", topology.CHROMA_PORT)
    server.wait_for(server.is_chroma_available, f"Chroma\n{process.log.read_text()}")
    yield
    process.end()


@pytest.fixture(scope="session")
def embed_once() -> dict[str, Callable[..., Any]]:
    """Return methods of `LocalEmbedder` with a cache, since many tests embed the same texts and the model is slow."""
    from memory.embeddings.local import LocalEmbedder

    return {name: _once(getattr(LocalEmbedder, name)) for name in ("embed_documents", "embed_queries")}


def _once(embed: Callable[..., Any]) -> Callable[..., Any]:
    import numpy as np

    vectors: dict[tuple[str, str], Any] = {}

    def cached(embedder: Any, texts: Sequence[str]) -> Any:
        missing = [text for text in dict.fromkeys(texts) if (embedder.model, text) not in vectors]
        if missing:
            keys = [(embedder.model, text) for text in missing]
            vectors.update(zip(keys, embed(embedder, missing), strict=True))
        return np.stack([vectors[embedder.model, text] for text in texts]) if texts else embed(embedder, texts)

    return cached


@pytest.fixture
def memory(chroma: None, db: None, embed_once: dict[str, Callable[..., Any]], monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return memory's API on a real database, a real Chroma server and real embeddings."""
    from memory import api
    from memory.embeddings import cache
    from memory.embeddings.local import LocalEmbedder

    for name, method in embed_once.items():
        monkeypatch.setattr(LocalEmbedder, name, method)
    cache.clear_query_cache()
    return api


@pytest.fixture
def dedicated_collections(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give each space a collection of its own, as if it was large."""
    from memory.index import placement

    monkeypatch.setattr(placement, "MAX_SHARED_SPACE", -1)


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[tuple[float, bool]]:
    """Return the pauses between steps of writing: seconds, and whether a transaction is open. Each step takes .03 s."""
    from django.db import connection

    from memory.utils import write_pauses

    made: list[tuple[float, bool]] = []
    clock = itertools.count()

    class Time:
        @staticmethod
        def monotonic() -> float:
            return next(clock) * 0.03

        @staticmethod
        def sleep(seconds: float) -> None:
            made.append((round(seconds, 3), connection.in_atomic_block))

    monkeypatch.setattr(write_pauses, "time", Time)
    return made


@pytest.fixture(scope="session")
def endpoint() -> Iterator[FakeEndpoint]:
    """Start the fake model endpoint, a real HTTP server; the only part that is not run on this machine in production."""
    with start_endpoint() as running:
        yield running


@pytest.fixture(scope="session")
def cato_receiver() -> Iterator[webhook_receiver.Receiver]:
    """Start the server to which the webhooks of `cato` may be sent."""
    with webhook_receiver.running() as running:
        yield running


@pytest.fixture(scope="session")
def cato(home: Path, endpoint: FakeEndpoint, cato_receiver: webhook_receiver.Receiver) -> Iterator[server.Cato]:
    """Start a complete Cato whose model endpoint has the key `cato`."""
    with server.running(
        home / "cato",
        OPENAI_BASE_URL=endpoint.openai_url,
        OPENAI_API_KEY="cato",
        # The first recall loads the model, which on a busy machine takes longer than the default timeout.
        CATO_VECTOR_STORE_RETRIEVAL_TIMEOUT="20",
        CATO_CHAT_MESSAGES_PER_MINUTE="100000",
        CATO_API_REQUESTS_PER_MINUTE="100000",
        # The first one is that of the documented commands.
        CATO_API_WEBHOOK_ORIGINS=f"https://hooks.example.org,{cato_receiver.origin}",
        CATO_TOOLS_INTERNAL_HOSTS=cato_receiver.host,
    ) as running:
        yield running


@pytest.fixture(scope="session")
def administrator(cato: server.Cato) -> server.Client:
    return cato.set_up("Ada Admin")


@pytest.fixture
def alice(cato: server.Cato, administrator: server.Client) -> server.Client:
    return cato.join(administrator, "Alice Owner")


@pytest.fixture
def bob(cato: server.Cato, administrator: server.Client) -> server.Client:
    return cato.join(administrator, "Bob Team")


@pytest.fixture(scope="session")
def provider(home: Path) -> Iterator[str]:
    """Return the issuer of a real OpenID Connect provider; PUT /users/<subject> creates a user."""
    port = topology.free_port()
    command = [sys.executable, "-m", "oidc_provider_mock", "--port", str(port)]
    process = server.start(home, "provider", command, topology.clean_environment())
    issuer = f"http://127.0.0.1:{port}"
    server.wait_for(lambda: httpx.get(issuer).is_success, f"the provider\n{process.log.read_text()}")
    yield issuer
    process.end()


@pytest.fixture(scope="session")
def openid_cato(home: Path, provider: str) -> Iterator[server.Cato]:
    """Start a complete Cato with the OpenID Connect provider."""
    with server.running(
        home / "openid",
        CATO_OPENID_ISSUER=provider,
        CATO_OPENID_CLIENT_ID="cato",
        CATO_OPENID_CLIENT_SECRET="hush",
        CATO_OPENID_NAME="Halden",
    ) as running:
        yield running


@pytest.fixture
def person(db: None) -> Any:
    from tests.factories import PersonFactory

    return PersonFactory()


@pytest.fixture
def notified_people(
    monkeypatch: pytest.MonkeyPatch, django_capture_on_commit_callbacks: Callable[..., Any]
) -> Callable[[Callable[[], object]], set[Any]]:
    """Return a function that acts, commits, and returns the people whose thread lists are notified."""

    def run(act: Callable[[], object]) -> set[Any]:
        from chat.realtime import notifications

        people: list[Any] = []
        with monkeypatch.context() as patch, django_capture_on_commit_callbacks(execute=True):
            patch.setattr(notifications, "notify_users", lambda ids, change=None: people.extend(ids))
            act()
        return set(people)

    return run


# Longest first: one process runs a whole module, and the last process should not wait for a long one.
LONGEST = (
    "erasure", "probes", "route_access", "tool_servers", "extraction", "shared_collections", "serve", "backup_commands",
    "command_line", "retrieval", "language", "permissions", "search_page", "maintenance", "degraded", "chunking", "markup",
    "mcp", "openai_api", "properties_http", "older_backup", "last_administrator", "evaluation", "backup", "documents",
    "account_deletion", "failing_calls", "bulk_forgetting", "conversation", "statements", "health", "team_history",
    "endpoint_faults",
)  # fmt: skip


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    rank = {f"test_{name}": index for index, name in enumerate(LONGEST)}
    items.sort(key=lambda item: rank.get(item.path.stem, len(rank)) if item.path.parent.name == "tests" else 0)


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    return topology.is_left_out(collection_path) or None


def pytest_configure(config: pytest.Config) -> None:
    # Tests must not run into rate limits.
    os.environ.setdefault("CATO_CHAT_MESSAGES_PER_MINUTE", "100000")
    os.environ.setdefault("CATO_API_REQUESTS_PER_MINUTE", "100000")


def pytest_unconfigure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput"):
        templates.drop_template()
