"""Infrastructure of the suite, chosen by CATO_TEST_TOPOLOGY before Django reads its settings.

`embedded` (the default): SQLite, and what `serve` starts. `services`: PostgreSQL, Redis and Chroma servers with two web
processes and two workers. Only this module and tests/server.py know the difference.
"""

from __future__ import annotations

import atexit
import os
import shutil
import socket
import tempfile
from pathlib import Path

TOPOLOGY = os.environ.get("CATO_TEST_TOPOLOGY", "embedded")
WORKER = os.environ.get("PYTEST_XDIST_WORKER", "gw0")
POSTGRES = os.environ.get("CATO_TEST_POSTGRES", "postgresql://postgres@127.0.0.1:5432/postgres")
IS_LONG = os.environ.get("CATO_TEST_LONG") == "1"  # run all examples of the tests of which `make test` runs a part
REDIS = os.environ.get("CATO_TEST_REDIS", "redis://127.0.0.1:6379")


def is_left_out(file: Path) -> bool:
    """Return whether the services topology leaves this module out."""
    if TOPOLOGY == "embedded" or not file.name.startswith("test_"):
        return False
    name = file.stem.removeprefix("test_")
    return (f"e2e/{name}" if file.parent.name == "e2e" else name) not in TOPOLOGY_DEPENDENT


def free_port() -> int:
    """Return a port on loopback on which nothing listens."""
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return int(sock.getsockname()[1])


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


# The modules that run with the services, too: they are about statements of SQL, locks and transactions, the vector
# store, messages between processes, or what several processes do at the same time. All others behave the same on both.
TOPOLOGY_DEPENDENT = {
    "access", "account_deletion", "additions", "administration", "api_answers", "attached_documents", "backup",
    "branches", "bulk_forgetting", "cache_connections", "concurrent_answers", "conversation", "crash", "degraded",
    "digests", "diversity", "document_deletion", "documents", "erasure", "events", "export_jobs", "failing_calls",
    "feedback", "filters", "flush_loop", "forget_everywhere", "forgetting", "forgetting_scope", "forks",
    "group_mapping", "groups", "health", "idempotency", "identical_vectors", "import_jobs", "imports", "indexing",
    "knowledge", "knowledge_properties", "knowledge_worker", "last_administrator", "leases", "lexical_search",
    "lost_access", "maintenance", "memory_saving", "memory_searches", "mentions", "migrations", "news", "permissions",
    "presence", "projects", "properties", "properties_http", "queue", "quick_search", "recall", "recall_filter",
    "records", "retrieval", "reveals", "scale_out", "search_page", "second_factor", "shared_collections",
    "socket_limits", "spaces", "statements", "stats", "suggestions", "team_chat_imports", "thread_list",
    "thread_management", "threads", "tool_decisions", "usage", "usage_limits", "uses", "webhooks", "what_happened",
    "e2e/attachments", "e2e/corrections", "e2e/data_policy", "e2e/documents", "e2e/forget_everywhere",
    "e2e/knowledge_story", "e2e/memory_in_languages", "e2e/memory_searches", "e2e/projects", "e2e/recall",
    "e2e/sources", "e2e/streaming", "e2e/team_threads", "e2e/tool_servers", "e2e/usage", "e2e/web_search",
    "e2e/without_index",
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
