"""Which rows belong to a person's archive, and a fingerprint that changes when one of them is forgotten."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import Exists, F, OuterRef, Q, QuerySet

from cato_web.accounts.models import User
from chat import access
from chat.models import Attachment, ImportJob, Instruction, SavedPrompt, Thread, Turn
from memory import api as memory
from memory.api import (
    Chunk,
    Document,
    DocumentVersion,
    Exchange,
    RecallLogEntry,
    SpaceIds,
    Statement,
    Support,
    iterate_by_pk,
)

_BATCH_SIZE = 5000


@dataclass(frozen=True, slots=True)
class Selection:
    """The rows of a person's archive in these spaces, as far as they existed at `until`."""

    person: User
    spaces: SpaceIds
    until: datetime

    def threads(self) -> QuerySet[Thread]:
        """Return the person's threads."""
        readable = memory.in_spaces(access.readable_threads(self.person.pk), self.spaces)
        return readable.filter(owner_id=self.person.pk, created_at__lte=self.until)

    def turns_of(self, thread: Thread) -> QuerySet[Turn]:
        """Return the person's turns of a thread, forgotten ones too; threads of shared spaces have turns of others."""
        turns: QuerySet[Turn] = thread.turns.filter(author_id=self.person.pk, created_at__lte=self.until)
        return turns

    def turns(self) -> QuerySet[Turn]:
        """Return the person's turns in all readable threads, without forgotten ones."""
        forgotten = Exchange.objects.exclude(forgotten_at=None)
        rows: QuerySet[Turn] = Turn.objects.filter(
            author_id=self.person.pk,
            created_at__lte=self.until,
            thread__in=memory.in_spaces(access.readable_threads(self.person.pk), self.spaces),
        )
        for effective_exchange_id in ("exchange_id", "copied_exchange_id"):
            rows = rows.filter(~Exists(forgotten.filter(pk=OuterRef(effective_exchange_id))))
        return rows

    def attachments(self) -> QuerySet[Attachment]:
        """Return the files that the person attached to these turns."""
        return Attachment.objects.filter(owner_id=self.person.pk, turns__in=self.turns()).distinct()

    def exchanges(self) -> QuerySet[Exchange]:
        """Return all exchanges of the personal space, and those of the person in others."""
        return self._remembered(Exchange.objects.findable()).filter(statement=None).select_related("space")

    def statements(self) -> QuerySet[Statement]:
        """Return the statements that rest on something of these, rejected ones too, with their sources."""
        is_shown = Q(exchange__in=Exchange.objects.findable())
        rows = self._known_statements().filter(is_shown | Q(state=Statement.State.REJECTED))
        sources = ("supports__exchange__space", "supports__exchange__chunks__version__document")
        return rows.select_related("exchange__space").prefetch_related(*sources)

    def documents(self) -> QuerySet[Document]:
        """Return the documents of the personal space, and those of the person in others."""
        condition = Q(space=memory.personal_space(self.person.pk)) | Q(owner_id=self.person.pk)
        rows = Document.objects.filter(condition, forgotten_at=None, created_at__lte=self.until)
        return memory.in_spaces(rows, self.spaces)

    def versions(self) -> QuerySet[DocumentVersion]:
        """Return the versions of these documents; in shared spaces only those that the person uploaded."""
        own = memory.personal_space(self.person.pk)
        return DocumentVersion.objects.present().filter(
            Q(document__space=own) | Q(uploaded_by_id=self.person.pk),
            document__in=self.documents(),
            created_at__lte=self.until,
        )

    def instructions(self) -> QuerySet[Instruction]:
        """Return the instructions in the personal space, and those that the person wrote for other spaces."""
        rows: QuerySet[Instruction] = Instruction.objects.present().filter(self._is_own_text())
        return memory.in_spaces(rows.select_related("space"), self.spaces)

    def prompts(self) -> QuerySet[SavedPrompt]:
        """Return the saved prompts in the personal space, and those that the person added to other spaces."""
        rows = SavedPrompt.objects.filter(self._is_own_text())
        return memory.in_spaces(rows.select_related("space"), self.spaces)

    def imports(self) -> QuerySet[ImportJob]:
        """Return the person's imports into these spaces; rows of imports have titles of conversations."""
        is_shown = Q(space_id__in=list(self.spaces))
        if memory.personal_space(self.person.pk).pk in self.spaces:
            is_shown |= Q(space=None, has_channel_projects=False)
        if memory.readable_space_ids(self.person.pk) <= self.spaces:
            is_shown |= Q(has_channel_projects=True)
        return ImportJob.objects.filter(is_shown, owner_id=self.person.pk)

    def fingerprint(self) -> str:
        """Return a hash of the ids of all these rows, and of the texts that can change while they keep their ids."""
        digest = hashlib.sha256()
        for rows in self._identities():
            for page in iterate_by_pk(rows, _BATCH_SIZE):
                digest.update(repr(page).encode())
            digest.update(b"\n")
        return digest.hexdigest()

    def _identities(self) -> Iterator[QuerySet[Any, Any]]:
        """Yield what identifies the rows, and the labels of the exchanges that the threads name as recalled."""
        yield self.threads().values_list("pk", "title")
        yield self.turns().values_list("pk")
        yield self.attachments().values_list("pk", "name")
        yield self._remembered(_present_exchanges()).values_list("pk", "content_hash")
        yield self._known_statements().values_list("pk", "exchange__content_hash")
        yield self.versions().values_list("pk", "document__name")
        yield self.instructions().values_list("pk", "edited_at")
        yield self.prompts().values_list("pk", "edited_at")
        turns = self.turns().filter(thread__owner_id=self.person.pk)
        entries = RecallLogEntry.objects.filter(turn_id__in=turns.values("id"), at__lte=self.until)
        recalled = memory.in_spaces(Exchange.objects.citable(), self.spaces).filter(
            pk__in=entries.values("exchange_id")
        )
        yield recalled.values_list("pk", "source_file")
        yield Thread.objects.filter(pk__in=recalled.values("thread_id")).values_list("pk", "title")

    def _remembered(self, rows: QuerySet[Exchange]) -> QuerySet[Exchange]:
        condition = Q(space=memory.personal_space(self.person.pk)) | Q(owner_id=self.person.pk)
        return memory.in_spaces(rows.filter(condition, created_at__lte=self.until), self.spaces)

    def _known_statements(self) -> QuerySet[Statement]:
        """Return the statements that rest on something of the person's exchanges, also while these are hidden."""
        sources = self._remembered(_present_exchanges())
        exchanges = Exchange.objects.filter(forgotten_at=None, created_at__lte=self.until)
        return Statement.objects.filter(
            exchange__in=memory.in_spaces(exchanges, self.spaces),
            pk__in=Support.objects.filter(exchange__in=sources).values("statement"),
        )

    def _is_own_text(self) -> Q:
        own = Q(space=memory.personal_space(self.person.pk)) | Q(author_id=self.person.pk)
        return own & Q(created_at__lte=self.until)


def _present_exchanges() -> QuerySet[Exchange]:
    """Return the exchanges that were not deleted, also by deleting or replacing what they are in.

    Not only findable ones: an exchange on another branch is not deleted. Those of deleted threads, and passages of deleted
    or replaced versions of documents, are forgotten by a worker later, which changes nothing in an archive.
    """
    deleted_thread = Thread.objects.filter(pk=OuterRef("thread_id")).exclude(deleted_at=None)
    passages = Chunk.objects.filter(exchange=OuterRef("pk"))
    live_passages = passages.filter(version__document__live_version=F("version"))
    return Exchange.objects.filter(
        ~Exists(deleted_thread), ~Exists(passages) | Exists(live_passages), forgotten_at=None
    )


def select_own(person: User, until: datetime) -> Selection:
    """Return what the person can read of their own now, as far as it existed at `until`."""
    return Selection(person, memory.readable_space_ids(person.pk), until)
