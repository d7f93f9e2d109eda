"""docs/accessibility.md has each criterion of WCAG 2.2 A and AA once, and names tests that exist."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).parents[1]
REPORT = (ROOT / "docs" / "accessibility.md").read_text(encoding="utf-8")
ROWS = re.findall(r"^\| (\d\.\d\.\d+) [^|]+ \| (A|AA) \| ([^|]+) \| [^|]+ \|$", REPORT, re.MULTILINE)


def test_the_report_has_each_criterion_once_with_a_known_result():
    assert Counter(level for _, level, _ in ROWS) == {"A": 31, "AA": 24}
    assert len({criterion for criterion, _, _ in ROWS}) == 55
    assert {result for _, _, result in ROWS} <= {
        "supports",
        "partly supports",
        "does not support",
        "does not apply",
    }


def test_the_report_counts_its_results():
    results = Counter(result for _, _, result in ROWS)
    summary = f"supports {results['supports']}, partly supports {results['partly supports']}, and"
    assert f"{summary} {results['does not apply']} do not apply" in REPORT
    assert not results["does not support"]


def test_the_tests_that_the_report_names_exist():
    modules = {path.name: path.read_text(encoding="utf-8") for path in (ROOT / "tests" / "e2e").glob("test_*.py")}
    named = re.findall(r"`(test_\w+)(\.py)?`", REPORT)
    assert len(named) > 20
    for name, suffix in named:
        assert name + suffix in modules if suffix else f"def {name}(" in "".join(modules.values()), name
