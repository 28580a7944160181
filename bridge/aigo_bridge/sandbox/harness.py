"""Program that runs code and then its tests. It runs inside the sandbox, from its text, with only the
standard library of Python 3.10 or later.

Standard input contains the size of the settings as 12 digits, the settings as JSON (`code`, `tests` and the
line `started`), and a random token. The program reads the token after the last test and writes it to standard
output with the verdict, so code that ends the process or prints a verdict does not pass. Code can still
search this process and its descriptors; `SECURITY.md` describes this limit.
"""

from __future__ import annotations

import ast
import builtins
import functools
import importlib
import json
import linecache
import os
import sys
import types
from collections.abc import Sequence
from typing import Any

FILE = "generated.py"
RECURSION = 20
"""Frames of this program below the frames of the code."""

COMPARISONS = frozenset({"__eq__", "__lt__", "__le__", "__gt__", "__ge__"})
WATCHED = COMPARISONS | {"__sub__", "__rsub__"}
PLAIN = frozenset({bool, int, float, complex, str, bytes, list, tuple, dict, set, frozenset, type(None)})
"""Exact types of data that a test can compare with a result."""

_NAMES = vars(builtins)
_PYTHON = dict(_NAMES)


class UnjudgedError(Exception):
    """Tests that cannot judge the code."""


class ClassWatch:
    """Methods of the code's classes that decide for themselves whether a test passes."""

    def __init__(self) -> None:
        self.claims: list[str] = []
        """Claims of an object to equal plain data of a test, to be less, or to differ by a number."""

    def build_class(self, body: Any, name: str, *bases: Any, **keywords: Any) -> Any:
        """Build a class as Python does, and watch the methods of a class of the code."""
        kind = _PYTHON["__build_class__"](body, name, *bases, **keywords)
        if isinstance(kind, type) and body.__code__.co_filename == FILE:
            for method in WATCHED & vars(kind).keys():
                if isinstance(vars(kind)[method], types.FunctionType):
                    setattr(kind, method, self._watched(kind, method, vars(kind)[method]))
        return kind

    def _watched(self, kind: type, method: str, function: Any) -> Any:
        @functools.wraps(function)
        def watched(self_object: Any, operand: Any) -> Any:
            result = function(self_object, operand)
            if type(operand) in PLAIN and result is not NotImplemented:
                claims = result is not False if method in COMPARISONS else type(result) in PLAIN
                if claims and _is_in_test(sys._getframe(1)):  # noqa: SLF001  # `inspect` is slow to import
                    self.claims.append(f"only the code's class {kind.__name__} says that {method} holds")
            return result

        return watched


def _is_in_test(frame: Any) -> bool:
    while frame.f_back and not frame.f_code.co_filename.startswith((FILE, "test_")):
        frame = frame.f_back
    return bool(frame.f_code.co_filename != FILE)


class Scope(dict[str, Any]):
    """Global names of the code, except built-in names that the code redefined: tests use Python's."""

    def __init__(self, code: dict[str, Any], hidden: set[str]):
        super().__init__({name: _PYTHON[name] for name in hidden})
        self._code = code

    def __missing__(self, name: str) -> Any:
        return self._code[name]

    def __setitem__(self, name: str, value: Any) -> None:
        if name in self:
            super().__setitem__(name, value)
        else:
            self._code[name] = value


class Originals:
    """Functions and classes of Python and of modules that tests import, from before the code runs."""

    def __init__(self, trees: list[ast.Module]):
        self._values = [
            (owner, name, value)
            for module in _imported_modules(trees)
            for owner in (module, *(kind for kind in vars(module).values() if isinstance(kind, type)))
            for name, value in list(vars(owner).items())
            if callable(value) or isinstance(value, classmethod | staticmethod)
        ]

    def restore(self) -> None:
        """Undo replacements by the code, before the tests run."""
        _NAMES.update(_PYTHON)
        for owner, name, value in self._values:
            if vars(owner).get(name) is not value:
                setattr(owner, name, value)


def main() -> None:
    """Run the code and the tests, write the verdict and end the process."""
    # The code can replace functions of modules, but not these variables.
    read, write, end, getpid, process = os.read, os.write, os._exit, os.getpid, os.getpid()
    source, target = os.dup(0), os.dup(1)

    def take(size: int) -> bytes:
        content = b""
        while len(content) < size and (part := read(source, size - len(content))):
            content += part
        return content

    settings = json.loads(take(int(take(12))))
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    sys.argv = [FILE]
    write(target, settings["started"].encode() + b"\n")
    verdict, reason = run(settings["code"], settings["tests"])
    content = f" {verdict} {reason[-4000:].encode('utf-8', 'replace').hex()}\n".encode()
    if getpid() != process:
        end(1)  # a copy of this process that the code started
    write(target, b"\n" + take(32) + content)
    end(0)


def run(code: str, tests: list[str]) -> tuple[str, str]:
    """Return the verdict and its reason."""
    execute = exec
    trees, compiled = [], []
    for number, test in enumerate(tests, 1):
        file = f"test_{number}.py"
        _show_lines(file, test)
        try:
            trees.append(ast.parse(test, file))
            compiled.append(compile(test, file, "exec", dont_inherit=True))
        except (SyntaxError, ValueError) as error:
            return "unjudged", f"test {number} is not Python: {error}"
    originals, watch = Originals(trees), ClassWatch()
    _show_lines(FILE, code)
    main_module = sys.modules["__main__"] = types.ModuleType("__main__")
    names = vars(main_module)
    sys.setrecursionlimit(sys.getrecursionlimit() + RECURSION)
    _NAMES["__build_class__"] = watch.build_class
    try:
        execute(compile(code, FILE, "exec", dont_inherit=True), names)
        originals.restore()
        _NAMES["__build_class__"] = watch.build_class
        names["__builtins__"] = builtins
        scope = _scope(names, trees)
        for test_code in compiled:
            execute(test_code, scope)
    except UnjudgedError as error:
        return "unjudged", str(error)
    except SystemExit:
        return "failed", "ended before all tests had run"
    except BaseException as error:  # noqa: BLE001  # every exception of a test is a failure
        _NAMES.update(_PYTHON)
        return "failed", _description(error)
    return ("unjudged", watch.claims[0]) if watch.claims else ("passed", "")


def _show_lines(file: str, text: str) -> None:
    linecache.cache[file] = (len(text), None, [f"{line}\n" for line in text.split("\n")], file)


def _imported_modules(trees: list[ast.Module]) -> list[types.ModuleType]:
    names: set[str] = set()
    for node in _nodes(trees):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names.add(node.module)
    modules = []
    for name in sorted(names):
        try:
            modules.append(importlib.import_module(name))
        except Exception:  # noqa: BLE001, S112  # the test itself reports it
            continue
    return modules


def _scope(names: dict[str, Any], trees: list[ast.Module]) -> dict[str, Any]:
    """Return the global names of the tests.

    Tests such as `assert sum(10, 15) == 6`, which use only one redefined name, test that function.
    """
    redefined = {name for name in names if name in _PYTHON and not name.startswith("__")}
    if not redefined:
        return names
    loaded: set[str] = set()
    stored: set[str] = set()
    for node in _nodes(trees):
        if isinstance(node, ast.Name):
            (loaded if isinstance(node.ctx, ast.Load) else stored).add(node.id)
        elif not isinstance(node, ast.keyword):
            names_of_node = (getattr(node, field, None) for field in ("name", "asname", "arg"))
            stored.update(name.partition(".")[0] for name in names_of_node if isinstance(name, str))
    used = redefined & loaded - stored
    if loaded - stored - _PYTHON.keys():
        return Scope(names, used)
    if len(used) > 1:
        raise UnjudgedError(f"the code redefines {', '.join(sorted(used))}, which the tests use")
    return names


def _nodes(trees: Sequence[ast.AST]) -> list[ast.AST]:
    return [node for tree in trees for node in ast.walk(tree)]


def _description(error: BaseException) -> str:
    """Return the traceback without the frames of this program."""
    import traceback  # slow to import, and rarely needed

    try:
        frames = [
            frame
            for frame in traceback.extract_tb(error.__traceback__)
            if frame.filename == FILE or frame.filename.startswith("test_")
        ]
        message = "".join(traceback.format_exception_only(type(error), error)).strip()
        return "".join(traceback.format_list(frames)) + message
    except BaseException as another:  # noqa: BLE001  # the code's own exception can fail here
        return f"{type(error).__name__} (its message raises {type(another).__name__})"


if __name__ == "__main__":
    main()
