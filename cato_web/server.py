"""Start one web process: `python -m cato_web.server [--prepare]`.

`--prepare` runs the command `prepare` first. A process of its own for it would load the application a second time; only the
first start has one.
"""

from __future__ import annotations

import os
import subprocess
import sys

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "cato_web.settings")


def main() -> None:
    """Serve until terminated; running answers may finish first."""
    import uvicorn

    from cato_web.config import loader

    try:
        conf = loader.load()
    except loader.ConfigError as error:
        sys.exit(str(error))
    if "--prepare" in sys.argv[1:]:
        _prepare(is_first=not (conf.server.data_dir / "static" / "staticfiles.json").exists())
    uvicorn.run(
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
        timeout_graceful_shutdown=15,
        proxy_headers=conf.server.public_url is not None,
        forwarded_allow_ips=conf.server.trusted_proxies,
        # Django configures logging.
        log_config=None,
        access_log=False,
        server_header=False,
    )


def _prepare(*, is_first: bool) -> None:
    if is_first:
        # The settings depend on whether the assets were collected when they are read.
        subprocess.run([sys.executable, "-m", "django", "prepare"], check=True)
        return
    import django

    django.setup()
    from django.core.management import call_command
    from django.db import connections

    call_command("prepare")
    sys.stdout.flush()
    # Requests are served in other threads, with connections of their own.
    connections.close_all()


if __name__ == "__main__":
    main()
