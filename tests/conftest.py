"""The people and servers that the tests share. Alice owns, Bob is on her team, Charlie has nothing to do with it."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests import server, templates, topology
from tests.fake_endpoint import FakeEndpoint
from tests.fake_endpoint import start as start_endpoint


@pytest.fixture(scope="session", autouse=True)
def home() -> Iterator[Path]:
    """A folder of this test process, gone afterwards."""
    yield topology.HOME
    shutil.rmtree(topology.HOME, ignore_errors=True)


@pytest.fixture(scope="session")
def django_db_keepdb() -> bool:
    """Django migrates the copy of the template, which is there already, and leaves it to whoever removes the folder."""
    return topology.TOPOLOGY == "embedded"


@pytest.fixture(scope="session")
def django_db_modify_db_settings(django_db_modify_db_settings: None) -> None:
    """Begin with a copy of the migrated database."""
    from django.conf import settings

    template, test = templates.template_database(), settings.DATABASES["default"].setdefault("TEST", {})
    if topology.TOPOLOGY == "services":
        test["TEMPLATE"] = template
    else:
        shutil.copyfile(template, test["NAME"])


@pytest.fixture(scope="session")
def chroma(home: Path) -> Iterator[None]:
    """A real Chroma server for tests that call memory in this process."""
    process = server.start_chroma(home, "chroma", home / "chroma", topology.CHROMA_PORT)
    from memory.errors import VectorStoreUnavailableError
    from memory.index import store

    def answers() -> bool:
        try:
            store.ping_vector_store()
        except VectorStoreUnavailableError:
            return False
        return True

    server.wait_for(answers, f"Chroma\n{process.log.read_text()}")
    yield
    process.end()


@pytest.fixture(scope="session")
def embed_once() -> Callable[..., Any]:
    """`LocalEmbedder.embed_documents` with a memory: many tests remember the same texts, and the model is slow."""
    import numpy as np

    from memory.embeddings.local import LocalEmbedder

    model, known = LocalEmbedder.embed_documents, dict[tuple[str, str], Any]()

    def embed(embedder: LocalEmbedder, texts: Sequence[str]) -> Any:
        missing = [text for text in dict.fromkeys(texts) if (embedder.model, text) not in known]
        if missing:
            vectors = model(embedder, missing)
            known.update({(embedder.model, text): vector for text, vector in zip(missing, vectors, strict=True)})
        return np.stack([known[embedder.model, text] for text in texts]) if texts else model(embedder, texts)

    return embed


@pytest.fixture
def memory(chroma: None, db: None, embed_once: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> Any:
    """Memory's verbs on a real database, a real Chroma server and the model's own vectors."""
    from memory import api
    from memory.embeddings import cache
    from memory.embeddings.local import LocalEmbedder

    monkeypatch.setattr(LocalEmbedder, "embed_documents", embed_once)
    cache.clear_query_cache()
    return api


@pytest.fixture(scope="session")
def endpoint() -> Iterator[FakeEndpoint]:
    """The model endpoint, which lies outside this machine and so is a fake: a real HTTP server."""
    with start_endpoint() as running:
        yield running


@pytest.fixture(scope="session")
def cato(home: Path, endpoint: FakeEndpoint) -> Iterator[server.Cato]:
    """A whole Cato with a model endpoint, whose key is `cato`."""
    with server.running(
        home / "cato",
        OPENAI_BASE_URL=endpoint.openai_url,
        OPENAI_API_KEY="cato",
        # On a busy machine the first recall, which loads the model, takes longer than a person should wait.
        CATO_VECTOR_STORE_RETRIEVAL_TIMEOUT="20",
        CATO_CHAT_MESSAGES_PER_MINUTE="100000",
        CATO_API_REQUESTS_PER_MINUTE="100000",
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
    """The issuer of a real OpenID Connect provider, which believes whoever comes. People are made at /users/<subject>."""
    port = topology.free_port()
    command = [sys.executable, "-m", "oidc_provider_mock", "--port", str(port)]
    process = server.start(home, "provider", command, topology.clean_environment())
    issuer = f"http://127.0.0.1:{port}"
    server.wait_for(lambda: httpx.get(issuer).is_success, f"the provider\n{process.log.read_text()}")
    yield issuer
    process.end()


@pytest.fixture(scope="session")
def openid_cato(home: Path, provider: str) -> Iterator[server.Cato]:
    """A whole Cato that also lets in whom the provider knows."""
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


# Most seconds first: a module is run by one process, and the last one should not wait for a long one.
LONGEST = (
    *("properties_http", "maintenance", "erasure", "properties", "command_line", "documents", "administration"),
    *(
        "backup_commands",
        "health",
        "endpoint_faults",
        "retrieval",
        "openai_api",
        "serve",
        "crash",
        "degraded",
        "markup",
    ),
    *(
        "upgrade",
        "route_access",
        "lexical_search",
        "conversation",
        "settings",
        "lost_access",
        "diversity",
        "forgetting",
    ),
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    rank = {f"test_{name}": place for place, name in enumerate(LONGEST)}
    items.sort(key=lambda item: rank.get(item.path.stem, len(rank)) if item.path.parent.name == "tests" else 0)


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    return topology.is_left_out(collection_path) or None


def pytest_configure(config: pytest.Config) -> None:
    # Nobody waits for a real minute of messages, and nothing in the suite may call out.
    os.environ.setdefault("CATO_CHAT_MESSAGES_PER_MINUTE", "100000")
    os.environ.setdefault("CATO_API_REQUESTS_PER_MINUTE", "100000")


def pytest_unconfigure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput"):
        templates.drop_template()
