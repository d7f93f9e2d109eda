"""Processes die at any moment, and whoever was talking loses nothing and does nothing about it."""

from __future__ import annotations

from pathlib import Path

from benchmarks import kill
from tests.topology import IS_LONG


def test_nothing_acknowledged_is_lost_or_doubled_when_processes_are_killed(tmp_path: Path) -> None:
    kills = 8 if IS_LONG else 5
    report = kill.run(tmp_path, kills=kills, seed=3, longest_pause=1.5)

    assert report.violations == []
    assert sum(report.kills.values()) == kills
    assert sum(said.is_acknowledged for said in report.said) == len(report.said) > 10
    assert report.vectors > 10
