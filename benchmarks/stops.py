"""Delay of Stop: from pressing it to the frame that confirms it, at seeded moments, by socket.

python -m benchmarks.stops [--stops 50] [--seed 1]
"""

from __future__ import annotations

import random
import re
import sys
import time
from functools import partial

from benchmarks.bench import workbench
from benchmarks.command_line import command_parser
from benchmarks.figures import percentile, table
from tests.fake_endpoint import start
from tests.server import Client, running, wait_for
from tests.socket import open_socket


def _find_stop_button(person: Client, thread: str) -> re.Match[str] | None:
    return re.search(r'formaction="(/t/[^"]+/stop)"', person.thread_page(thread))


def measure(stops: int, seed: int) -> list[float]:
    """Return the seconds from each Stop to the frame of the stopped turn."""
    chance = random.Random(seed)
    took = []
    with workbench() as home, start() as endpoint:
        endpoint.script("stops", tokens=3000, token_delay=0.01)
        with running(
            home, OPENAI_BASE_URL=endpoint.openai_url, OPENAI_API_KEY="stops", CATO_CHAT_MESSAGES_PER_MINUTE="1000"
        ) as cato:
            ada = cato.set_up()
            for number in range(stops):
                thread = ada.send_message(f"Count as far as you can, {number}")
                with open_socket(ada, thread) as page:
                    page.hello()
                    found = wait_for(
                        partial(_find_stop_button, ada, thread),
                        "a Stop button",
                    )
                    time.sleep(chance.uniform(0, 0.5))
                    pressed = time.monotonic()
                    ada.post(found[1], htmx=True)
                    page.until(">Stopped<")
                    took.append(time.monotonic() - pressed)
    return took


def main() -> int:
    """Print the table; return 1 if a Stop took longer than a second."""
    parser = command_parser("stops", __doc__)
    parser.add_argument("--stops", type=int, default=50)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    took = [1000 * seconds for seconds in measure(options.stops, options.seed)]
    table(
        ("stops", "within a second", "median, ms", "p95, ms", "slowest, ms"),
        [(len(took), sum(t <= 1000 for t in took), percentile(took, 0.5), percentile(took, 0.95), max(took))],
    )
    return int(any(t > 1000 for t in took))


if __name__ == "__main__":
    sys.exit(main())
