"""The parser of the command of a benchmark."""

from __future__ import annotations

from argparse import ArgumentParser, RawDescriptionHelpFormatter


def command_parser(module: str, doc: str | None) -> ArgumentParser:
    """Return a parser of the command that runs this module; its help begins with the docstring."""
    prog = f"python -m benchmarks.{module}"
    return ArgumentParser(prog=prog, description=doc, formatter_class=RawDescriptionHelpFormatter)
