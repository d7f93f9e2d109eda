"""Run a complete Cato in child processes: by `serve`, or as the services topology deploys it."""

from __future__ import annotations

import os
import re
import signal
import sqlite3
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx

from tests.templates import copy_prepared_data, template_database
from tests.topology import POSTGRES, REDIS, TOPOLOGY, WORKER, clean_environment, free_port

ROOT = Path(__file__).resolve().parent.parent
PASSWORD = "four plain words are fine"
SERVE = [sys.executable, "-m", "tests.serve"]


@dataclass
class Process:
    """A child process of the suite; its output goes to a file."""

    name: str
    popen: subprocess.Popen[bytes]
    log: Path
    command: list[str] = field(default_factory=list)
    environment: dict[str, str] = field(default_factory=dict, repr=False)
    is_ending: bool = False

    def ask_to_end(self) -> None:
        """Send SIGTERM once: some servers exit at once on a second one."""
        if not self.is_ending and self.popen.poll() is None:
            self.popen.terminate()
        self.is_ending = True

    def end(self) -> None:
        self.ask_to_end()
        try:
            self.popen.wait(25)
        except subprocess.TimeoutExpired:
            self.popen.kill()
            self.popen.wait()


@dataclass
class Client:
    """A person's HTTP session: keeps cookies and sends the CSRF token."""

    url: str
    name: str
    email: str
    http: httpx.Client = field(repr=False)

    def get(self, path: str, **kwargs: Any) -> httpx.Response:
        return self.http.get(path, **kwargs)

    def post(
        self, path: str, data: dict[str, Any] | None = None, *, htmx: bool = False, **kwargs: Any
    ) -> httpx.Response:
        headers = {"X-CSRFToken": self.http.cookies.get("cato_csrf") or "", "Referer": self.url}
        if htmx:
            headers["HX-Request"] = "true"
        return self.http.post(path, data=data or {}, headers=headers, **kwargs)

    def send_message(self, message: str, thread: str | None = None, key: str | None = None) -> str:
        """Post a message in a thread, or in a new one; return the thread's id."""
        path = f"/t/{thread}/messages" if thread else "/"
        answer = self.post(path, {"message": message, "client_key": key or str(uuid.uuid4())})
        assert answer.status_code == 302, (answer.status_code, answer.text[:500])
        found = re.search(r"/t/([0-9a-f-]{36})", answer.headers["location"])
        assert found
        return found[1]

    def export_everything(self) -> bytes:
        """Request an export of this person's data, wait for the worker, and return the zip file."""
        assert self.post("/settings/export").status_code == 302
        wait_for(lambda: "/settings/export/file" in self.get("/settings/export").text, "the export", seconds=60)
        answer = self.get("/settings/export/file")
        assert answer.headers["content-type"] == "application/zip"
        return answer.content

    def create_token(self, *scopes: str) -> str:
        """Create a token on the settings page, with all scopes by default."""
        chosen = {"name": "a program", "scopes": scopes or ("read", "write", "ask"), "lifetime": "30"}
        page = self.post("/settings/tokens", chosen, follow_redirects=True)
        found = re.search(r'value="(cato_[\w-]+)"', page.text)
        assert found, page.text[:1000]
        return found[1]

    def api_client(self, *scopes: str) -> httpx.Client:
        """Return a client with a new token and without this person's cookies."""
        headers = {"Authorization": f"Bearer {self.create_token(*scopes)}"}
        return httpx.Client(base_url=self.url, timeout=30, headers=headers)

    def thread_page(self, thread: str) -> str:
        answer = self.get(f"/t/{thread}")
        assert answer.status_code == 200, answer.status_code
        return answer.text

    def search_page(self, query: str) -> str:
        """Return the search page for the query, without the marks around its words."""
        answer = self.get("/search", params={"q": query})
        assert answer.status_code == 200, answer.status_code
        return re.sub("</?mark>", "", answer.text)


@dataclass
class Cato:
    """A running Cato. `urls` are its web processes: one, or two without a proxy."""

    home: Path
    urls: list[str]
    environment: dict[str, str]
    processes: list[Process]
    database: str

    @property
    def url(self) -> str:
        return self.urls[0]

    @property
    def other_url(self) -> str:
        """Return the address of another web process, if any."""
        return self.urls[-1]

    def set_up(self, name: str = "Ada Admin") -> Client:
        """Create the first account with the set-up link that the start prints."""
        link = wait_for(lambda: re.search(r"/setup/(\S+)", self.logs()), "the set-up link")
        return self._enter(f"/setup/{link[1]}", name)

    def join(self, administrator: Client, name: str, role: str = "member") -> Client:
        """Create an account with an invitation of the administrator."""
        page = administrator.post("/admin/people", {"role": role}, follow_redirects=True)
        link = re.search(r"(/join/[\w-]+)", page.text)
        assert link, page.text[:1000]
        return self._enter(link[1], name)

    def sign_in(self, person: Client, url: str | None = None) -> Client:
        """Sign the same person in from another browser, or at another web process."""
        client = _client(url or self.url, person.name, person.email)
        client.get("/sign-in")
        answer = client.post("/sign-in", {"email": person.email, "password": PASSWORD})
        assert answer.status_code == 302, answer.text[:500]
        return client

    def manage(
        self, *arguments: str, check: bool = True, stdin: str | None = None, timeout: float = 120
    ) -> subprocess.CompletedProcess[str]:
        """Run `manage.py` in this Cato's environment; `timeout` in seconds."""
        return subprocess.run(
            [sys.executable, "manage.py", *arguments],
            cwd=ROOT, env=self.environment, text=True, capture_output=True, check=check, timeout=timeout, input=stdin,
        )  # fmt: skip

    def sql(self, query: str, *parameters: Any) -> list[tuple[Any, ...]]:
        """Read the database; `?` marks a parameter, UUIDs are 32 hex digits on both sides."""
        if self.database.startswith("postgres"):
            import psycopg

            with psycopg.connect(self.database) as pg:
                rows = pg.execute(query.replace("?", "%s"), [_for_postgres(p) for p in parameters]).fetchall()
            return [tuple(v.hex if isinstance(v, uuid.UUID) else v for v in row) for row in rows]
        with sqlite3.connect(f"file:{self.database}?mode=ro", uri=True, timeout=20) as lite:
            return lite.execute(query, parameters).fetchall()

    def restart(self, name: str) -> None:
        """End one of its processes and start it again."""
        location = next(n for n, process in enumerate(self.processes) if process.name == name)
        old = self.processes[location]
        old.end()
        self.processes[location] = start(self.home, name, old.command, old.environment)

    def logs(self) -> str:
        return "\n".join(process.log.read_text(errors="replace") for process in self.processes)

    def _enter(self, path: str, name: str) -> Client:
        client = _client(self.url, name, f"{name.split()[0].lower()}-{uuid.uuid4().hex[:6]}@halden.example")
        client.get(path)
        answer = client.post(path, {"name": name, "email": client.email, "password": PASSWORD, "model_from": "later"})
        assert answer.status_code == 302, (answer.status_code, answer.text[:2000])
        return client


@contextmanager
def running(home: Path, *, watched_by: Sequence[str] = (), **environment: str) -> Iterator[Cato]:
    """Start a Cato below `home` with `environment` added, wait until it is ready, and end it.

    `watched_by`: the command of a program that runs and observes `serve`.
    """
    home.mkdir(parents=True, exist_ok=True)
    # Titles are additional requests to the model, which most tests would have to filter out.
    # People stay signed in for all tests of a process, which is longer than a confirmation is valid.
    environment = {"CATO_CHAT_TITLES": "false", "CATO_SIGN_IN_CONFIRM_AFTER_MINUTES": "1440"} | environment
    cato = _services(home, environment) if TOPOLOGY == "services" else _embedded(home, environment, watched_by)
    try:
        for url in cato.urls:
            wait_for(lambda url=url: _answers(url), f"{url} to answer\n{cato.logs()}", seconds=120)
        yield cato
    finally:
        # Stop all at once, but Chroma last, when nothing uses it any more.
        for process in cato.processes:
            if process.name != "chroma":
                process.ask_to_end()
        for process in reversed(cato.processes):
            process.end()
        if cato.database.startswith("postgres") and "DATABASE_URL" not in environment:
            _drop_database(cato.database)


def start(home: Path, name: str, command: list[str], environment: dict[str, str]) -> Process:
    """Start one process with its output in `home/name.log`."""
    log = home / f"{name}.log"
    with log.open("ab") as out:
        popen = subprocess.Popen(
            command, cwd=ROOT, env=environment, stdout=out, stderr=out, stdin=subprocess.DEVNULL, start_new_session=True
        )
    return Process(name, popen, log, command, environment)


def wait_for(condition: Callable[[], Any], what: str, seconds: float = 40.0, every: float = 0.05) -> Any:
    """Call `condition` until it is true, and return its value; fail with `what`."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            if answer := condition():
                return answer
        except httpx.TransportError:
            pass  # a server that starts or restarts refuses connections
        time.sleep(every)
    raise AssertionError(f"waited {seconds:g} s for {what}")


def start_chroma(home: Path, name: str, path: Path, port: int) -> Process:
    """Start a Chroma server over the files at `path`, as docker-compose.yml does."""
    chroma = str(Path(sys.executable).with_name("chroma"))
    location = {"CHROMA_PERSIST_PATH": str(path), "CHROMA_LISTEN_ADDRESS": "127.0.0.1", "CHROMA_PORT": str(port)}
    environment = clean_environment() | location | {"RUST_LOG": "warn"}
    return start(home, name, [chroma, "run", "cato_web/chroma.yaml"], environment)


def is_chroma_available() -> bool:
    """Return whether the Chroma server of the settings answers memory in this process."""
    from memory.errors import VectorStoreUnavailableError
    from memory.index.chroma import ping_vector_store

    try:
        ping_vector_store()
    except VectorStoreUnavailableError:
        return False
    return True


def kill(process_id: int) -> None:
    os.kill(process_id, signal.SIGKILL)


def _embedded(home: Path, environment: dict[str, str], watched_by: Sequence[str] = ()) -> Cato:
    port = free_port()
    env = clean_environment() | {
        "CATO_DATA_DIR": str(home / "data"),
        "CATO_PORT": str(port),
        "CATO_CONFIG_FILE": "",
        **environment,
    }
    data = Path(env["CATO_DATA_DIR"])
    if not env.get("DATABASE_URL") and not (data / "cato.sqlite3").exists():
        copy_prepared_data(data)
    serve = start(home, "serve", [*watched_by, *SERVE], env)
    database = env.get("DATABASE_URL") or str(data / "cato.sqlite3")
    return Cato(home, [f"http://127.0.0.1:{port}"], env, [serve], database)


def _services(home: Path, environment: dict[str, str]) -> Cato:
    ports, chroma_port = [free_port(), free_port()], free_port()
    database = environment.get("DATABASE_URL") or _create_database()
    redis_number = 1 + int(re.sub(r"\D", "", WORKER) or 0)
    env = clean_environment() | {
        "DJANGO_SETTINGS_MODULE": "tests.settings",
        "CATO_DATA_DIR": str(home / "data"),
        "CATO_CONFIG_FILE": "",
        "DATABASE_URL": database,
        "REDIS_URL": f"{REDIS}/{redis_number}",
        "CHROMA_URL": f"http://127.0.0.1:{chroma_port}",
        "SECRET_KEY": uuid.uuid4().hex * 2,
        "CATO_PORT": str(ports[0]),
        **environment,
    }
    chroma = start_chroma(home, "chroma", home / "chroma", chroma_port)
    prepare = start(home, "prepare", [sys.executable, "manage.py", "prepare"], env)
    if prepare.popen.wait(60):
        raise AssertionError(prepare.log.read_text())
    worker = [
        sys.executable, "-m", "celery", "-A", "cato_web", "worker", "--pool", "threads", "--concurrency", "2",
        "--without-gossip", "--without-mingle", "--without-heartbeat", "-l", "WARNING",
    ]  # fmt: skip
    processes = [chroma, prepare]
    processes += [start(home, f"worker{n}", [*worker, "-n", f"w{n}@%h"], env) for n in (1, 2)]
    processes += [
        start(home, f"web{n}", [sys.executable, "-m", "cato_web.server"], env | {"CATO_PORT": str(port)})
        for n, port in enumerate(ports, start=1)
    ]
    return Cato(home, [f"http://127.0.0.1:{port}" for port in ports], env, processes, database)


def _create_database() -> str:
    import psycopg

    name, template = f"cato_{WORKER}_{uuid.uuid4().hex[:8]}", template_database() if TOPOLOGY == "services" else None
    with psycopg.connect(POSTGRES, autocommit=True) as pg:
        pg.execute(f'CREATE DATABASE "{name}"' + (f' TEMPLATE "{template}"' if template else ""))
    return f"{POSTGRES.rsplit('/', 1)[0]}/{name}"


def _drop_database(url: str) -> None:
    import psycopg

    with psycopg.connect(POSTGRES, autocommit=True) as pg:
        pg.execute(f'DROP DATABASE IF EXISTS "{url.rsplit("/", 1)[1]}" WITH (FORCE)')


def _for_postgres(value: Any) -> Any:
    if isinstance(value, str) and re.fullmatch(r"[0-9a-f]{32}", value):
        return uuid.UUID(value)
    return value


def _answers(url: str) -> bool:
    return httpx.get(f"{url}/healthz", timeout=2, verify=False).status_code == 200


def _client(url: str, name: str, email: str) -> Client:
    # Without certificates, whose loading takes longer than most requests.
    return Client(url, name, email, httpx.Client(base_url=url, timeout=30, verify=False))
