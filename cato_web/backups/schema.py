"""The migrations of a backup, and migrating a database to the same ones."""

from __future__ import annotations

from django.apps.registry import Apps
from django.db import connection
from django.db.migrations.executor import MigrationExecutor
from django.db.migrations.graph import MigrationGraph

from cato_web.backups.errors import BackupWriteError, RestoreError
from cato_web.backups.rows import app_labels

Migrations = dict[str, list[str]]


def list_applied_migrations() -> Migrations:
    """Return the applied migrations by application. Raises BackupWriteError if migrations are missing."""
    executor = MigrationExecutor(connection)
    if executor.migration_plan(executor.loader.graph.leaf_nodes()):
        raise BackupWriteError("The database is not of this version of Cato. Start Cato once, or run `prepare`, first.")
    applied_migrations = executor.loader.applied_migrations
    return {app: sorted(name for label, name in applied_migrations if label == app) for app in app_labels()}


def migrate_to(migrations: Migrations, *, version: str) -> Apps:
    """Migrate an empty database to these migrations; return the models of that time.

    Raises RestoreError if this version does not have the migrations.
    """
    executor = MigrationExecutor(connection)
    graph = executor.loader.graph
    nodes = {(app, name) for app, names in migrations.items() for name in names}
    if nodes - graph.nodes.keys():
        raise RestoreError(
            f"This backup is of Cato {version}, which has tables that this version does not have. Restore it with that "
            "version or a later one. Nothing was changed."
        )
    labels = set(app_labels())
    targets = [node for node in graph.leaf_nodes() if node[0] not in labels]
    targets += [node for node in nodes if not any(child[0] == node[0] for child in nodes & _children(graph, node))]
    executor.migrate(targets)
    return MigrationExecutor(connection).loader.project_state(targets).apps


def _children(graph: MigrationGraph, node: tuple[str, str]) -> set[tuple[str, str]]:
    return {child.key for child in graph.node_map[node].children}
