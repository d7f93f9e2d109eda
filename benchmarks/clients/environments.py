"""Environments of clients: each is installed beside the project, whose packages and lock files stay as they are."""

from __future__ import annotations

import shutil
import subprocess
import venv
from collections.abc import Sequence
from pathlib import Path


class NotInstallableError(Exception):
    """A client cannot be installed; the message says why."""


def install(folder: Path, packages: Sequence[str]) -> Path:
    """Install Python packages in a virtual environment, unless it exists; return its interpreter."""
    python = folder / "bin" / "python"
    if not python.exists():
        venv.create(folder, with_pip=True)
        _run([str(python), "-m", "pip", "install", "--quiet", *packages], folder)
    return python


def install_node_packages(folder: Path, packages: Sequence[str]) -> None:
    """Install Node packages below a folder, unless it has some."""
    if not (npm := shutil.which("npm")):
        raise NotInstallableError("there is no npm")
    if not (folder / "node_modules").exists():
        folder.mkdir(parents=True, exist_ok=True)
        _run([npm, "install", "--silent", "--no-audit", "--no-fund", "--prefix", str(folder), *packages], folder)


def _run(command: list[str], folder: Path) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        shutil.rmtree(folder, ignore_errors=True)  # half an environment would be used again
        raise NotInstallableError((done.stderr.strip() or done.stdout.strip()).splitlines()[-1])
