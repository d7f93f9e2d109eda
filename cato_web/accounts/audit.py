"""Receivers that record signals of memory and chat in the audit log."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from typing import Any

from django.dispatch import receiver

from cato_web.accounts.models import AuditEntry
from chat import signals as chat
from memory.api import Operation, Reveal, Space, SpaceKnowledge, signals


@receiver(signals.exchanges_forgotten)
def note_forgetting(exchange_ids: list[uuid.UUID], by: uuid.UUID, by_itself: bool, **kwargs: Any) -> None:
    """Record forgotten exchanges, unless they were part of a larger action."""
    if by_itself:
        _note_each(AuditEntry.Action.EXCHANGE_FORGOTTEN, exchange_ids, by)


@receiver(signals.documents_deleted)
def note_deleted_documents(document_ids: list[uuid.UUID], by: uuid.UUID, **kwargs: Any) -> None:
    """Record deleted documents."""
    _note_each(AuditEntry.Action.DOCUMENT_DELETED, document_ids, by)


@receiver(signals.moved)
def note_move(by: uuid.UUID, to: Space, **kwargs: Any) -> None:
    """Record a moved thread or document."""
    for name, action in (
        ("thread_id", AuditEntry.Action.THREAD_MOVED),
        ("document_id", AuditEntry.Action.DOCUMENT_MOVED),
    ):
        if name in kwargs:
            _note(action, f"{kwargs[name]} to {to.pk}", by)


@receiver(signals.operation_created)
def note_operation(operation: Operation, **kwargs: Any) -> None:
    """Record a started operation."""
    _note(AuditEntry.Action.OPERATION_STARTED, f"{operation.kind} {operation.pk}", operation.created_by_id)


@receiver(signals.space_revealed)
def note_reveal(reveal: Reveal, **kwargs: Any) -> None:
    """Record a reveal and its reason."""
    until = f"{reveal.ends_at:%Y-%m-%d %H:%M} UTC"
    _note(AuditEntry.Action.SPACE_REVEALED, f"{reveal.space_id} until {until}: {reveal.reason}", reveal.by_id)


@receiver(signals.reveal_ended)
def note_end_of_reveal(reveal: Reveal, **kwargs: Any) -> None:
    """Record the end of a reveal."""
    _note(AuditEntry.Action.SPACE_REVEAL_ENDED, str(reveal.space_id), reveal.by_id)


@receiver(signals.project_created)
def note_project(by: uuid.UUID, project: Space, **kwargs: Any) -> None:
    """Record a new project."""
    _note(AuditEntry.Action.PROJECT_CREATED, f"{project.name} {project.id}", by)


@receiver(signals.retention_changed)
def note_retention(by: uuid.UUID, days: Mapping[str, int], **kwargs: Any) -> None:
    """Record changed retention rules."""
    rules = ", ".join(f"{source} {count} days" for source, count in sorted(days.items()))
    _note(AuditEntry.Action.RETENTION_CHANGED, rules or "everything is kept", by)


@receiver(signals.exchanges_exported)
def note_export_of_exchanges(by: uuid.UUID, count: int, **kwargs: Any) -> None:
    """Record an export of exchanges."""
    _note(AuditEntry.Action.EXCHANGES_EXPORTED, f"{count:,}", by)


@receiver(chat.exported)
def note_export(by: uuid.UUID, thread_id: uuid.UUID, kind: str, **kwargs: Any) -> None:
    """Record an export of a thread."""
    _note(AuditEntry.Action.THREAD_EXPORTED, f"{thread_id} as {kind}", by)


@receiver(chat.endpoint_set)
def note_endpoint(by: uuid.UUID, name: str = "", **kwargs: Any) -> None:
    """Record a change of a model endpoint; the first one has no name."""
    _note(AuditEntry.Action.SETTINGS_CHANGED, f"the model endpoint {name}".strip(), by)


@receiver(chat.embedding_policy_set)
def note_embedding_policy(by: uuid.UUID, **kwargs: Any) -> None:
    """Record a change of what the embedding provider may receive."""
    _note(AuditEntry.Action.SETTINGS_CHANGED, "the policy of the embedding provider", by)


@receiver(chat.tool_server_changed)
def note_tool_server(by: uuid.UUID, name: str, **kwargs: Any) -> None:
    """Record a change of a tool server."""
    _note(AuditEntry.Action.SETTINGS_CHANGED, f"the tool server {name}", by)


@receiver(chat.knowledge_set)
def note_knowledge(by: uuid.UUID, knowledge: SpaceKnowledge, **kwargs: Any) -> None:
    """Record a change of the extraction of statements from a space."""
    state = ("paused" if knowledge.is_paused else "on") if knowledge.is_on else "off"
    budget = f"{knowledge.daily_tokens:,} tokens a day"
    target = f"knowledge of {knowledge.space_id}: {state}, {budget}, {knowledge.model or 'default model'}"
    _note(AuditEntry.Action.SETTINGS_CHANGED, target, by)


def _note(action: str, target: str, by: uuid.UUID) -> None:
    AuditEntry.objects.create(actor_id=by, action=action, target=target[:200])


def _note_each(action: str, ids: list[uuid.UUID], by: uuid.UUID) -> None:
    AuditEntry.objects.bulk_create([AuditEntry(actor_id=by, action=action, target=str(id)) for id in ids])
