"""Mutation testing: change one place of a module at a time, and print each change that no test notices.

`make mutants ARGS="--module memory/jobs.py --limit 50 --seed 7"`; docs/decisions/0006-mutation-testing.md has the
reasons. Mutants exist only in memory: pytest collects the tests of a module once, then a forked child per mutant
replaces the code of one function and runs the tests that execute the changed lines. Constants of modules, decorators
and default values are not changed.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import difflib
import gc
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import types
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import pytest

ROOT = Path(__file__).resolve().parent.parent
# Module -> the test modules (without `test_`) that specify it and run in the process of pytest.
TESTS = {
    "memory/spaces/access.py": "spaces groups commands administration permalinks",
    "memory/spaces/data_policy.py": "data_policy embedding_policy",
    "memory/index/embedding_policy.py": "embedding_policy",
    "memory/spaces/groups.py": "groups administration account_deletion",
    "chat/access.py": "access branches attachments attached_documents permalinks groups",
    "cato_web/accounts/tokens.py": "tokens",
    "cato_web/api_auth.py": "tokens api_access",
    "memory/administration/reveals.py": "reveals administration",
    "memory/exchanges/erasure.py": "forgetting erasure backup document_deletion",
    "memory/exchanges/forgetting.py": "forgetting forgetting_scope records notes administration",
    "memory/documents/deletion.py": "document_deletion documents hidden_text groups administration",
    "chat/turns/posting.py": "turn_states threads branches concurrent_answers forks recall_filter attachments",
    "chat/turns/placing.py": "turn_states threads branches concurrent_answers forks recall_filter attachments",
    "chat/turns/restarting.py": "turn_states threads branches concurrent_answers",
    "chat/turns/answer_limit.py": "turn_states concurrent_answers branches",
    "chat/turns/branches.py": "turn_states branches concurrent_answers",
    "chat/turns/queue.py": "turn_states threads forks queue concurrent_answers",
    "chat/turns/stopping.py": "turn_states threads forks",
    "chat/answers/job.py": "answer_steps turn_states access",
    "chat/answers/history.py": "answer_steps threads branches forks",
    "chat/answers/present_state.py": "answer_steps instructions data_policy",
    "chat/answers/preparation.py": "answer_steps recall attachments attached_documents data_policy web_search",
    "chat/answers/recall.py": "answer_steps branches recall forks recall_filter data_policy",
    "chat/answers/persistence.py": "answer_steps flush_loop threads branches recall attachments attached_documents endpoint_faults citations forks",
    "chat/threads/lifecycle.py": "turn_states thread_management threads groups forgetting forks attachments attached_documents account_deletion",
    "memory/jobs.py": "leases fairness forgetting documents import_jobs administration",
}
COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Eq: ast.NotEq, ast.NotEq: ast.Eq, ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt,
    ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In,  # codespell:ignore notin
}  # fmt: skip
QUERIES = {"filter", "exclude", "Q", "update", "_update", "get", "get_or_create"}


class Mutant(NamedTuple):
    """A function, the lines of the changed node, and the source of the module after the change."""

    function: str
    lines: range
    source: str


def mutants_of(module: str) -> list[Mutant]:
    """Return one mutant for each change of a function or method of the module."""
    text, starts, mutants = (ROOT / module).read_bytes(), [0], []
    for line in text.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    for name, function in functions(ast.parse(text).body):
        for node, new in (change for statement in function.body for change in changes(statement)):
            first, last = starts[node.lineno - 1] + node.col_offset, starts[node.end_lineno - 1] + node.end_col_offset
            source = (text[:first] + new.encode() + text[last:]).decode()
            mutants.append(Mutant(name, range(node.lineno, node.end_lineno + 1), source))
    return mutants


def functions(body: list[ast.stmt], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Return functions and methods with their qualified names."""
    for node in body:
        if isinstance(node, ast.ClassDef):
            yield from functions(node.body, f"{node.name}.")
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield prefix + node.name, node


def changes(node: ast.AST) -> Iterator[tuple[Any, str]]:
    """Return nodes at or below this one with the text that replaces them; not texts, logging and annotations."""
    is_docstring = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    if is_docstring or (isinstance(node, ast.Expr | ast.Call) and re.match(r"(log\.|_\(|ngettext)", ast.unparse(node))):
        return
    yield from changes_at(node)
    for name, value in ast.iter_fields(node):
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST) and name != "annotation":
                yield from changes(child)


def changes_at(node: ast.AST) -> Iterator[tuple[Any, str]]:
    match node:
        case ast.Compare(left, [operator], [right]):
            yield node, f"({ast.unparse(ast.Compare(left, [COMPARISONS[type(operator)]()], [right]))})"
        case ast.BoolOp(operator, values):
            for dropped in values:
                rest = [value for value in values if value is not dropped]
                yield node, f"({ast.unparse(rest[0] if len(rest) == 1 else ast.BoolOp(operator, rest))})"
        case ast.BinOp(left, ast.BitOr() | ast.BitAnd(), right):
            yield from ((node, ast.unparse(left)), (node, ast.unparse(right)))
        case ast.BinOp(left, ast.Add() | ast.Sub() as operator, right):
            other = ast.Sub() if isinstance(operator, ast.Add) else ast.Add()
            yield node, f"({ast.unparse(ast.BinOp(left, other, right))})"
        case ast.UnaryOp(ast.Not() | ast.Invert(), operand):
            yield node, f"({ast.unparse(operand)})"
        case ast.Constant(bool(value)):
            yield node, str(not value)
        case ast.Constant(int(value)):
            yield node, str(value + 1)
        case ast.Call(ast.Name(name) | ast.Attribute(attr=name), args, keywords) if name in QUERIES:
            for dropped in (*args, *keywords):
                kept = [arg for arg in args if arg is not dropped], [word for word in keywords if word is not dropped]
                yield node, ast.unparse(ast.Call(node.func, *kept))
        case ast.Call(ast.Attribute(attr="order_by"), args):
            for field in args:
                if isinstance(field, ast.Constant):
                    yield field, repr(field.value[1:] if field.value.startswith("-") else f"-{field.value}")
        case ast.Expr() | ast.Raise():
            yield node, "pass"
        case ast.If(test) | ast.IfExp(test):
            if isinstance(test, ast.Name | ast.Attribute | ast.Call):
                yield test, f"(not {ast.unparse(test)})"
            if isinstance(node, ast.If) and isinstance(node.body[-1], ast.Return | ast.Raise | ast.Continue):
                yield test, "False"
        case ast.comprehension(ifs=ifs):
            yield from ((condition, "True") for condition in ifs)


class Runner:
    """A plugin of pytest that runs mutants instead of the collected tests."""

    def __init__(self, module: str, mutants: list[Mutant], out: Any) -> None:
        self.path, self.module, self.mutants, self.out = str(ROOT / module), module, mutants, out

    def pytest_runtestloop(self, session: Any) -> bool:
        """Run each mutant with the tests that execute one of its lines, fast ones first."""
        session.items = [item for item in session.items if "cato" not in item.fixturenames]
        self.set_up(session)
        with tempfile.NamedTemporaryFile("w+") as file:
            self.fork(lambda: self.trace_tests(session.items, file), timeout=1800)
            file.seek(0)
            passing = {test: (seconds, set(lines)) for test, seconds, lines in map(json.loads, file)}
        failing = [item.nodeid for item in session.items if item.nodeid not in passing]
        print(f"{self.module}: {len(passing)} tests pass without a mutant; failing: {failing}", file=self.out)
        killed = 0
        for mutant in self.mutants:
            items = [i for i in session.items if i.nodeid in passing and passing[i.nodeid][1] & {*mutant.lines}]
            items.sort(key=lambda item: passing[item.nodeid][0])
            timeout = 20 + 5 * sum(passing[item.nodeid][0] for item in items)
            if items and not self.fork(lambda: self.run_mutant(mutant, items), timeout):  # noqa: B023
                killed += 1
                continue
            old, new = Path(self.path).read_text().splitlines(), mutant.source.splitlines()
            rows = list(difflib.unified_diff(old, new, n=1, lineterm=""))[2:]
            print(f"\n{self.module}, {mutant.function} ({len(items)} tests):", *rows, sep="\n", file=self.out)
        print(f"{self.module}: {killed} killed, {len(self.mutants) - killed} survived", file=self.out)
        return True

    def set_up(self, session: Any) -> None:
        """Create the database, and start the Chroma server if a test needs it; all children use both."""
        from django.db import connection, connections

        item = session.items[0]
        session._setupstate.setup(item)
        for name in {"django_db_setup", "chroma"} & {name for item in session.items for name in item.fixturenames}:
            item._request.getfixturevalue(name)
        session._setupstate.teardown_exact(session.items[-1])
        connections.close_all()
        self.database = Path(connection.settings_dict["NAME"])
        shutil.copyfile(self.database, f"{self.database}.copy")

    def fork(self, run: Callable[[], bool], timeout: float) -> bool:
        """Return whether `run` returns True in a child process before the timeout."""
        for suffix in ("", "-wal", "-shm"):
            Path(f"{self.database}{suffix}").unlink(missing_ok=True)
        shutil.copyfile(f"{self.database}.copy", self.database)
        pid = os.fork()
        if pid == 0:
            os.setpgid(0, 0)
            os.dup2(1, 2)  # expected errors are logged
            try:
                os._exit(0 if run() else 1)
            finally:
                os._exit(2)
        end, status = time.monotonic() + timeout, 1
        while time.monotonic() < end:
            done, status = os.waitpid(pid, os.WNOHANG)
            if done:
                break
            status = 1
            time.sleep(0.02)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(pid, signal.SIGKILL)
        if not done:
            os.waitpid(pid, 0)
        return status == 0

    def trace_tests(self, items: list[Any], file: Any) -> bool:
        """Write id, duration in seconds and executed lines of the module for each test that passes."""
        lines: set[int] = set()

        def trace(frame: types.FrameType, event: str, _: Any) -> Any:
            if frame.f_code.co_filename != self.path:
                return None
            lines.add(frame.f_lineno)
            return trace

        threading.settrace(trace)
        for item in items:
            lines.clear()
            sys.settrace(trace)
            start = time.monotonic()
            if passes(item):
                print(json.dumps([item.nodeid, time.monotonic() - start, sorted(lines)]), file=file, flush=True)
        return True

    def run_mutant(self, mutant: Mutant, items: list[Any]) -> bool:
        """Replace the code of the function wherever it is used, and return whether all tests pass."""
        codes = [compile(mutant.source, self.path, "exec")]
        for code in codes:  # grows by nested code
            codes += [constant for constant in code.co_consts if isinstance(constant, types.CodeType)]
        (new,) = (code for code in codes if code.co_qualname == mutant.function)
        for function in gc.get_objects():
            code = function.__code__ if isinstance(function, types.FunctionType) else None
            if code and (code.co_filename, code.co_qualname) == (self.path, mutant.function):
                function.__code__ = new
        return all(passes(item) for item in items)


def passes(item: Any) -> bool:
    from _pytest.runner import runtestprotocol

    item.session._setupstate.teardown_exact(item)
    item._initrequest()
    # With a next test, fixtures of the session stay.
    return not any(report.failed for report in runtestprotocol(item, log=False, nextitem=item.session.items[-1]))


def main() -> None:
    parser = argparse.ArgumentParser(description="Print the mutants that no test notices.")
    parser.add_argument("--module", action="append", choices=TESTS, metavar="PATH", help="repeatable; default: all")
    parser.add_argument("--limit", type=int, default=400, help="number of mutants (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=random.randrange(10_000))
    parser.add_argument("--jobs", type=int, default=2, help="modules at the same time (default: %(default)s)")
    parser.add_argument("--run", nargs="+", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.run:
        return run_module(options.run[0], [int(number) for number in options.run[1:]])
    every = [(module, n) for module in options.module or TESTS for n in range(len(mutants_of(module)))]
    sample = random.Random(options.seed).sample(every, min(options.limit, len(every)))
    print(f"{len(sample)} of {len(every)} mutants, seed {options.seed}", flush=True)

    def run(module: str) -> list[int]:
        numbers = [str(number) for name, number in sorted(sample) if name == module]
        command, line = [sys.executable, "-m", "tests.mutants", "--run", module, *numbers], ""
        with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
            for line in process.stdout or ():
                print(line, end="", flush=True)
        return [int(count) for count in re.findall(r"(\d+) (?:killed|survived)", line)] or sys.exit(f"{module}: failed")

    with ThreadPoolExecutor(options.jobs) as pool:
        totals = [sum(counts) for counts in zip(*pool.map(run, {module: 0 for module, _ in sample}), strict=True)]
    print(f"{totals[0]} killed, {totals[1]} survived, seed {options.seed}")


def run_module(module: str, numbers: list[int]) -> None:
    """Run these mutants of a module in this process."""
    out = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    mutants = mutants_of(module)
    files = [f"tests/test_{name}.py" for name in TESTS[module].split()]
    runner = Runner(module, [mutants[number] for number in numbers], out)
    pytest.main(["-q", "-s", "-n0", "-p", "no:cacheprovider", *files], plugins=[runner])


if __name__ == "__main__":
    main()
