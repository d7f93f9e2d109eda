"""Servers for tests that restart them: PostgreSQL, Redis and the proxy."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from tests.server import ROOT, Process, start, wait_for
from tests.topology import clean_environment, free_port, is_open

NGINX = "/usr/sbin/nginx"


def redis(home: Path, port: int) -> Process:
    """Start a Redis without persistence."""
    command = ["redis-server", "--port", str(port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"]
    process = start(home, "redis", [*command, "--dir", str(home)], clean_environment())
    wait_for(lambda: is_open(port), "Redis")
    return process


@contextmanager
def postgres() -> Iterator[tuple[str, Callable[[str], None]]]:
    """Start a PostgreSQL; yield its URL and a function that takes "restart" and "stop"."""
    # PostgreSQL refuses to run as root, and its user needs access to the folder.
    run_as = ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups"] if os.getuid() == 0 else []
    folder, port = Path(tempfile.mkdtemp(prefix="cato-postgres-")), free_port()
    if run_as:
        shutil.chown(folder, "postgres", "postgres")
    programs = sorted(Path("/usr/lib/postgresql").glob("*/bin"))[-1]
    initdb = [*run_as, str(programs / "initdb"), "-D", str(folder / "db"), "-U", "postgres", "-A", "trust", "-N"]
    subprocess.run(initdb, check=True, capture_output=True)
    options = f"-p {port} -k {folder} -c listen_addresses=127.0.0.1 -c max_connections=150"

    def control(action: str) -> None:
        command = [*run_as, str(programs / "pg_ctl"), action, "-D", str(folder / "db"), "-l", str(folder / "log"), "-w"]
        mode = ["-m", "fast"] if action != "start" else []
        subprocess.run(
            [*command, *mode, *(["-o", options] if action != "stop" else [])], check=True, stdout=subprocess.DEVNULL
        )

    control("start")
    try:
        yield f"postgresql://postgres@127.0.0.1:{port}/postgres", control
    finally:
        control("stop")
        shutil.rmtree(folder, ignore_errors=True)


def proxy(home: Path, urls: list[str], port: int, name: str = "http") -> list[str]:
    """Return the command that runs nginx with the files of docker-compose.yml and these addresses."""
    if not Path(NGINX).exists() and os.environ.get("CI") != "true":
        pytest.skip("nginx is not installed")
    files = home / "proxy"
    shutil.copytree(ROOT / "deploy" / "proxy", files, dirs_exist_ok=True)
    for file in files.glob("*.conf"):
        text = file.read_text().replace("listen 8080;", f"listen 127.0.0.1:{port};")
        text = text.replace("listen 8443 ", f"listen 127.0.0.1:{free_port()} ").replace("/tmp/", f"{home}/")
        for n, url in enumerate(urls, start=1):
            text = text.replace(f"web{n}:8000", url.removeprefix("http://"))
        file.write_text(text)
    options = f"daemon off; pid {home}/nginx.pid; error_log {home}/nginx-errors.log;"
    return [NGINX, "-p", str(home), "-c", str(files / f"{name}.conf"), "-g", options]


def certificate(folder: Path) -> None:
    """Write a self-signed certificate and its key to the names that the proxy reads."""
    key, now = ec.generate_private_key(ec.SECP256R1()), datetime.now(UTC)
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "cato.example")])
    certificate = (
        x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key())
        .serial_number(1).not_valid_before(now).not_valid_after(now + timedelta(days=1)).sign(key, hashes.SHA256())
    )  # fmt: skip
    folder.mkdir(parents=True)
    (folder / "fullchain.pem").write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    (folder / "privkey.pem").write_bytes(private)
