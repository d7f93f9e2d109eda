"""Start one web process: `python -m cato_web.server [--prepare]`.

`--prepare` runs the command `prepare` first. A process of its own for it would load the application a second time; only the
first start has one.
"""

from __future__ import annotations

import gc
import io
import os
import socket
import subprocess
import sys
from contextlib import suppress

import uvicorn

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "cato_web.settings")

# Seconds, longer than proxies keep an idle connection (nginx 60, Traefik 90, Caddy 120). A message that is sent while the
# server closes its connection is lost, and under load the server reads a request late.
_KEEP_ALIVE = 150


class _Server(uvicorn.Server):
    """A server that prints a text once it accepts connections: nobody follows the link of the set-up too early."""

    def __init__(self, config: uvicorn.Config, greeting: str) -> None:
        super().__init__(config)
        self._greeting = greeting

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listen, then print the text."""
        await super().startup(sockets)
        if self.started:
            sys.stdout.write(self._greeting)
            sys.stdout.flush()


def main() -> None:
    """Serve until terminated; running answers may finish first. Exits with code 3 if the server cannot start."""
    # What is loaded stays. Garbage collections that look at it would take a seventh of the time until the first page.
    gc.disable()
    from cato_web.config import loader

    try:
        conf = loader.load()
    except loader.ConfigError as error:
        sys.exit(str(error))
    greeting = ""
    if "--prepare" in sys.argv[1:]:
        greeting = _prepare(is_first=not (conf.server.data_dir / "static" / "staticfiles.json").exists())
    config = uvicorn.Config(
        "cato_web.asgi:application",
        host=conf.server.host,
        port=conf.server.port,
        loop="uvloop",
        http="httptools",
        ws="websockets-sansio",
        ws_max_size=64 * 1024,
        ws_ping_interval=20,
        ws_ping_timeout=20,
        ws_per_message_deflate=False,
        lifespan="on",
        timeout_keep_alive=_KEEP_ALIVE,
        timeout_graceful_shutdown=15,
        proxy_headers=conf.server.public_url is not None,
        forwarded_allow_ips=conf.server.trusted_proxies,
        # Django configures logging.
        log_config=None,
        access_log=False,
        server_header=False,
    )
    config.load_app()  # outside the event loop
    gc.freeze()
    gc.enable()
    server = _Server(config, greeting)
    sockets = _shared_sockets(conf.server.host, conf.server.port) if conf.server.web_processes > 1 else None
    with suppress(KeyboardInterrupt):
        server.run(sockets)
    if not server.started:
        sys.exit(3)


def _shared_sockets(host: str, port: int) -> list[socket.socket]:
    """Listen on an address together with other web processes, among which the kernel distributes the connections."""
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    return [socket.create_server(address, family=family, reuse_port=True) for family, _, _, _, address in found]


def _prepare(*, is_first: bool) -> str:
    """Run the command `prepare`; return what it printed."""
    if is_first:
        # The settings depend on whether the assets were collected when they are read.
        command = [sys.executable, "-m", "django", "prepare"]
        return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout  # noqa: S603
    import django

    django.setup()
    from django.core.management import call_command
    from django.db import connections

    output = io.StringIO()
    call_command("prepare", stdout=output)
    # Requests are served in other threads, with connections of their own.
    connections.close_all()
    return output.getvalue()


if __name__ == "__main__":
    main()
