"""Infrastructure of the suite, chosen by CATO_TEST_TOPOLOGY before Django reads its settings.

`embedded` (the default): SQLite, and what `serve` starts. `services`: PostgreSQL, Redis and Chroma servers with two web
processes and two workers. Only this module and tests/server.py know the difference.
"""

from __future__ import annotations

import atexit
import os
import secrets
import shutil
import socket
import tempfile
from contextlib import suppress
from pathlib import Path

import pytest

TOPOLOGY = os.environ.get("CATO_TEST_TOPOLOGY", "embedded")
WORKER = os.environ.get("PYTEST_XDIST_WORKER", "gw0")
POSTGRES = os.environ.get("CATO_TEST_POSTGRES", "postgresql://postgres@127.0.0.1:5432/postgres")
IS_LONG = os.environ.get("CATO_TEST_LONG") == "1"  # run all examples of the tests of which `make test` runs a part
only_long = pytest.mark.skipif(not IS_LONG, reason="`make test-long` runs it")
REDIS = os.environ.get("CATO_TEST_REDIS", "redis://127.0.0.1:6379")


def is_left_out(file: Path) -> bool:
    """Return whether the services topology leaves this module out."""
    if TOPOLOGY == "embedded" or not file.name.startswith("test_"):
        return False
    name = file.stem.removeprefix("test_")
    return (f"e2e/{name}" if file.parent.name == "e2e" else name) not in TOPOLOGY_DEPENDENT


def free_port() -> int:
    """Return a free port on loopback, below those that systems give to clients: one could take it before the server does."""
    while True:
        port = 20_000 + secrets.randbelow(12_000)
        with socket.socket() as sock, suppress(OSError):
            sock.bind(("127.0.0.1", port))
            return port


def is_open(port: int) -> bool:
    """Return whether something listens on this port on loopback."""
    with socket.socket() as sock:
        return sock.connect_ex(("127.0.0.1", port)) == 0


def clean_environment() -> dict[str, str]:
    """Return this environment without the machine's own configuration of Cato."""
    configures = ("CATO_", "OPENAI_")
    exact = {"DATABASE_URL", "REDIS_URL", "CHROMA_URL", "SECRET_KEY"}
    keep = {"CATO_TEST_TOPOLOGY", "CATO_TEST_LONG", "CATO_TEST_POSTGRES", "CATO_TEST_REDIS"}
    return {
        name: value
        for name, value in os.environ.items()
        if name in keep or not (name.startswith(configures) or name in exact)
    }


# The modules that run with the services, too: they are about statements of SQL, locks and transactions, messages between
# processes, or what several processes do at the same time. Others use the same statements, or behave the same on both.
TOPOLOGY_DEPENDENT = {
    "access", "account_deletion", "api_answers", "backup", "bulk_forgetting", "cache_connections",
    "concurrent_answers", "conversation", "database_activity", "digests", "embedding_policy", "erasure", "events", "failing_calls",
    "filters", "forget_everywhere", "forgetting", "health", "idempotency", "import_jobs", "indexing",
    "knowledge_worker", "last_administrator", "leases", "lexical_search", "lock_order", "lost_access",
    "maintenance", "many_spaces", "memory_searches", "migrations", "paging", "permissions", "presence", "queue",
    "quick_search", "recall", "scale_out",
    "search_page", "spaces", "statements", "stats", "thread_list", "threads", "usage", "usage_limits", "uses",
    "what_happened",
    "e2e/projects", "e2e/streaming", "e2e/team_threads", "e2e/without_index",
}  # fmt: skip

HOME = Path(tempfile.mkdtemp(prefix=f"cato-tests-{WORKER}-"))
# Shared by all processes of a run: xdist's workers inherit it.
SHARED = Path(os.environ.get("CATO_TEST_SHARED") or HOME / "shared")
if SHARED.parent == HOME:
    atexit.register(shutil.rmtree, HOME, ignore_errors=True)
CHROMA_PORT = free_port()

for name in set(os.environ) - set(clean_environment()):
    del os.environ[name]
os.environ |= {
    "CATO_DATA_DIR": str(HOME / "data"),
    "CATO_CONFIG_FILE": "",
    "CHROMA_URL": f"http://127.0.0.1:{CHROMA_PORT}",
    "CATO_VECTOR_STORE_COLLECTION_NAME": f"test_{WORKER}",
    "CATO_VECTOR_STORE_EMBEDDING_THREADS": "1",
    "CATO_CHAT_TITLES": "false",
    "CATO_TEST_SHARED": str(SHARED),
}
if TOPOLOGY == "services":
    os.environ["DATABASE_URL"] = POSTGRES
