"""What the suite runs on, chosen by CATO_TEST_TOPOLOGY before Django reads its settings.

`embedded` (the default): SQLite, and what `serve` starts. `services`: PostgreSQL, a Redis server and a Chroma server,
with two web processes and two workers. Tests do not know which; only this module and tests/server.py do.
"""

from __future__ import annotations

import os
import socket
import tempfile
from pathlib import Path

TOPOLOGY = os.environ.get("CATO_TEST_TOPOLOGY", "embedded")
WORKER = os.environ.get("PYTEST_XDIST_WORKER", "gw0")
POSTGRES = os.environ.get("CATO_TEST_POSTGRES", "postgresql://postgres@127.0.0.1:5432/postgres")
REDIS = os.environ.get("CATO_TEST_REDIS", "redis://127.0.0.1:6379")


def free_port() -> int:
    """A port on loopback that nobody listens on."""
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return int(sock.getsockname()[1])


def is_open(port: int) -> bool:
    """Whether somebody listens on this port on loopback."""
    with socket.socket() as sock:
        return sock.connect_ex(("127.0.0.1", port)) == 0


def clean_environment() -> dict[str, str]:
    """This environment without anything that configures Cato, so that the machine's own settings do not leak in."""
    configures = ("CATO_", "OPENAI_")
    exact = {"DATABASE_URL", "REDIS_URL", "CHROMA_URL", "SECRET_KEY"}
    keep = {"CATO_TEST_TOPOLOGY", "CATO_TEST_POSTGRES", "CATO_TEST_REDIS"}
    return {
        name: value
        for name, value in os.environ.items()
        if name in keep or not (name.startswith(configures) or name in exact)
    }


HOME = Path(tempfile.mkdtemp(prefix=f"cato-tests-{WORKER}-"))
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
}
if TOPOLOGY == "services":
    os.environ["DATABASE_URL"] = POSTGRES
