"""Memory of the worker while it embeds long messages: `python -m benchmarks.worker_memory [--messages 10000]`.

The embedded topology. The messages have 2,500 characters, are stored at once, and are embedded by the worker as always.
Prints its proportional set size, and its private part, every few minutes.
"""

from __future__ import annotations

import time

import psutil

from benchmarks.bench import processes, workbench
from benchmarks.command_line import command_parser
from benchmarks.figures import table
from benchmarks.footprint import run_in_process
from tests.server import running

INTERVAL = 5.0  # seconds between samples
ROWS = 10
MB = 1024 * 1024


def main() -> None:
    """Store the messages, sample until all are embedded, and print a table."""
    parser = command_parser("worker_memory", __doc__)
    parser.add_argument("--messages", type=int, default=10_000)
    messages = parser.parse_args().messages
    with workbench() as folder, running(folder / "cato") as cato:
        cato.set_up()
        run_in_process(cato, "post", str(messages))
        worker, highest = processes(cato)["worker"], 0.0
        rows: list[tuple[object, ...]] = []
        started = time.monotonic()
        waiting = messages
        while waiting:
            time.sleep(INTERVAL)
            size = memory_of(worker)
            highest = max(highest, size[0])
            waiting = int(run_in_process(cato, "waiting"))
            if messages - waiting >= len(rows) * messages / ROWS:
                rows.append((messages - waiting, time.monotonic() - started, *size, highest))
                print(rows[-1], flush=True)
    table(("embedded", "seconds", "PSS, MB", "private, MB", "highest PSS, MB"), rows)


def memory_of(process: psutil.Process) -> tuple[float, float]:
    """Return the proportional set size and the private memory of the process in MB."""
    memory = process.memory_full_info()
    return memory.pss / MB, memory.uss / MB


if __name__ == "__main__":
    main()
