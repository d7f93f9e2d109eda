"""Rows of all tables as JSON lines that any database accepts, and back."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import date, time
from decimal import Decimal
from typing import Any
from uuid import UUID

from django.apps import apps as installed
from django.apps.registry import Apps
from django.core.exceptions import FieldDoesNotExist, ValidationError
from django.core.management.color import no_style
from django.db import connection
from django.db.models import Exists, Field, Model, OuterRef, QuerySet
from django.db.models.sql import InsertQuery

from cato_web.backups.errors import CorruptBackupError
from chat.models import Instruction
from memory.api import CachedEmbedding, DocumentVersion, EmbeddingJob, Exchange, Job, batched, erased_fields

_BATCH_SIZE = 500
Row = dict[str, Any]


@dataclass(frozen=True)
class _Rule:
    """Which rows of a table are written, and which of their values are replaced."""

    filter: Callable[[QuerySet[Any]], QuerySet[Any]] = lambda rows: rows
    overrides: Callable[[Row], Row] = field(default=lambda row: {})


def _of_remembered_exchanges(rows: QuerySet[Any]) -> QuerySet[Any]:
    return rows.filter(exchange__forgotten_at=None)


def _with_live_text(rows: QuerySet[Any]) -> QuerySet[Any]:
    return rows.filter(Exists(Exchange.objects.filter(content_hash=OuterRef("content_hash"), forgotten_at=None)))


def _not_forgotten(rows: QuerySet[Any]) -> QuerySet[Any]:
    exchanges = Exchange.objects.filter(id=OuterRef("turn__exchange_id"))
    return rows.filter(~Exists(exchanges.exclude(forgotten_at=None)))


def _without_forgotten_text(row: Row) -> Row:
    return erased_fields(row["user_message"], row["metadata"], row["content_hash"]) if row["forgotten_at"] else {}


# The search index is not backed up: every vector has to be indexed again after a restore.
_PENDING_INDEXING = {
    "state": Job.State.PENDING,
    "collection_id": None,
    "version": 0,
    "parts": 0,
    "attempt": 0,
    "locked_until": None,
    "failures": 0,
    "error": "",
}
_RULES: dict[type[Model], _Rule] = {
    # Forgotten exchanges have no text in a backup, even if they are not erased yet.
    Exchange: _Rule(overrides=_without_forgotten_text),
    EmbeddingJob: _Rule(_of_remembered_exchanges, lambda row: _PENDING_INDEXING),
    CachedEmbedding: _Rule(_with_live_text),
    Instruction: _Rule(_not_forgotten),
}
# Collections of the search index, login sessions, which a restore ends, exports, which are copies of other rows, and
# events: a restored installation begins another feed, so that a program that followed the former one is told to read
# everything again.
LEFT_OUT = {
    "memory.collection",
    "memory.placement",
    "memory.event",
    "memory.eventfeed",
    "people.exportjob",
    "people.loginsession",
}


def app_labels() -> list[str]:
    """Return the labels of Cato's own applications."""
    return [app.label for app in installed.get_app_configs() if not app.name.startswith("django")]


def tables(apps: Apps = installed) -> dict[str, type[Model]]:
    """Return all tables of these applications by name, including many-to-many tables."""
    labels = set(app_labels())
    return {
        model._meta.label_lower: model
        for model in apps.get_models(include_auto_created=True)
        if model._meta.app_label in labels and model._meta.managed and not model._meta.proxy
    }


def backed_up_tables() -> dict[str, type[Model]]:
    """Return the tables that a backup contains."""
    return {name: model for name, model in tables().items() if name not in LEFT_OUT}


def count(model: type[Model]) -> int:
    """Return how many lines `dump_table` yields."""
    return _select_rows(model).count()


def dump_table(model: type[Model]) -> Iterator[bytes]:
    """Yield the rows as JSON lines, read from the database in batches."""
    overrides = _rule(model).overrides
    for row in _select_rows(model).values(*_columns(model)).iterator(chunk_size=_BATCH_SIZE):
        line = json.dumps(row | overrides(row), ensure_ascii=False, separators=(",", ":"), default=_encode)
        yield line.encode(errors="surrogatepass") + b"\n"


def file_names(model: type[Model]) -> Iterator[str]:
    """Yield the names of the table's stored files, except those about to be deleted."""
    for column in model._meta.concrete_fields:
        if column.get_internal_type() == "FileField":
            rows = _select_rows(model).exclude(**{column.attname: ""})
            if model is DocumentVersion:
                rows = rows.exclude(stage=DocumentVersion.Stage.REMOVED)
            yield from rows.values_list(column.attname, flat=True).iterator(chunk_size=_BATCH_SIZE)


def load_table(model: type[Model], lines: Iterable[bytes], *, renamed: Mapping[str, str]) -> int:
    """Insert rows unchanged, with keys and dates; return their number. Raises CorruptBackupError.

    `renamed` maps columns of the backup to the model's where they differ.
    """
    loaded = 0
    for batch in batched(lines, _insert_batch_size(model)):
        objects = [_parse_row(model, line, renamed) for line in batch]
        query = InsertQuery(model)
        # Raw: without default dates and signals.
        query.insert_values(model._meta.concrete_fields, objects, raw=True)
        query.get_compiler(connection=connection).execute_sql(None)
        loaded += len(objects)
    return loaded


def delete_all_rows(models: Iterable[type[Model]]) -> None:
    """Delete all rows; foreign keys are only checked when the transaction ends."""
    for model in models:
        model._base_manager.all()._raw_delete(using=connection.alias)


def reset_sequences(models: Iterable[type[Model]]) -> None:
    """Continue the databases' sequences after the loaded keys."""
    with connection.cursor() as cursor:
        for statement in connection.ops.sequence_reset_sql(no_style(), list(models)):
            cursor.execute(statement)


def _rule(model: type[Model]) -> _Rule:
    return _RULES.get(model, _Rule())


def _select_rows(model: type[Model]) -> QuerySet[Any]:
    return _rule(model).filter(model._base_manager.order_by("pk"))


def _columns(model: type[Model]) -> list[str]:
    return [field.attname for field in model._meta.concrete_fields]


def _column(model: type[Model], name: str) -> Field[Any, Any]:
    field = model._meta.get_field(name)
    if not isinstance(field, Field):
        raise FieldDoesNotExist(name)
    return field


def _insert_batch_size(model: type[Model]) -> int:
    fields = model._meta.concrete_fields
    return min(_BATCH_SIZE, connection.ops.bulk_batch_size(fields, range(_BATCH_SIZE)))


def _parse_row(model: type[Model], line: bytes, renamed: Mapping[str, str]) -> Model:
    try:
        row = {renamed.get(name, name): value for name, value in json.loads(line).items()}
        return model(**{name: _column(model, name).to_python(value) for name, value in row.items()})
    except (ValueError, TypeError, AttributeError, FieldDoesNotExist, ValidationError) as error:
        raise CorruptBackupError(f"a row of {model._meta.label_lower} cannot be read") from error


def _encode(value: object) -> str:
    if isinstance(value, date | time):
        return value.isoformat()
    if isinstance(value, bytes | memoryview):
        return base64.b64encode(value).decode()
    if isinstance(value, UUID | Decimal):
        return str(value)
    raise TypeError(f"{type(value)} cannot be backed up.")
