"""Import statements of an export of Cato, if all their sources were imported and say what they say.

A file can be forged, so a statement is checked like one that a model wrote; its dates are those of its sources.
"""

from __future__ import annotations

import uuid
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field

from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _
from pydantic import ValidationError

from chat.imports.formats.archive import ArchivedExchange, ArchivedStatement
from chat.knowledge.prompt import read_sources
from chat.knowledge.reply import Draft, Quotation, Reply, check_reply
from memory import api as memory
from memory.api import Exchange, InvalidInputError, NewStatement, Space, Statement


@dataclass(slots=True)
class StatementImport:
    """The statements of one export. `find` returns the exchange that was imported for one of the export."""

    space: Space
    person_id: uuid.UUID
    find: Callable[[ArchivedExchange], Exchange | None]
    _present: dict[str, tuple[ArchivedStatement, uuid.UUID]] = field(default_factory=dict)
    # The statements that name another one, by the exported id of that one.
    _naming: dict[str, list[ArchivedStatement]] = field(default_factory=lambda: defaultdict(list))

    def add(self, part: ArchivedStatement) -> bool | None:
        """Import a statement; return whether it is new, None if it was forgotten. Raises CatoError."""
        id = uuid.uuid5(self.person_id, f"Cato/statement/{part.id}")
        known = self._find_known(id, part)
        if known is not None:
            if known.forgotten_at:
                return None
            # A file must not relate statements that other people read to those of this person.
            if known.space_id == self.space.pk:
                self._note(part, known.pk)
            return False
        new = self._checked(id, part)
        with transaction.atomic():
            added = memory.add_statements(self.space, [new], read=new.supports)
            if not added:
                return False
            self._restore(part, added[0])
            self._note(part, id)
            self._relate(part)
        return True

    def _find_known(self, id: uuid.UUID, part: ArchivedStatement) -> Exchange | None:
        ids = filter(None, (id, memory.parse_uuid(part.id)))
        rows = Exchange.objects.filter(pk__in=ids, source=Exchange.Source.KNOWLEDGE)
        return memory.in_spaces(rows, memory.readable_space_ids(self.person_id)).first()

    def _note(self, part: ArchivedStatement, id: uuid.UUID) -> None:
        self._present[part.id] = part, id
        for name in (part.successor, *part.conflicts):
            self._naming[name].append(part)

    def _checked(self, id: uuid.UUID, part: ArchivedStatement) -> NewStatement:
        """Return the statement as it is stored. Raises InvalidInputError, and EmbeddingError."""
        exchanges: list[Exchange] = []
        for named, _quote in part.sources:
            found = self.find(named)
            if found is None:
                sentence = _(
                    "Not all of its sources are here. Passages of documents are here once the documents have been read."
                )
                raise InvalidInputError(sentence)
            exchanges.append(found)
        quotations = [Quotation(number=number, quote=quote) for number, (_named, quote) in enumerate(part.sources, 1)]
        try:
            fields = {"text": part.title, "kind": part.kind, "topic": part.topic, "sources": quotations}
            draft = Draft.model_validate(fields)
        except ValidationError as error:
            raise InvalidInputError(_("It is not a statement.")) from error
        written_at = max((exchange.timestamp for exchange in exchanges), default=timezone.now())
        checked = check_reply(
            Reply([draft], []), read_sources(exchanges), [], [], space=self.space, written_at=written_at
        )
        if not checked.statements:
            raise InvalidInputError(_("Its sources do not say it."))
        new = checked.statements[0].new
        return NewStatement(id=id, text=new.text, kind=new.kind, topic=new.topic, supports=new.supports)

    def _restore(self, part: ArchivedStatement, statement: Statement) -> None:
        by = self.person_id if part.was_decided else None
        if part.state in Statement.State.values:
            since = part.state_since or timezone.now()
            memory.restore_state(statement, Statement.State(part.state), since=since, by=by)
        if part.was_confirmed and part.confirmed_at:
            memory.restore_confirmation(statement, at=part.confirmed_at, by=self.person_id)

    def _relate(self, part: ArchivedStatement) -> None:
        """Restore the relations of a new statement to the others that are there already."""
        others = [self._present[name][0] for name in (part.successor, *part.conflicts) if name in self._present]
        for other in (*others, *self._naming[part.id]):
            for one, named in ((part, other), (other, part)):
                ids = self._present[one.id][1], self._present[named.id][1]
                if one.successor == named.id:
                    memory.restore_successor(*ids)
                if named.id in one.conflicts:
                    memory.restore_conflict(*ids, since=part.state_since or timezone.now())
