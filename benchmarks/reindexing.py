"""Commands that build the index again, beside the running Cato, some of which are killed."""

from __future__ import annotations

import random
import subprocess
import sys
import threading
from collections import Counter
from dataclasses import dataclass, field

from tests.server import Cato, kill, start

_MAX_SECONDS = 25.0  # until a command is killed


@dataclass
class Reindexing:
    """Runs of `reembed`, and what became of them."""

    cato: Cato
    dice: random.Random
    max_pause: float = 20.0  # seconds between two commands
    runs: Counter[str] = field(default_factory=Counter)

    def run(self, ending: threading.Event) -> None:
        """Build the index with all texts embedded again, then mostly switch between the last two, until the event is set."""
        option = "--again"
        while not ending.wait(self.dice.uniform(0, self.max_pause)):
            self._reindex(option)
            option = self.dice.choices(["--back", "--again", "--drop-old"], [7, 1, 2])[0]

    def _reindex(self, option: str) -> None:
        command = [sys.executable, "manage.py", "reembed", option]
        process = start(self.cato.home, "reembed", command, self.cato.environment)
        try:
            code = process.popen.wait(self.dice.uniform(3, _MAX_SECONDS))
        except subprocess.TimeoutExpired:
            kill(process.popen.pid)
            process.popen.wait()
            self.runs["killed"] += 1
        else:
            self.runs["failed" if code else option.strip("-")] += 1


def is_done(cato: Cato) -> bool:
    """Return whether no index is being built; the sweep finishes what a killed command began."""
    ((building,),) = cato.sql("SELECT count(*) FROM memory_indexgeneration WHERE state = 'building'")
    return int(building) == 0
