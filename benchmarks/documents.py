"""Documents: time until a file can be found and memory use, compared with a loop of the bare libraries.

    python -m benchmarks.documents [--large]

For a text of 1 MB, a PDF of 300 pages and with --large a text of 10 MB: seconds from the upload until the document is
live, peak memory of the worker with its extractor, and the delay until a note stored meanwhile can be found. The bare
loop, in the same run: the extraction library, the same chunks, the same model on one thread as in the worker,
`collection.add`. Then the gaps between the frames of a stream, without an upload and while a text of 0.4 MB is
processed.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
import time
from pathlib import Path

import psutil

from benchmarks.bench import processes, workbench
from benchmarks.command_line import command_parser
from benchmarks.figures import percentile, table
from benchmarks.load import StreamEndpoint
from benchmarks.streams import with_cato
from tests import files
from tests.server import Cato, Client, running, wait_for

SENTENCE = "The crew of station {n} checks the mooring, the battery and the antenna before day {day} of the month. "
_TIMEOUT = 1800


def text_of(megabytes: float) -> bytes:
    """Return paragraphs of plain English, all different."""
    size = 0
    paragraphs: list[str] = []
    while size < megabytes * 1_000_000:
        n = len(paragraphs)
        paragraphs.append("".join(SENTENCE.format(n=n, day=(n + k) % 28 + 1) for k in range(5)))
        size += len(paragraphs[-1]) + 2
    return "\n\n".join(paragraphs).encode()


class Peak:
    """Records the maximum memory (MB, proportional set size) of a process and its children."""

    def __init__(self, process: psutil.Process) -> None:
        self.megabytes = 0.0
        self._process, self._over = process, threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> Peak:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._over.wait(0.2):
            self.megabytes = max(self.megabytes, sum(_pss(process) for process in self._process_tree()) / 1e6)

    def _process_tree(self) -> list[psutil.Process]:
        try:
            return [self._process, *self._process.children(recursive=True)]
        except psutil.Error:
            return []


def _pss(process: psutil.Process) -> float:
    try:
        return float(process.memory_full_info().pss)
    except psutil.Error:  # an extractor that has just ended
        return 0.0


def upload(cato: Cato, person: Client, name: str, data: bytes) -> str:
    """Upload a file; return its document's id."""
    headers = {"X-CSRFToken": person.http.cookies.get("cato_csrf") or "", "Referer": person.url}
    answer = person.http.post("/documents", files={"files": (name, data)}, headers=headers, timeout=60)
    assert answer.status_code == 302, answer.status_code
    found = cato.sql("SELECT id FROM memory_document WHERE name = ?", name)
    return str(found[0][0])


def is_live(cato: Cato, document: str) -> bool:
    (stage,) = cato.sql(
        "SELECT stage FROM memory_documentversion WHERE document_id = ? ORDER BY number DESC LIMIT 1", document
    )[0]
    assert stage not in ("failed", "cancelled"), stage
    return bool(stage == "ready")


def measure_cato(cato: Cato, person: Client, name: str, data: bytes) -> tuple[float, float, float]:
    """Return seconds until the file is live, the worker's peak in MB, and the longest delay of a note stored meanwhile."""
    waits: list[float] = []
    with Peak(processes(cato)["worker"]) as peak:
        started = time.perf_counter()
        document = upload(cato, person, name, data)
        while not is_live(cato, document):
            if time.perf_counter() - started > _TIMEOUT:
                raise TimeoutError(name)
            waits.append(_time_until_embedded(cato, person, len(waits)))
        took = time.perf_counter() - started
    return took, peak.megabytes, max(waits, default=0.0)


def _time_until_embedded(cato: Cato, person: Client, number: int) -> float:
    """Store a note and wait until it is in the index."""
    note = f"Note {number} at {time.time()}"
    started = time.perf_counter()
    person.post("/", {"message": f'/vadd "{note}"', "client_key": "6a1f2f54-65f5-4d4c-9f66-0f3f3b3f6a10"})
    query = "SELECT e.state FROM memory_embeddingjob e JOIN memory_exchange x ON x.id = e.exchange_id WHERE x.user_message = ?"
    wait_for(lambda: cato.sql(query, note) == [("done",)], "the note to be embedded", 120)
    return time.perf_counter() - started


BARE = """
import sys, time, resource
from io import BytesIO
begun = time.perf_counter()
data = open(sys.argv[1], "rb").read()
if data.startswith(b"%PDF"):
    import pypdf
    text = "\\n".join(page.extract_text() for page in pypdf.PdfReader(BytesIO(data)).pages)
else:
    text = data.decode()
import django, os
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "cato_web.settings")
django.setup()
from memory.documents.chunking import split
from memory.embeddings.local import LocalEmbedder
import chromadb, uuid
pieces = [text[s.start:s.end] for s in split(text, strategy="semantic", chunk_size=600, chunk_overlap=0,
          max_chunk_size=1250, preserve_sentence_boundaries=True)]
model = LocalEmbedder("multilingual-e5-small", threads=1)
collection = chromadb.HttpClient(host="127.0.0.1", port=int(sys.argv[2])).create_collection(uuid.uuid4().hex)
for at in range(0, len(pieces), 64):
    some = pieces[at:at + 64]
    collection.add(ids=[f"{at + i}" for i in range(len(some))], embeddings=model.embed_documents(some))
print(len(pieces), time.perf_counter() - begun, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000)
"""


def with_bare_libraries(cato: Cato, folder: Path, data: bytes) -> tuple[int, float, float]:
    """Return chunks, seconds and peak MB of a loop that only extracts, splits, embeds and adds."""
    path = folder / "bare"
    path.write_bytes(data)
    port = _chroma_port(cato)
    result = subprocess.run(
        [sys.executable, "-c", BARE, str(path), port], env=cato.environment, capture_output=True, text=True, check=True
    )
    chunks, seconds, peak = result.stdout.split()
    return int(chunks), float(seconds), float(peak)


def _chroma_port(cato: Cato) -> str:
    return str(processes(cato)["chroma"].environ()["CHROMA_PORT"])


def main() -> None:
    parser = command_parser("documents", __doc__)
    parser.add_argument("--large", action="store_true", help="a text of 10 MB as well, which takes long")
    options = parser.parse_args()
    inputs = {"text, 1 MB": ("one.txt", text_of(1)), "PDF, 300 pages": ("pages.pdf", files.pdf(_pages(300)))}
    if options.large:
        inputs["text, 10 MB"] = ("ten.txt", text_of(10))
    rows, gaps = [], []
    endpoint = StreamEndpoint(tokens=30 * 40, rate=30)
    with (
        workbench() as home,
        running(home / "cato", **endpoint.environment) as cato,
    ):
        person = cato.set_up()
        for label, (name, data) in inputs.items():
            chunks, bare, bare_peak = with_bare_libraries(cato, home, data)
            took, peak, wait = measure_cato(cato, person, name, data)
            rows.append((label, chunks, took, bare, took / bare, peak, bare_peak, wait))
        for label, busy in (("alone", False), ("during an upload", True)):
            if busy:
                upload(cato, person, "during.txt", text_of(0.4) + b"\n\nDuring a stream.")
            measurement = asyncio.run(with_cato(cato, person, endpoint, 1, 30))
            gaps.append((label, *(1000 * percentile(measurement.gaps, share) for share in (0.5, 0.95, 0.99, 1))))
    table(
        ("file", "passages", "Cato, s", "bare, s", "ratio", "worker's peak, MB", "bare peak, MB", "a note waits, s"),
        rows,
    )
    table(("stream", "gap p50, ms", "gap p95, ms", "gap p99, ms", "longest, ms"), gaps)


def _pages(count: int) -> list[str]:
    return [
        f"Page {n}. " + " ".join(SENTENCE.format(n=n * 10 + k, day=(n + k) % 28 + 1) for k in range(18))
        for n in range(1, count + 1)
    ]


if __name__ == "__main__":
    main()
