"""Processes do not import what they never use."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.server import ROOT
from tests.topology import clean_environment


@pytest.mark.parametrize(("package", "part"), [("chromadb", "grpc"), ("httpx", "rich")])
def test_the_part_is_not_imported_with_the_package(package, part):
    program = f"import sys, cato_web, {package}; print('{part}' in sys.modules, {package}.__name__)"
    result = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    assert result.stdout.split() == ["False", package]


def run_python(data_dir, *arguments):
    environment = clean_environment() | {"CATO_SERVER_DATA_DIR": str(data_dir)}
    environment.pop("CELERY_SKIP_CHECKS", None)  # this process may have set it
    return subprocess.check_output([sys.executable, *arguments], cwd=ROOT, env=environment, text=True)


def test_a_worker_does_not_import_the_pages(tmp_path):
    program = "import sys; from cato_web.celery import app; app.loader.init_worker(); print(*sys.modules)"
    modules = run_python(tmp_path, "-c", program).split()
    assert "chat.tasks" in modules
    assert "cato_web.urls" not in modules


def test_the_checks_of_django_which_no_process_runs_find_nothing(tmp_path):
    run_python(tmp_path, "manage.py", "check", "--fail-level", "WARNING")
