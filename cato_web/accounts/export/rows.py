"""Fields of the rows in a user's archive."""

from __future__ import annotations

import numpy as np

from cato_web.accounts import login_sessions
from cato_web.accounts.models import AuditEntry, AuthenticatorApp, User
from cato_web.webhooks.registration import list_webhooks
from chat.models import Digest, ImportJob, Instruction, Receipt, SavedPrompt, Turn, UsageDay
from memory import api as memory
from memory.api import (
    Document,
    DocumentVersion,
    Exchange,
    Feedback,
    Membership,
    Record,
    Reveal,
    Statement,
    Supersession,
    Support,
)


def account(person: User) -> dict[str, object]:
    """Return the account with its memberships, what it signs in with, API tokens, webhooks and digest."""
    names = ("name", "email", "role", "joined_at", "last_login", "theme", "density", "context_mode", "default_model")
    active_sessions = login_sessions.active_sessions(person).values("browser", "since", "last_seen_at")
    identities = person.identities.order_by("id").values("issuer", "subject", "since")
    passkeys = person.passkeys.values("name", "added_at", "used_at")
    apps = AuthenticatorApp.objects.filter(person=person).values("added_at", "used_at")
    memberships = Membership.objects.filter(person=person).order_by("space__name").values("space__name", "role")
    tokens = person.api_tokens.values("name", "scopes", "prefix", "created_at", "used_at", "expires_at")
    webhooks = list_webhooks(person).values("address", "kinds", "created_at", "delivered_at")
    digest = Digest.objects.filter(person=person).values(
        "state", "at", "time_zone", "weekday", "space_ids", "due_at", "posted_at"
    )
    fields = {name: getattr(person, name) for name in (*names, "is_notified", "detects_instructions", "shows_presence")}
    lists = {
        "login_sessions": active_sessions,
        "identities": identities,
        "passkeys": passkeys,
        "authenticator_app": apps,
        "memberships": memberships,
        "tokens": tokens,
        "webhooks": webhooks,
        "digest": digest,
    }
    return fields | {name: list(rows) for name, rows in lists.items()}


def of_turn(turn: Turn) -> dict[str, object]:
    """Return the fields of a turn."""
    names = ("id", "thread_id", "message", "answer", "reasoning", "state", "model", "created_at", "completed_at")
    return {name: getattr(turn, name) for name in names}


def of_exchange(exchange: Exchange) -> dict[str, object]:
    """Return the fields of an exchange."""
    names = (
        "id", "thread_id", "session_id", "previous_id", "turn_id", "thread_continuation_seq", "user_message",
        "assistant_message", "timestamp", "created_at", "prior_exchange_ids", "source", "manual_entry", "source_file",
        "chunk_index", "total_chunks", "metadata", "size", "version",
    )  # fmt: skip
    space = exchange.space.display_name
    return {name: getattr(exchange, name) for name in names} | {"space": space}


def of_record(record: Record) -> dict[str, object]:
    """Return the fields of a record: its exchange, the id by which its program knows it, and its own vector, if any."""
    vector = None if record.vector is None else np.frombuffer(bytes(record.vector), dtype="<f4").tolist()
    return of_exchange(record.exchange) | {"record": record.name, "vector": vector}


def of_statement(statement: Statement, person: User) -> dict[str, object]:
    """Return the fields of a statement; what others said or decided is only told by its id and date."""
    names = ("kind", "topic", "state", "state_since", "first_said_at", "last_said_at", "confirmed_at")
    return {
        "id": statement.pk,
        "text": statement.exchange.user_message,
        **{name: getattr(statement, name) for name in names},
        "is_decided_by_person": statement.state_set_by_id == person.pk,
        "is_confirmed_by_person": statement.confirmed_by_id == person.pk,
        "superseded_by": statement.superseded_by_id,
        "contradicts": [other.pk for other in memory.conflicts_of([statement])[statement.pk]],
        "space": statement.exchange.space.display_name,
        "sources": [_source(support, person) for support in statement.supports.all()],
    }


def _source(support: Support, person: User) -> dict[str, object]:
    exchange = support.exchange
    is_own = person.pk in (exchange.owner_id, exchange.space.owner_id)
    fields: dict[str, object] = {"exchange_id": exchange.pk, "turn_id": exchange.turn_id}
    fields["quote"] = support.quote if is_own else None
    for chunk in exchange.chunks.all():
        if chunk.version_id == chunk.version.document.live_version_id:
            fields |= {"document_id": chunk.version.document_id, "chunk_index": chunk.index}
    return fields


def of_document(document: Document) -> dict[str, object]:
    """Return the fields of a document."""
    return {name: getattr(document, name) for name in ("id", "name", "source", "metadata", "created_at")}


def of_version(version: DocumentVersion) -> dict[str, object]:
    """Return the fields of a document version."""
    names = ("number", "stage", "size", "sha256", "kind", "title", "created_at", "ready_at", "total_chunks")
    return {name: getattr(version, name) for name in names}


def of_opinion(opinion: Feedback) -> dict[str, object]:
    """Return the fields of feedback."""
    turn_id = opinion.exchange.turn_id
    return {"exchange_id": opinion.exchange_id, "turn_id": turn_id, "opinion": opinion.kind, "at": opinion.at}


def of_instruction(instruction: Instruction) -> dict[str, object]:
    """Return the fields of a standing instruction."""
    names = ("id", "text", "state", "turn_id", "created_at", "edited_at", "off_at")
    return {name: getattr(instruction, name) for name in names} | {"space": instruction.space.display_name}


def of_prompt(prompt: SavedPrompt) -> dict[str, object]:
    """Return the fields of a saved prompt."""
    names = ("id", "name", "text", "created_at", "edited_at")
    return {name: getattr(prompt, name) for name in names} | {"space": prompt.space.display_name}


def of_supersession(decision: Supersession) -> dict[str, object]:
    """Return the fields of a decision about two messages on one subject."""
    names = ("later_id", "earlier_id", "is_confirmed", "at")
    turn_ids = {"later_turn_id": decision.later.turn_id, "earlier_turn_id": decision.earlier.turn_id}
    return {name: getattr(decision, name) for name in names} | turn_ids


def of_receipt(receipt: Receipt) -> dict[str, object]:
    """Return the fields of a receipt."""
    names = ("id", "created_at", "turn_id", "exchange_ids", "passages", "citations")
    return {name: getattr(receipt, name) for name in names}


def of_import(row: ImportJob) -> dict[str, object]:
    """Return the fields of an import job."""
    names = (
        "id", "name", "created_at", "finished_at", "cancelled_at", "found", "imported", "already_there", "turns",
        "skipped_count", "skipped", "left_out", "not_imported",
    )  # fmt: skip
    return {name: getattr(row, name) for name in names}


def of_reveal(reveal: Reveal) -> dict[str, object]:
    """Return the fields of a reveal."""
    return {"by": reveal.by.name, "reason": reveal.reason, "at": reveal.at, "ends_at": reveal.ends_at}


def of_usage(row: UsageDay) -> dict[str, object]:
    """Return the fields of the usage of a day."""
    names = (
        "date", "purpose", "model", "space_id", "api_token_id", "requests", "prompt_tokens", "cached_tokens",
        "completion_tokens", "estimated_tokens", "unpriced_tokens", "cost",
    )  # fmt: skip
    return {name: getattr(row, name) for name in names}


def of_audit(entry: AuditEntry) -> dict[str, object]:
    """Return the fields of an audit entry."""
    return {"at": entry.at, "action": entry.action, "target": entry.target, "token_id": entry.token_id}
