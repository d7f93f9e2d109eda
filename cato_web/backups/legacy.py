"""Names of tables and columns in backups made before the tables were renamed and each application got one migration."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

# The last migration of each application before the change, and the one that has the same tables now.
_LAST_MIGRATIONS = {
    "people": "0006_audit_codes",
    "chat": "0013_missing_in_memory",
    "memory": "0013_document_source_path",
}
MIGRATIONS = {app: ["0001_initial"] for app in _LAST_MIGRATIONS}

TABLES = {
    "people.pass": "people.onetimelink",
    "people.departure": "people.accountdeletion",
    "chat.session": "chat.threadsession",
    "chat.readmark": "chat.readmarker",
    "chat.import": "chat.importjob",
    "memory.words": "memory.lexicalentry",
    "memory.opinion": "memory.feedback",
    "memory.recall": "memory.recalllogentry",
    "memory.generation": "memory.indexgeneration",
    "memory.embedding": "memory.embeddingjob",
    "memory.erasure": "memory.erasurejob",
    "memory.retention": "memory.retentionrule",
}
# By the present name of the table.
COLUMNS = {
    "people.onetimelink": {"made_at": "created_at", "made_by_id": "created_by_id"},
    "people.apitoken": {"begins_with": "prefix", "made_at": "created_at"},
    "people.accountdeletion": {"asked_at": "created_at", "sign_ins": "login_sessions"},
    "people.auditentry": {"who_id": "actor_id", "about": "target"},
    "chat.thread": {
        "opening": "opening_hash",
        "scope": "recall_filter",
        "spoken_at": "last_message_at",
        "titled_by": "title_source",
    },
    "chat.readmarker": {"seen_at": "last_read_at", "here_at": "last_present_at"},
    "chat.turn": {"is_blind": "images_dropped", "stands": "is_on_active_branch", "stop_asked": "stop_requested"},
    "chat.importjob": {"passed_over": "skipped_count"},
    "memory.exchange": {"forgotten_in_id": "forgotten_by_operation_id", "is_hidden": "is_inactive"},
    "memory.metadatavalue": {"truth": "boolean"},
    "memory.document": {"serving_id": "live_version_id"},
    "memory.documentversion": {"digest": "sha256"},
    "memory.chunk": {"joint": "separator", "place": "location"},
    "memory.hiddenpassage": {"place": "location"},
    "memory.embeddingjob": {"index_id": "collection_id"},
    "memory.operation": {
        "what": "parameters",
        "asked_by_id": "created_by_id",
        "asked_at": "created_at",
        "done": "processed",
    },
    "memory.evaluation": {"asked_by": "rephrased_by"},
}


def is_legacy(migrations: Mapping[str, Sequence[str]]) -> bool:
    """Return whether a backup of these migrations has the earlier names."""
    return all(last in migrations.get(app, ()) for app, last in _LAST_MIGRATIONS.items())
