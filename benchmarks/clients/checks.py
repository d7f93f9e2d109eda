"""Run the checks of one client: a line for each, and exit code 1 if one differs.

Runs in the environment of the client, so it imports only Python's own modules and the fake endpoint's interface.
"""

from __future__ import annotations

import itertools
import os
import sys
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from importlib.metadata import version
from typing import Any, NoReturn

from tests.fake_endpoint import FakeEndpoint

KEY = "clients"  # the key of the model endpoint
# The calls of tools with one answer, for `Connection.script`.
WEATHER = [[("weather", '{"city": "Bergen"}')]]
# One red pixel as PNG.
PIXEL = (
    "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR4nGP4z8AAAAMBAQDJ/pLvAAAAAElFTkSuQmCC"
)


@dataclass
class Connection:
    """A running Cato with a token, and the model endpoint whose answers the checks script."""

    base_url: str
    token: str
    endpoint: FakeEndpoint
    _numbers: itertools.count[int] = field(default_factory=itertools.count)

    def script(self, answer: str | list[str], calls: Sequence[Sequence[tuple[str, str]]] = (), **more: Any) -> None:
        """Set the next answers of the model, and the tools that it calls with each."""
        self.endpoint.script(KEY, answer=answer, calls=calls, **more)

    def unique(self, text: str) -> str:
        """Return a unique text: an equal conversation would be recognised as the same thread."""
        return f"{text} ({next(self._numbers)})"

    def prompt(self) -> dict[str, Any]:
        """Return the last request that Cato sent to the model."""
        request: dict[str, Any] = self.endpoint.requests(KEY)[-1]
        return request


def equal(found: object, expected: object, what: str = "value") -> None:
    """Raise AssertionError that says how the two differ."""
    if found != expected:
        raise AssertionError(f"{what} is {found!r}, not {expected!r}")


def run(packages: Sequence[str], module: Mapping[str, Any]) -> NoReturn:
    """Print the versions of the packages, call each function `check_…` of the module, print its result, and exit."""
    print(", ".join(f"{package} {version(package)}" for package in packages), flush=True)
    endpoint = FakeEndpoint(os.environ["CLIENT_ENDPOINT"])
    connection = Connection(os.environ["CLIENT_BASE_URL"], os.environ["CLIENT_TOKEN"], endpoint)
    checks = {name: partial(check, connection) for name, check in module.items() if name.startswith("check_")}
    sys.exit(report(checks) > 0)


def report(checks: Mapping[str, Callable[[], None]]) -> int:
    """Call each check and print its result; return how many differ."""
    failed = 0
    for function, check in checks.items():
        name = function.removeprefix("check_").replace("_", " ")
        try:
            check()
        except Exception as error:  # noqa: BLE001 - each client has errors of its own, and the others are still to run
            failed += 1
            print(f"  {name}: differs: {type(error).__name__}: {str(error)[:500]}", flush=True)
            traceback.print_exc()
        else:
            print(f"  {name}: ok", flush=True)
    return failed
