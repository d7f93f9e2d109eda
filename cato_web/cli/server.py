"""Let a running `serve` run a command, so that the command loads neither Django nor the embedding model."""

from __future__ import annotations

import http.client
import json
from collections.abc import Callable, Iterator
from dataclasses import asdict
from typing import Any

from cato_web.cli.messages import CommandFailedError, CommandRequest, CommandResult, UsageError, sign
from cato_web.config.fields import is_loopback
from cato_web.config.loader import secret_key
from cato_web.config.schema import Config
from cato_web.supervisor.server_info import local_address, running_server_info

PATH = "/cli"
_CONNECT_TIMEOUT = 2.0  # seconds


def run_on_server(
    config: Config, request: CommandRequest, on_text: Callable[[str], None], *, warn: Callable[[str], None]
) -> CommandResult | None:
    """Return the result of the web process, which calls `on_text` for each part of an answer.

    None if none runs on this data directory, or it does not take commands from here, which `warn` says: the command then
    works on its own. Raises UsageError and CommandFailedError.
    """
    server_info = running_server_info(config.server.data_dir)
    if not server_info:
        return None
    host, port = local_address(server_info["url"])
    if not is_loopback(host):
        return None
    body = json.dumps(asdict(request)).encode()
    headers = {"Content-Type": "application/json", "X-Cato-Signature": sign(body, secret_key(config))}
    connection = http.client.HTTPConnection(host, port, timeout=_CONNECT_TIMEOUT)
    try:
        try:
            connection.connect()
        except OSError:  # it is still starting, or ending
            return None
        connection.sock.settimeout(None)
        connection.request("POST", PATH, body, headers)
        response = connection.getresponse()
        if response.status != 200:  # another key, or a web process of an earlier version
            warn("The running Cato did not accept this command, so it works on its own.")
            return None
        return _result(response, on_text)
    except (OSError, http.client.HTTPException) as error:
        raise CommandFailedError("Cato ended before the command was finished. Start it, and try again.") from error
    finally:
        connection.close()


def _result(response: http.client.HTTPResponse, on_text: Callable[[str], None]) -> CommandResult:
    for message in _messages(response):
        if "text" in message:
            on_text(message["text"])
        elif "failure" in message:
            raise (UsageError if message["is_usage"] else CommandFailedError)(message["failure"])
        else:
            return CommandResult(**message["done"])
    raise http.client.IncompleteRead(b"")


def _messages(response: http.client.HTTPResponse) -> Iterator[dict[str, Any]]:
    for line in response:
        if line.strip():
            yield json.loads(line)
