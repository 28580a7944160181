"""Code from a benchmark's own file that a converted task contains: the required definitions, as text.

A snippet runs in another process, without the file. It can contain code that only needs Python and
installed packages. Code that needs other files of its author is rejected with the reason.
"""

from __future__ import annotations

import ast
import asyncio
import builtins
import json
import re
import sys
from collections.abc import Collection, Iterator, Mapping
from functools import cache
from importlib.metadata import packages_distributions
from pathlib import Path
from typing import Any

from aigo_bridge.dtypes import ChatCompletionModelOutput, SingleSolverOutput
from aigo_bridge.errors import SnippetError
from aigo_bridge.exporting.python_code import first_line
from aigo_bridge.snippets import Snippet, SnippetHost

MODULE = "own_{stem}"
"""Name of the module in a snippet that contains the code of a file."""

LARGEST = 200_000
"""Maximum number of characters of code in a task."""

_MAKING = """\
# Code of {file}, as far as it is used here.
import sys
import types

{constant} = {literal}
module = sys.modules[{module!r}] = types.ModuleType({module!r})
exec(compile({constant}, {file!r}, "exec"), vars(module))

"""


class NotCarriedError(Exception):
    """Error for code that cannot be included in a task; the message contains the reason."""


def module_of(file: Path) -> str:
    """Return the name under which a snippet imports the code of a file."""
    return MODULE.format(stem=re.sub(r"\W", "_", file.stem))


def carried(file: Path, names: Collection[str]) -> str:
    """Return the definitions in a file that some of its top-level names need, in source order.

    Raises:
        NotCarriedError: the code needs another file, or cannot be read.
    """
    source, statements = _statements(file)
    bound = {name for statement in statements for name in _bound(statement)}
    missing = sorted(set(names) - bound)
    if missing:
        raise NotCarriedError(f"{missing[0]!r} is not defined at the top level of {file.name}")
    chosen = _needed(statements, set(names))
    for statement in chosen:
        _check(statement)
    lines = source.splitlines()
    text = ""
    for statement in chosen:
        is_definition = isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
        text += "\n\n" * (is_definition and bool(text))
        text += "\n".join(lines[first_line(statement) - 1 : statement.end_lineno]) + "\n"
    if len(text) > LARGEST:
        raise NotCarriedError(f"it is longer than {LARGEST:,} characters")
    return text


def with_code(snippet: str, code: Mapping[Path, str]) -> str:
    """Return a snippet that first creates modules from the included code."""
    making = ""
    for number, (file, text) in enumerate(code.items(), 1):
        constant = "OWN_CODE" if len(code) == 1 else f"OWN_CODE_{number}"
        making += _MAKING.format(
            file=file.name, constant=constant, literal=_literal(text), module=module_of(file)
        )
    return making + snippet


def problem_of(scorer: Mapping[str, Any], row: Mapping[str, Any], answer: str) -> str | None:
    """Return why a scorer with included code cannot run in a snippet; `None` if it can, or does not contain
    such code.

    Args:
        scorer: a `python` scorer of a task.
        row: a row of the task.
        answer: an answer that the scorer should be able to score.
    """
    source = scorer.get("compute_scores_snippet", "")
    if "OWN_CODE" not in source:
        return None
    host = SnippetHost()
    message = {"role": "assistant", "content": answer}
    choices = [{"index": 0, "message": message, "finish_reason": "stop"}]
    output = SingleSolverOutput(
        messages=[], output=ChatCompletionModelOutput.model_validate({"choices": choices})
    )

    async def call() -> None:
        await host.call(Snippet(source, "compute_scores", "its code"), dict(row), output)

    try:
        asyncio.run(call())
    except SnippetError as error:
        return str(error)
    finally:
        host.close()
    return None


def _statements(file: Path) -> tuple[str, list[ast.stmt]]:
    try:
        source = file.read_text(encoding="utf-8")
        return source, ast.parse(source).body
    except (OSError, ValueError, SyntaxError) as error:
        raise NotCarriedError(f"{file.name} cannot be read: {error}") from error


def _needed(statements: list[ast.stmt], names: set[str]) -> list[ast.stmt]:
    """Return the statements that bind or change needed names, with all their dependencies."""
    chosen: set[int] = set()
    needed, before = set(names), set[str]()
    while needed != before:
        before = set(needed)
        for number, statement in enumerate(statements):
            if number not in chosen and (needed & _bound(statement) or _changes(statement, needed)):
                chosen.add(number)
                needed |= _read(statement)
    return [node for number, node in enumerate(statements) if number in chosen or _is_future(node)]


def _is_future(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.ImportFrom) and statement.module == "__future__"


_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Import, ast.ImportFrom)


def _bound(statement: ast.stmt) -> set[str]:
    """Return the names that a statement at the top level defines."""
    if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return {statement.name}
    if isinstance(statement, ast.Import | ast.ImportFrom):
        return {alias.asname or alias.name.partition(".")[0] for alias in statement.names}
    bound: set[str] = set()
    for node in ast.walk(statement):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            bound.add(node.id)
        elif node is not statement and isinstance(node, _DEFINITIONS):
            bound |= _bound(node)
    return bound


def _changes(statement: ast.stmt, needed: set[str]) -> bool:
    """Return whether a statement that defines nothing may change a value: `TABLE["a"] = 1`, `add(x)`."""
    if isinstance(statement, _DEFINITIONS) or _is_main(statement):
        return False
    defines = isinstance(statement, ast.Assign | ast.AnnAssign) and bool(_bound(statement))
    return not defines and bool(needed & _read(statement))


def _is_main(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.If) and "__main__" in ast.dump(statement.test)


def _read(statement: ast.stmt) -> set[str]:
    names = {node.id for node in ast.walk(statement) if isinstance(node, ast.Name)}
    names |= {name for node in ast.walk(statement) if isinstance(node, ast.Global) for name in node.names}
    return names - set(dir(builtins))


def _check(statement: ast.stmt) -> None:
    for node in ast.walk(statement):
        if isinstance(node, ast.Name) and node.id == "__file__":
            raise NotCarriedError("its code looks for files next to it (__file__)")
        for module in _imported(node):
            if not _is_installed(module.partition(".")[0]):
                raise NotCarriedError(f"its code imports {module!r}, which is another file of yours")


def _imported(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    elif isinstance(node, ast.ImportFrom):
        if node.names[0].name == "*":
            raise NotCarriedError(f"its code imports everything from {node.module!r}")
        yield "." * node.level + (node.module or "")


def _is_installed(package: str) -> bool:
    return package in sys.stdlib_module_names or package in _installed()


@cache
def _installed() -> frozenset[str]:
    return frozenset(packages_distributions())


def _literal(text: str) -> str:
    for quotes in ("'''", '"""'):
        if quotes not in text and not text.rstrip("\n").endswith(("\\", quotes[0])):
            return f"r{quotes}\n{text}{quotes}"
    return json.dumps(text)
