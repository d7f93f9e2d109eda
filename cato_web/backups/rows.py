"""The rows of all tables as lines of JSON that any database takes, and back."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
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
from memory.api import EMPTY_TEXT, CachedEmbedding, DocumentVersion, Embedding, Exchange, Job, batched

_TOGETHER = 500
Row = dict[str, Any]


@dataclass(frozen=True)
class _Rule:
    """Which rows of a table are written, and what they say of themselves there."""

    which: Callable[[QuerySet[Any]], QuerySet[Any]] = lambda rows: rows
    said: Callable[[Row], Row] = field(default=lambda row: {})


def _of_living(rows: QuerySet[Any]) -> QuerySet[Any]:
    return rows.filter(exchange__forgotten_at=None)


def _still_said(rows: QuerySet[Any]) -> QuerySet[Any]:
    return rows.filter(Exists(Exchange.objects.filter(content_hash=OuterRef("content_hash"), forgotten_at=None)))


# The index stays behind: where it is restored every vector is still to be put into one.
_STILL_TO_BE_INDEXED = {
    "state": Job.State.PENDING,
    "index_id": None,
    "version": 0,
    "parts": 0,
    "attempt": 0,
    "locked_until": None,
    "failures": 0,
    "error": "",
}
_RULES: dict[type[Model], _Rule] = {
    # What was forgotten has no text here, even where a worker is not through with it.
    Exchange: _Rule(said=lambda row: EMPTY_TEXT if row["forgotten_at"] else {}),
    Embedding: _Rule(_of_living, lambda row: _STILL_TO_BE_INDEXED),
    CachedEmbedding: _Rule(_still_said),
}
# Where the collections of the old index are; and who is signed in, which ends with the move.
LEFT_OUT = {"memory.index", "people.signin"}


def names_of_apps() -> list[str]:
    """The applications whose tables hold what an installation keeps: all but Django's own."""
    return [app.label for app in installed.get_app_configs() if not app.name.startswith("django")]


def tables(apps: Apps = installed) -> dict[str, type[Model]]:
    """Every table of these applications by its name, those between two others too."""
    ours = set(names_of_apps())
    return {
        model._meta.label_lower: model
        for model in apps.get_models(include_auto_created=True)
        if model._meta.app_label in ours and model._meta.managed and not model._meta.proxy
    }


def kept_tables() -> dict[str, type[Model]]:
    """The tables that a backup holds."""
    return {name: model for name, model in tables().items() if name not in LEFT_OUT}


def count(model: type[Model]) -> int:
    """How many lines `dump_table` gives."""
    return _chosen(model).count()


def dump_table(model: type[Model]) -> Iterator[bytes]:
    """The table's rows, each as a line of JSON, read from the database a few at a time."""
    said = _rule(model).said
    for row in _chosen(model).values(*_columns(model)).iterator(chunk_size=_TOGETHER):
        line = json.dumps(row | said(row), ensure_ascii=False, separators=(",", ":"), default=_written)
        yield line.encode(errors="surrogatepass") + b"\n"


def files_of(model: type[Model]) -> Iterator[str]:
    """The names of the stored files that the table's rows name; not of those that are about to be removed."""
    for each in model._meta.concrete_fields:
        if each.get_internal_type() == "FileField":
            rows = _chosen(model).exclude(**{each.attname: ""})
            if model is DocumentVersion:
                rows = rows.exclude(stage=DocumentVersion.Stage.REMOVED)
            yield from rows.values_list(each.attname, flat=True).iterator(chunk_size=_TOGETHER)


def load_table(model: type[Model], lines: Iterable[bytes]) -> int:
    """Write rows as they are, with their keys and dates; returns how many. Raises CorruptBackupError."""
    loaded = 0
    for some in batched(lines, _size_of_a_batch(model)):
        objects = [_made(model, line) for line in some]
        query = InsertQuery(model)
        # Raw: neither today's date nor a signal, as it is not today that these are made.
        query.insert_values(model._meta.concrete_fields, objects, raw=True)
        query.get_compiler(connection=connection).execute_sql(None)
        loaded += len(objects)
    return loaded


def remove_all(models: Iterable[type[Model]]) -> None:
    """Remove every row; what refers to what does not matter before the transaction ends."""
    for model in models:
        model._base_manager.all()._raw_delete(using=connection.alias)


def reset_sequences(models: Iterable[type[Model]]) -> None:
    """Have the database number new rows after those that brought their numbers along."""
    with connection.cursor() as cursor:
        for statement in connection.ops.sequence_reset_sql(no_style(), list(models)):
            cursor.execute(statement)


def _rule(model: type[Model]) -> _Rule:
    return _RULES.get(model, _Rule())


def _chosen(model: type[Model]) -> QuerySet[Any]:
    return _rule(model).which(model._base_manager.order_by("pk"))


def _columns(model: type[Model]) -> list[str]:
    return [each.attname for each in model._meta.concrete_fields]


def _column(model: type[Model], name: str) -> Field[Any, Any]:
    found = model._meta.get_field(name)
    if not isinstance(found, Field):
        raise FieldDoesNotExist(name)
    return found


def _size_of_a_batch(model: type[Model]) -> int:
    fields = model._meta.concrete_fields
    return min(_TOGETHER, connection.ops.bulk_batch_size(fields, range(_TOGETHER)))


def _made(model: type[Model], line: bytes) -> Model:
    try:
        row = json.loads(line)
        return model(**{name: _column(model, name).to_python(value) for name, value in row.items()})
    except (ValueError, TypeError, AttributeError, FieldDoesNotExist, ValidationError) as error:
        raise CorruptBackupError(f"a row of {model._meta.label_lower} in it cannot be read") from error


def _written(value: object) -> str:
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, bytes | memoryview):
        return base64.b64encode(value).decode()
    if isinstance(value, UUID):
        return str(value)
    raise TypeError(f"{type(value)} has no place in a backup.")
