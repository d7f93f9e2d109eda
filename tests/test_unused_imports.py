"""Parts of packages that Cato never uses are not imported with them."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.server import ROOT


@pytest.mark.parametrize(("package", "part"), [("chromadb", "grpc"), ("httpx", "rich")])
def test_the_part_is_not_imported_with_the_package(package, part):
    program = f"import sys, cato_web, {package}; print('{part}' in sys.modules, {package}.__name__)"
    result = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    assert result.stdout.split() == ["False", package]
