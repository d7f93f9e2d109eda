"""Memory and open files of processes over time, and how fast they grow."""

from __future__ import annotations

import time
from collections import defaultdict
from dataclasses import dataclass, field

import psutil

_WARM_UP = 180.0  # seconds after a process was first seen that count for no slope


@dataclass(frozen=True, slots=True)
class Sample:
    """A measurement of one process: time (s), memory (MB, resident set) and open files."""

    at: float
    memory: float
    files: int


@dataclass
class Growth:
    """The samples of each process, by name and process id: a restarted process begins again."""

    samples: dict[str, dict[int, list[Sample]]] = field(default_factory=lambda: defaultdict(lambda: defaultdict(list)))

    def sample(self, process_ids: dict[str, int]) -> None:
        """Measure these processes."""
        for name, process_id in process_ids.items():
            try:
                process = psutil.Process(process_id)
                found = Sample(time.monotonic(), process.memory_info().rss / 1e6, process.num_fds())
            except psutil.Error:  # it has just ended
                continue
            self.samples[name][process_id].append(found)

    def memory_slopes(self) -> dict[str, float]:
        """Return the growth of each process in MB/h, over all its starts."""
        return {name: self._slope(name, "memory") for name in self.samples}

    def rows(self) -> list[tuple[object, ...]]:
        """Return for each process: memory at the end, MB/h, most open files, their growth in an hour, and starts."""
        rows: list[tuple[object, ...]] = []
        for name, runs in self.samples.items():
            last = list(runs.values())[-1][-1]
            files = max(sample.files for run in runs.values() for sample in run)
            rows.append((name, last.memory, self._slope(name, "memory"), files, self._slope(name, "files"), len(runs)))
        return rows

    def _slope(self, name: str, what: str) -> float:
        """Return the least-squares slope an hour, with an intercept of its own for each start; 0.0 without samples."""
        above = below = 0.0
        for run in self.samples[name].values():
            late = [sample for sample in run if sample.at - run[0].at > _WARM_UP]
            if len(late) < 2:
                continue
            mean_at = sum(sample.at for sample in late) / len(late)
            mean = sum(getattr(sample, what) for sample in late) / len(late)
            above += sum((sample.at - mean_at) * (getattr(sample, what) - mean) for sample in late)
            below += sum((sample.at - mean_at) ** 2 for sample in late)
        return 3600 * above / below if below else 0.0
