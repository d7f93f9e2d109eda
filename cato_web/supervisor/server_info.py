"""What a running `serve` writes about itself, for the commands that run beside it. Imports neither Django nor pydantic."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from cato_web.supervisor.data_dir_lock import is_locked_by_serve

FILE_NAME = "serve.json"


def write_server_info(info_file: Path, content: Mapping[str, Any]) -> None:
    """Write the file with mode 600, all at once."""
    temporary = info_file.with_suffix(".new")
    temporary.touch(mode=0o600)
    temporary.write_text(json.dumps(content))
    temporary.replace(info_file)


def running_server_info(data_dir: Path) -> Mapping[str, Any]:
    """Return what a running `serve` on this data directory wrote about itself, or an empty mapping.

    Only the lock tells whether it runs: in a container, the process id that a killed `serve` left is soon used again.
    """
    server_info = read_server_info(data_dir / FILE_NAME)
    return server_info if server_info and is_locked_by_serve(data_dir) else {}


def read_server_info(info_file: Path) -> Mapping[str, Any]:
    """Return what a process wrote about itself, or an empty mapping if it does not run any more."""
    try:
        server_info = json.loads(info_file.read_text())
        os.kill(server_info["pid"], 0)
    except (OSError, ValueError, KeyError):
        return {}
    return dict(server_info)


def local_address(url: str) -> tuple[str, int]:
    """Return host and port at which a command on this machine reaches the web process at `url`."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    return {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host), parts.port or 80  # noqa: S104  (connects, does not bind)
