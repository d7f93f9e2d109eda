"""Sources that say word for word what an earlier one said: they support its statements without the model.

Similar words are not enough. "Tom moved from Rome to Berlin" and its reverse have the same names and a cosine of .999.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from chat.knowledge.prompt import Source
from memory import api as memory
from memory.api import NewSupport, Statement, Support


def find_repetitions(
    sources: Sequence[Source], known: Sequence[Statement]
) -> tuple[list[tuple[Statement, NewSupport]], list[Source]]:
    """Return the statements among `known` with the sources that repeat them, and the sources that the model has to read.

    It has to read a repetition, too, if any statement of the earlier source is not current, since things may be again as
    they were, or if a date in it does not follow from the later source.
    """
    earlier = Support.objects.filter(statement__in=known).values("exchange_id")
    rows = Support.objects.filter(exchange_id__in=earlier).select_related("statement__exchange", "exchange")
    by_text: dict[str, list[Support]] = defaultdict(list)
    for support in rows.order_by("pk"):
        by_text[_words(support.exchange.user_message)].append(support)
    log_probabilities = memory.get_embedder().log_probabilities
    found: list[tuple[Statement, NewSupport]] = []
    rest: list[Source] = []
    for source in sources:
        supports = {support.statement_id: support for support in by_text[_words(source.exchange.user_message)]}
        is_repetition = bool(supports) and all(
            support.statement.state == Statement.State.CURRENT
            and support.quote in source.exchange.user_message
            and not memory.unsupported_part(
                support.statement.exchange.user_message,
                [source.message_text],
                log_probabilities,
                written_at=support.statement.exchange.created_at,
            )
            for support in supports.values()
        )
        if is_repetition:
            exchange = source.exchange
            new = [(row.statement, NewSupport(exchange.pk, row.quote, exchange.version)) for row in supports.values()]
            found += new
        else:
            rest.append(source)
    return found, rest


def _words(text: str) -> str:
    return " ".join(text.split())
