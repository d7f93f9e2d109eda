"""Rules of docs/architecture.md that import-linter cannot express (its contracts are in pyproject.toml)."""

from __future__ import annotations

import ast
import importlib
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("memory", "chat", "cato_web")
FILES = [p for package in PACKAGES for p in (ROOT / package).rglob("*.py") if "migrations" not in p.parts]
# Itself imported by functions; tests/test_mcp.py checks that the web process starts without it.
LAZY = {"cato_web/oauth/server.py"}
OWN_MODULES = {
    ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
    for package in (*PACKAGES, "tests", "benchmarks")
    for path in (ROOT / package).rglob("*.py")
}
HEAVY = {"authlib", "requests", "chromadb", "onnxruntime", "tokenizers", "openai", "numpy.linalg"}


def module_name(path: Path) -> str:
    return str(path.relative_to(ROOT))


def imports_of(path: Path, *, top_level_only: bool = False) -> set[str]:
    tree = ast.parse(path.read_text())
    nodes = tree.body if top_level_only else list(ast.walk(tree))
    found = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    return found | {node.module for node in nodes if isinstance(node, ast.ImportFrom) and node.module}


def test_exceptions_end_in_error():
    found = {
        (module_name(path), node.name)
        for path in FILES
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.ClassDef)
        and any(ast.unparse(base).endswith(("Error", "Exception")) for base in node.bases)
        and not node.name.endswith("Error")
    }
    assert found == set()


def test_heavy_modules_are_imported_lazily():
    early = {
        (module_name(path), module)
        for path in FILES
        if module_name(path) not in LAZY
        for module in imports_of(path, top_level_only=True)
        if module.split(".")[0] in HEAVY
    }
    assert early == set()


def test_names_that_functions_import_exist():
    """An import at the top fails when tests are collected; one inside a function fails only when it is called."""
    missing = {
        f"{module_name(path)}:{node.lineno} {node.module}.{alias.name}"
        for path in (*FILES, *(ROOT / "benchmarks").rglob("*.py"), *(ROOT / "tests").rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.ImportFrom) and node.col_offset and node.module in OWN_MODULES
        for alias in node.names
        if f"{node.module}.{alias.name}" not in OWN_MODULES
        and not hasattr(importlib.import_module(node.module), alias.name)
    }
    # Exists for type checks only.
    assert {each.split(" ")[1] for each in missing} <= {"memory.embeddings.onnxruntime.InferenceSession"}


def test_the_supervisor_imports_neither_django_nor_chromadb():
    visited: set[str] = set()
    queue = ["cato_web/supervisor/main.py"]
    while queue:
        path = ROOT / queue.pop()
        for module in imports_of(path, top_level_only=True):
            visited.add(module.split(".")[0])
            inner = module.replace(".", "/") + ".py"
            if (ROOT / inner).exists() and inner not in queue and inner != module_name(path):
                queue.append(inner)
    assert visited.isdisjoint({"django", "chromadb", "celery"})


def test_every_module_has_a_docstring():
    silent = [
        module_name(p) for p in FILES if p.read_text().strip() and ast.get_docstring(ast.parse(p.read_text())) is None
    ]
    assert silent == []


def test_templates_contain_no_inline_code_and_load_nothing_external():
    found = []
    for path in (ROOT / "templates").rglob("*.html"):
        text = path.read_text()
        inline = re.search(r"<script(?![^>]*\ssrc=)|<style|\sstyle=|\son[a-z]+=\"", text)
        elsewhere = re.search(r"(?:src|href)=\"https?:", text)
        if inline or elsewhere:
            found.append((module_name(path), (inline or elsewhere)[0]))
    assert found == []


def test_fragments_link_without_tokens():
    """Fragments are rendered once for all readers of a thread."""
    shared = [
        "_turn.html",
        "_streaming_block.html",
        "_turn_footer.html",
        "_recall_panel.html",
        "_send_button.html",
        "_recall_item.html",
    ]
    for name in shared:
        text = (ROOT / "templates" / "chat" / name).read_text()
        assert "csrf_token" not in text, name
        assert "shell." not in text, name
