"""Try real clients of /v1 against a Cato with a scripted model endpoint.

python -m benchmarks.clients [langchain litellm llm openai_agents openai_node] [--environments FOLDER]

Each client is installed in an environment of its own in a temporary folder, or in FOLDER, which is kept and used again.
Prints a line for each check and exits with 1 if one differs. A client that cannot be installed is named and left out.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks.bench import workbench
from benchmarks.clients.checks import KEY
from benchmarks.clients.environments import NotInstallableError, install, install_node_packages
from benchmarks.command_line import command_parser
from tests.fake_endpoint import start
from tests.server import ROOT, running

# What is installed for each client; its checks are in the module of this package with its name.
PYTHON_CLIENTS = {
    "langchain": ["langchain", "langchain-openai"],
    "litellm": ["litellm"],
    "llm": ["llm"],
    "openai_agents": ["openai-agents"],
}
NODE_CLIENTS = {"openai_node": ["openai", "zod"]}


def client_command(name: str, environments: Path) -> list[str]:
    """Install a client and return the command that checks it. Raises NotInstallableError."""
    folder = environments / name
    if packages := PYTHON_CLIENTS.get(name):
        return [str(install(folder, packages)), "-m", f"benchmarks.clients.{name}"]
    install_node_packages(folder, NODE_CLIENTS[name])
    # Node looks for packages beside the script.
    script = shutil.copy(Path(__file__).with_name(f"{name}.mjs"), folder)
    return ["node", str(script)]


def check_clients(names: Sequence[str], environments: Path, home: Path) -> list[str]:
    """Check the clients in turn; return the names of those that differ."""
    commands = {}
    for name in names:
        try:
            commands[name] = client_command(name, environments)
        except NotInstallableError as error:
            print(f"{name}: skipped, it cannot be installed: {error}", flush=True)
    failed = []
    with start() as endpoint:
        settings = {"OPENAI_BASE_URL": endpoint.openai_url, "OPENAI_API_KEY": KEY}
        limits = {
            "CATO_CHAT_MESSAGES_PER_MINUTE": "1000",
            "CATO_API_REQUESTS_PER_MINUTE": "1000",
            # The first recall loads the embedding model.
            "CATO_VECTOR_STORE_RETRIEVAL_TIMEOUT": "20",
        }
        with running(home, **settings, **limits) as cato:
            token = cato.set_up().create_token()
            for name, command in commands.items():
                environment = os.environ | {
                    "CLIENT_BASE_URL": f"{cato.url}/v1",
                    "CLIENT_TOKEN": token,
                    "CLIENT_ENDPOINT": endpoint.url,
                    "CLIENT_HOME": str(home / name),
                }
                if subprocess.run(command, cwd=ROOT, env=environment, check=False).returncode:
                    failed.append(name)
    return failed


def main() -> int:
    """Check the named clients, or all; return 1 if one differs."""
    names = [*PYTHON_CLIENTS, *NODE_CLIENTS]
    parser = command_parser("clients", __doc__)
    parser.add_argument("clients", nargs="*", metavar="CLIENT", help=f"one of {', '.join(names)}; all by default")
    parser.add_argument("--environments", type=Path, help="keep the installed clients in this folder")
    options = parser.parse_args()
    if unknown := set(options.clients) - set(names):
        parser.error(f"unknown: {', '.join(sorted(unknown))}")
    with workbench() as folder:
        environments = (options.environments or folder / "environments").resolve()
        failed = check_clients(options.clients or names, environments, folder / "cato")
    if failed:
        print(f"Differs: {', '.join(failed)}")
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main())
