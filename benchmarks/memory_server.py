"""Memory behind the HTTP protocol of retrieval benchmarks.

    python -m benchmarks.memory_server [--port 8765] [--strategy hybrid] [--statements] [--instructions]

Three calls, all POST with JSON bodies, on loopback only: `/memeval/reset` {store}, `/memeval/documents` {store,
documents}, `/memeval/query` {store, query, k, now}. A store is a space, a document an exchange: it goes through
`remember_many` and `index_pending` into SQL and a real Chroma server, and is found by the strategy that the chat uses,
without its gate. With --statements, one is extracted from the first sentence of each message (`benchmarks/knowledge.py`), and
counts as its sources where it is found.

With --instructions, the standing instructions that were recognised in a store of one conversation come first, as in a prompt.
They take places that a prompt gives to passages as well, so other questions find less. In a store of several conversations
nobody knows who asks, and between two people who are named nobody instructs an assistant.
Nothing here depends on the benchmark's content.
"""

from __future__ import annotations

import json
import uuid
from collections import defaultdict
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import TYPE_CHECKING, Any, ClassVar

from benchmarks.command_line import command_parser
from benchmarks.knowledge import ExtractiveModel, extract_all
from benchmarks.temporary_store import temporary_store

if TYPE_CHECKING:
    from cato_web.accounts.models import User
    from chat.instructions.applying import AppliedInstruction
    from memory.models import Space

_NAMESPACE = uuid.UUID("6f1d3a52-1f0a-4c6e-9a53-0c2b6d3d7a10")


class Stores:
    """The stores of one run and the mapping between exchanges and documents."""

    def __init__(self, person: User, strategy: str, *, has_statements: bool, has_instructions: bool) -> None:
        self._person, self._strategy = person, strategy
        self._has_statements, self._has_instructions = has_statements, has_instructions
        self._spaces: dict[str, Space] = {}
        self._documents: dict[uuid.UUID, str] = {}
        self._conversations: dict[str, set[str]] = {}
        self._instructions: dict[str, list[AppliedInstruction]] = {}

    def reset(self, name: str) -> dict[str, Any]:
        """Delete the store's content."""
        from memory import api
        from memory.models import Exchange, Space

        if name in self._spaces:
            exchanges = Exchange.objects.filter(space=self._spaces[name], forgotten_at=None)
            api.forget(list(exchanges.values_list("id", flat=True)), by=self._person.pk)
            while api.erase_forgotten():
                pass
        self._spaces[name] = Space.objects.create(kind=Space.Kind.GROUP, name=name)
        self._conversations[name], self._instructions[name] = set(), []
        return {}

    def add(self, name: str, documents: list[dict[str, Any]]) -> dict[str, Any]:
        """Remember the documents and index them."""
        from memory import api

        texts = [_both_messages(document) for document in documents]
        stored = api.remember_many(
            [
                api.NewExchange(
                    space=self._spaces[name],
                    owner_id=self._person.pk,
                    source="import",
                    timestamp=_time(document["time"]),
                    thread_id=uuid.uuid5(_NAMESPACE, f"{name} {document['conversation']}"),
                    session_id=uuid.uuid5(_NAMESPACE, f"{name} {document['conversation']} {document['session']}"),
                    user_message=message,
                    assistant_message=answer,
                )
                for document, (message, answer) in zip(documents, texts, strict=True)
            ]
        )
        pairs = list(zip(stored, documents, strict=True))
        self._documents |= {row.id: document["id"] for row, document in pairs}
        api.index_pending()
        if self._has_statements:
            extract_all(self._spaces[name], ExtractiveModel())
            api.index_pending(limit=1_000_000)
        self._conversations[name] |= {document["conversation"] for document in documents}
        if self._has_instructions and len(self._conversations[name]) == 1:
            is_said = [message == document["user"] for document, (message, _) in zip(documents, texts, strict=True)]
            said = {row.id: document["user"] for (row, document), is_one in zip(pairs, is_said, strict=True) if is_one}
            self._recognise(name, said)
        return {"stored": len(stored)}

    def _recognise(self, name: str, messages: dict[uuid.UUID, str]) -> None:
        """Keep the standing instructions in these messages, by the ids of their exchanges."""
        from chat.instructions.applying import AppliedInstruction
        from memory import api
        from memory.models import Exchange

        space_id = self._spaces[name].pk
        dates = dict(Exchange.objects.filter(id__in=messages).values_list("id", "timestamp"))
        for id, message in messages.items():
            spaces = frozenset({space_id})
            instruction = api.recall([message], spaces=spaces, keep_query=False, detect_instruction=True).instruction
            if instruction is not None and instruction.is_certain:
                self._instructions[name].append(AppliedInstruction(id, space_id, instruction.text, dates[id]))

    def search(self, name: str, query: str, k: int, now: str | None) -> dict[str, Any]:
        """Return the ids of the best documents with their scores."""
        from chat.instructions.applying import choose
        from memory.retrieval.search import rank

        ranking = rank(
            query,
            spaces=frozenset({self._spaces[name].pk}),
            limit=2 * k if self._has_statements else k,
            now=_time(now) or datetime.now(UTC),
            strategy_name=self._strategy,
        )
        is_of_one_person = len(self._conversations[name]) == 1
        standing = choose(self._instructions[name], space_id=self._spaces[name].pk) if is_of_one_person else ()
        first = [instruction.id for instruction in standing]
        found = _with_sources([hit.exchange.id for hit in ranking.results])
        others = [id for id in found if id not in first and id in self._documents]
        return {"ids": [self._documents[id] for id in [*first, *others][:k]]}


def _with_sources(ids: list[uuid.UUID]) -> list[uuid.UUID]:
    """Return the ids without repetitions, each statement followed by its sources."""
    from memory.models import Support

    sources: dict[uuid.UUID, list[uuid.UUID]] = defaultdict(list)
    for statement_id, exchange_id in Support.objects.filter(statement_id__in=ids).values_list(
        "statement_id", "exchange_id"
    ):
        sources[statement_id].append(exchange_id)
    return list(dict.fromkeys(shown for id in ids for shown in (id, *sources[id])))


def _time(text: str | None) -> datetime | None:
    return datetime.fromisoformat(text).replace(tzinfo=UTC) if text else None


def _both_messages(document: dict[str, Any]) -> tuple[str, str]:
    """Return the message and its answer, prefixed by the speaker's name if known, as in imports."""
    user, assistant, text = document["user"], document["assistant"], document["text"]
    if not user:
        return text, ""
    head = text.find(user)
    label = text[:head] if 0 <= head <= 40 else ""
    between = text[head + len(user) :].removesuffix(assistant).lstrip("\n") if assistant else ""
    message = ("" if label == "User: " else label) + user
    return message, ("" if between == "Assistant: " or len(between) > 40 else between) + assistant


class Handler(BaseHTTPRequestHandler):
    """Passes requests to the stores."""

    stores: ClassVar[Stores]

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        calls = {
            "/memeval/reset": lambda: self.stores.reset(body["store"]),
            "/memeval/documents": lambda: self.stores.add(body["store"], body["documents"]),
            "/memeval/query": lambda: self.stores.search(body["store"], body["query"], body["k"], body["now"]),
        }
        found = self.path in calls
        answer = json.dumps(calls[self.path]() if found else {}).encode()
        self.send_response(200 if found else 404)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, format: str, *args: object) -> None:
        """Log nothing: a run makes thousands of calls."""


def main() -> None:
    parser = command_parser("memory_server", __doc__)
    parser.add_argument("--port", type=int, default=8765)
    parser.add_argument("--strategy", default="hybrid")
    parser.add_argument("--statements", action="store_true")
    parser.add_argument("--instructions", action="store_true")
    options = parser.parse_args()
    with temporary_store() as person:
        Handler.stores = Stores(
            person, options.strategy, has_statements=options.statements, has_instructions=options.instructions
        )
        server = HTTPServer(("127.0.0.1", options.port), Handler)
        print(f"http://127.0.0.1:{options.port}/memeval", flush=True)
        server.serve_forever()


if __name__ == "__main__":
    main()
