"""docker-compose.yml runs what the suite runs, with valid settings, and publishes one port."""

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
    """Return the services by name, with `${NAME:-default}` replaced by the default."""
    text = re.sub(r"\$\{\w+:-([^}]*)\}", r"\1", COMPOSE.read_text())
    text = re.sub(r"\$\{(\w+):\?[^}]*\}", "a-password", text)
    found: dict[str, dict[str, Any]] = yaml.safe_load(text)["services"]
    return found


@pytest.fixture
def commands(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> dict[str, server.Process]:
    """Return what the services topology starts, by process."""
    processes: dict[str, server.Process] = {}

    class EndedProcess:
        returncode: ClassVar[int] = 0

        def wait(self, seconds: float) -> int:
            return self.returncode

    def record(home: Path, name: str, command: list[str], environment: dict[str, str]) -> server.Process:
        command = [Path(command[0]).name.replace(Path(sys.executable).name, "python"), *command[1:]]
        processes[name] = server.Process(name, EndedProcess(), home / name, command, environment)  # type: ignore[arg-type]
        return processes[name]

    monkeypatch.setattr(server, "start", record)
    monkeypatch.setattr(server, "_create_database", lambda: "postgresql://127.0.0.1/none")
    server._services(tmp_path, {})
    return processes


def test_compose_accepts_the_file() -> None:
    api_client = Path(sys.executable).with_name("check-jsonschema")
    command = [str(api_client), "--builtin-schema", "vendor.compose-spec", str(COMPOSE)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_containers_run_what_the_suite_runs(commands: dict[str, server.Process]) -> None:
    assert services()["web1"]["command"] == commands["web1"].command == commands["web2"].command
    assert services()["web2"] == services()["web1"]
    assert services()["prepare"]["command"] == commands["prepare"].command
    # Workers in separate containers need no names.
    assert [*services()["worker"]["command"], "-n", "w1@%h"] == commands["worker1"].command
    chroma = services()["chroma"]
    assert chroma["command"] == commands["chroma"].command
    assert set(chroma["environment"]) == OF_CHROMA <= set(commands["chroma"].environment)
    assert chroma["environment"]["RUST_LOG"] == commands["chroma"].environment["RUST_LOG"]


def test_every_variable_is_a_known_setting_with_a_valid_value() -> None:
    known = {"CATO_" + key.replace(".", "_").upper() for key in KEYS}
    known |= {name for names in loader.ENVIRONMENT_ALIASES.values() for name in names}
    known |= {"MALLOC_ARENA_MAX"}  # of glibc
    for name, service in services().items():
        environment = service.get("environment", {})
        assert set(environment) <= {"postgres": OF_POSTGRES, "chroma": OF_CHROMA}.get(name, known), name
        if name in OURS - {"chroma"}:
            loaded = loader.load(environ=environment)
            assert loaded.warnings == ()
            assert None not in (loaded.database_url, loaded.redis_url, loaded.chroma_url)


def test_the_processes_that_read_settings_get_those_of_one_optional_file() -> None:
    with_file = {name for name, service in services().items() if "env_file" in service}
    assert with_file == OURS - {"chroma"}
    assert all(services()[name]["env_file"] == [{"path": "cato.env", "required": False}] for name in with_file)


def test_the_image_sets_known_variables_and_runs_without_privileges() -> None:
    dockerfile = (server.ROOT / "Dockerfile").read_text()
    known = {name for names in loader.ENVIRONMENT_ALIASES.values() for name in names}
    assert set(re.findall(r"\bCATO_\w+(?==)", dockerfile)) <= known
    assert re.search(r"^USER cato$", dockerfile, re.M)
    assert "--require-hashes" in dockerfile
    ignored = (server.ROOT / ".dockerignore").read_text().splitlines()
    assert ignored[1] == "*"
    assert all((server.ROOT / line[1:]).exists() for line in ignored if line.startswith("!"))


def test_only_the_pages_are_published_and_no_container_is_privileged() -> None:
    for name, service in services().items():
        assert ("ports" in service) == (name == "proxy"), name
        assert not service.get("privileged")
        assert service["security_opt"] == ["no-new-privileges:true"]
        assert service.get("network_mode") is None
        assert ("outside" in service["networks"]) == (name in ("web1", "web2", "worker", "proxy")), name
        of_this_machine = [volume for volume in service.get("volumes", []) if volume.startswith((".", "/", "~"))]
        assert of_this_machine == (["./deploy/proxy:/etc/cato:ro"] if name == "proxy" else []), name


def test_every_long_running_service_has_a_health_check_and_restarts() -> None:
    for name, service in services().items():
        assert ("healthcheck" in service) == (name != "prepare"), name
        for other, dependency in service.get("depends_on", {}).items():
            done = dependency["condition"] == "service_completed_successfully"
            assert done == (other == "prepare"), f"{name} waits for {other}"
            assert done or "healthcheck" in services()[other]
