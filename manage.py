#!/usr/bin/env python3
"""Cato's and Django's commands. `cato` and `serve` run without Django's settings: they read the configuration first."""

import os
import sys


def main() -> int:
    """Run the command that the arguments name; returns the exit code, 3 for a configuration that cannot be used."""
    command, arguments = (sys.argv[1] if len(sys.argv) > 1 else ""), sys.argv[2:]
    if command == "cato":
        from cato_web.cli.main import main as run_cli

        return run_cli(arguments)
    if command == "serve":
        from cato_web.supervisor.main import main as serve

        return serve(arguments)

    from django.core.management import execute_from_command_line

    from cato_web.config.loader import ConfigError

    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "cato_web.settings")
    try:
        execute_from_command_line(sys.argv)
        if sys.stdout is not None:
            sys.stdout.flush()
    except ConfigError as error:
        sys.stderr.write(f"{error}\n")
        return 3
    except BrokenPipeError:  # the reader, such as `head`, has ended
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
