"""The containers run what the suite runs, in an environment that Cato knows, and open no door but one."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any, ClassVar

import pytest
import yaml

from cato_web.config import loader
from cato_web.config.schema import KEYS
from tests import server

COMPOSE = server.ROOT / "docker-compose.yml"
OURS = {"web1", "web2", "worker", "prepare", "chroma"}
OF_POSTGRES = {"POSTGRES_USER", "POSTGRES_DB", "POSTGRES_PASSWORD"}
OF_CHROMA = {"CHROMA_PERSIST_PATH", "CHROMA_LISTEN_ADDRESS", "CHROMA_PORT", "RUST_LOG"}


def services() -> dict[str, dict[str, Any]]:
    """The services by name, `${NAME:-default}` replaced as it is where no .env says otherwise."""
    text = re.sub(r"\$\{\w+:-([^}]*)\}", r"\1", COMPOSE.read_text())
    text = re.sub(r"\$\{(\w+):\?[^}]*\}", "a-password", text)
    found: dict[str, dict[str, Any]] = yaml.safe_load(text)["services"]
    return found


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> dict[str, server.Process]:
    """What the services topology of this suite starts, by process."""
    processes: dict[str, server.Process] = {}

    class Ended:
        returncode: ClassVar[int] = 0

        def wait(self, seconds: float) -> int:
            return self.returncode

    def note(home: Path, name: str, command: list[str], environment: dict[str, str]) -> server.Process:
        command = [Path(command[0]).name.replace(Path(sys.executable).name, "python"), *command[1:]]
        processes[name] = server.Process(name, Ended(), home / name, command, environment)  # type: ignore[arg-type]
        return processes[name]

    monkeypatch.setattr(server, "start", note)
    monkeypatch.setattr(server, "_create_database", lambda: "postgresql://127.0.0.1/none")
    server._services(tmp_path, {})
    return processes


def test_the_file_is_what_compose_takes() -> None:
    api_client = Path(sys.executable).with_name("check-jsonschema")
    command = [str(api_client), "--builtin-schema", "vendor.compose-spec", str(COMPOSE)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_containers_run_what_the_suite_runs(started: dict[str, server.Process]) -> None:
    assert services()["web1"]["command"] == started["web1"].command == started["web2"].command
    assert services()["web2"] == services()["web1"]
    assert services()["prepare"]["command"] == started["prepare"].command
    # In one container of their own workers need no names.
    assert [*services()["worker"]["command"], "-n", "w1@%h"] == started["worker1"].command
    chroma = services()["chroma"]
    assert chroma["command"] == started["chroma"].command
    assert set(chroma["environment"]) == OF_CHROMA <= set(started["chroma"].environment)
    assert chroma["environment"]["RUST_LOG"] == started["chroma"].environment["RUST_LOG"]


def test_every_variable_is_one_that_cato_knows_and_its_value_is_allowed() -> None:
    known = {"CATO_" + key.replace(".", "_").upper() for key in KEYS}
    known |= {name for names in loader.ENVIRONMENT_ALIASES.values() for name in names}
    for name, service in services().items():
        environment = service.get("environment", {})
        assert set(environment) <= {"postgres": OF_POSTGRES, "chroma": OF_CHROMA}.get(name, known), name
        if name in OURS - {"chroma"}:
            loaded = loader.load(environ=environment)
            assert loaded.warnings == ()
            assert None not in (loaded.database_url, loaded.redis_url, loaded.chroma_url)


def test_the_image_sets_variables_that_cato_knows_and_runs_as_nobody_in_particular() -> None:
    dockerfile = (server.ROOT / "Dockerfile").read_text()
    known = {name for names in loader.ENVIRONMENT_ALIASES.values() for name in names}
    assert set(re.findall(r"\bCATO_\w+(?==)", dockerfile)) <= known
    assert re.search(r"^USER cato$", dockerfile, re.M)
    assert "--require-hashes" in dockerfile
    ignored = (server.ROOT / ".dockerignore").read_text().splitlines()
    assert ignored[1] == "*"
    assert all((server.ROOT / line[1:]).exists() for line in ignored if line.startswith("!"))


def test_only_the_pages_are_published_and_nobody_is_privileged() -> None:
    for name, service in services().items():
        assert ("ports" in service) == (name == "proxy"), name
        assert not service.get("privileged")
        assert service["security_opt"] == ["no-new-privileges:true"]
        assert service.get("network_mode") is None
        assert ("outside" in service["networks"]) == (name in ("web1", "web2", "worker", "proxy")), name
        of_this_machine = [volume for volume in service.get("volumes", []) if volume.startswith((".", "/", "~"))]
        assert of_this_machine == (["./deploy/proxy:/etc/cato:ro"] if name == "proxy" else []), name


def test_everything_that_stays_up_is_looked_after() -> None:
    for name, service in services().items():
        assert ("healthcheck" in service) == (name != "prepare"), name
        for other, how in service.get("depends_on", {}).items():
            done = how["condition"] == "service_completed_successfully"
            assert done == (other == "prepare"), f"{name} waits for {other}"
            assert done or "healthcheck" in services()[other]
