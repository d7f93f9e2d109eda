"""Killing processes at any moment loses and doubles nothing that was acknowledged."""

from __future__ import annotations

from pathlib import Path

from benchmarks import kill
from tests.topology import IS_LONG


def test_killing_processes_neither_loses_nor_doubles_acknowledged_messages(tmp_path: Path) -> None:
    kills = 8 if IS_LONG else 5
    report = kill.run(tmp_path, kills=kills, seed=3, max_pause=1.5)

    assert report.violations == []
    assert sum(report.kills.values()) == kills
    assert sum(message.is_acknowledged for message in report.posts.messages) == len(report.posts.messages) > 10
    assert report.vectors > 10
    assert {"note", "document", "import", "deleted"} <= set(report.actions)
    assert {"decision", "document", "moved"} <= set(report.team_actions)
    assert report.statements > 0
    assert report.reindexing
