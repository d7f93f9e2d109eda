"""The margin of a realistic history: most of what it shows is used, and what is asked is found."""

from __future__ import annotations

import re
import uuid

from tests.groups import make_group
from tests.server import wait_for
from tests.team_history import ALICE, HISTORY

MAX_UNCITED = 10  # answers of the fifty that show something recalled although none of it is cited


def test_few_answers_of_a_team_show_something_that_they_do_not_cite(cato, administrator, alice, bob, endpoint):
    group, threads = make_group(cato, administrator, alice, bob), {}
    uncited, missed = [], []
    for message in HISTORY:
        endpoint.script("cato", answer=message.answer, cites=message.key)
        author = alice if message.author == ALICE else bob
        sent = {"message": message.text, "client_key": str(uuid.uuid4()), "space": group}
        response = author.post(f"/t/{threads[message.thread]}/messages" if message.thread in threads else "/", sent)
        thread = threads.setdefault(message.thread, re.search(r"/t/([^/#]+)", response.headers["location"])[1])
        wait_for(lambda: _is_remembered(cato, thread), "the exchange to be indexed")  # noqa: B023
        turn = author.thread_page(thread).rsplit(' data-turn="', 1)[-1].split("</article>")[0]
        if "none cited" in turn:
            uncited.append(message.text)
        if message.key and not re.search(r'data-cited="\d', turn):
            missed.append(message.text)

    assert len(uncited) <= MAX_UNCITED, uncited
    assert missed == []


def _is_remembered(cato, thread: str) -> bool:
    """Return whether every turn of the thread is complete and its exchange is indexed."""
    ((waiting,),) = cato.sql(
        "SELECT count(*) FROM chat_turn LEFT JOIN memory_embeddingjob job"
        " ON job.exchange_id = chat_turn.exchange_id AND job.state <> 'done'"
        " WHERE thread_id = ? AND (chat_turn.state <> 'complete' OR job.id IS NOT NULL)",
        uuid.UUID(thread).hex,
    )
    return not waiting
