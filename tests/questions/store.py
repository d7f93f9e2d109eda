"""Store the exchanges to which the questions refer."""

from __future__ import annotations

import uuid
from datetime import UTC, datetime

from memory import api
from memory.spaces import access
from tests.questions.work import EXCHANGES


def store_exchanges(person_id: uuid.UUID) -> dict[uuid.UUID, str]:
    """Remember and embed all exchanges in this person's personal space; return their keys by id."""
    personal_space = access.personal_space(person_id)
    sessions = {row.session: uuid.uuid4() for row in EXCHANGES}
    stored = api.remember_many(
        [
            api.NewExchange(
                space=personal_space,
                owner_id=person_id,
                user_message=row.user,
                assistant_message=row.assistant,
                source="import",
                timestamp=datetime.fromisoformat(row.timestamp).replace(tzinfo=UTC),
                thread_id=sessions[row.session],
                session_id=sessions[row.session],
            )
            for row in EXCHANGES
        ]
    )
    api.index_pending()
    return {exchange.id: row.key for exchange, row in zip(stored, EXCHANGES, strict=True)}
