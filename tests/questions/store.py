"""A memory that holds the exchanges the questions are about."""

from __future__ import annotations

import uuid
from datetime import UTC, datetime

from memory import api
from memory.spaces import access
from tests.questions.work import EXCHANGES


def keep_work(person_id: int) -> dict[uuid.UUID, str]:
    """Remember and embed the exchanges of a small company's assistant in this person's own space.

    Returns the name that each has in the sets, by its id.
    """
    own = access.personal_space(person_id)
    sessions = {said.session: uuid.uuid4() for said in EXCHANGES}
    kept = api.remember_many(
        [
            api.NewExchange(
                space=own,
                owner_id=person_id,
                user_message=said.user,
                assistant_message=said.assistant,
                source="import",
                timestamp=datetime.fromisoformat(said.said).replace(tzinfo=UTC),
                thread_id=sessions[said.session],
                session_id=sessions[said.session],
            )
            for said in EXCHANGES
        ]
    )
    api.index_pending()
    return {row.id: said.key for row, said in zip(kept, EXCHANGES, strict=True)}
