"""Which tables there are: the migrations that a backup is of, and a database brought to the same ones."""

from __future__ import annotations

from django.apps.registry import Apps
from django.db import connection
from django.db.migrations.executor import MigrationExecutor
from django.db.migrations.graph import MigrationGraph

from cato_web.backups.errors import BackupWriteError, RestoreError
from cato_web.backups.rows import names_of_apps

Migrations = dict[str, list[str]]


def applied() -> Migrations:
    """The migrations of this database, by application. Raises BackupWriteError where some are still to be applied."""
    executor = MigrationExecutor(connection)
    if executor.migration_plan(executor.loader.graph.leaf_nodes()):
        raise BackupWriteError("The database is not of this version of Cato. Start it once, or call `prepare`, before.")
    done = executor.loader.applied_migrations
    return {app: sorted(name for label, name in done if label == app) for app in names_of_apps()}


def migrate_to(wanted: Migrations, *, version: str) -> Apps:
    """Give an empty database the tables that a backup of this version is of; returns the models of that time.

    Raises RestoreError where this Cato does not know them.
    """
    executor = MigrationExecutor(connection)
    graph = executor.loader.graph
    nodes = {(app, name) for app, names in wanted.items() for name in names}
    if nodes - graph.nodes.keys():
        raise RestoreError(
            f"This backup is of Cato {version}, which has tables that this one does not know. Restore it with that "
            "version or a later one. Nothing was changed."
        )
    ours = set(names_of_apps())
    targets = [node for node in graph.leaf_nodes() if node[0] not in ours]
    targets += [node for node in nodes if not any(child[0] == node[0] for child in nodes & _children(graph, node))]
    executor.migrate(targets)
    return MigrationExecutor(connection).loader.project_state(targets).apps


def _children(graph: MigrationGraph, node: tuple[str, str]) -> set[tuple[str, str]]:
    return {child.key for child in graph.node_map[node].children}
