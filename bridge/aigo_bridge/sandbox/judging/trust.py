"""Mirrors of what the answer's code defines, as the tests see them: its word is not taken where it would
decide a test.

Plain values are compared here; whether an object of the answer equals a plain value is never the answer's to
say, nor does it get to do arithmetic with what a test expects and to say what comes of it. Where only the
answer could say, there is no verdict.
"""

from __future__ import annotations

import builtins
import dis
import importlib
import sys
import types
from collections.abc import Iterator
from typing import Any

from aigo_bridge.sandbox.judging.mirror import (
    BINARY,
    COMPARISONS,
    CONVERSIONS,
    MirrorType,
    base_class,
    class_of,
    hash_of,
    mirrored,
)
from aigo_bridge.sandbox.judging.mirrors import Mirrors
from aigo_bridge.sandbox.judging.values import SHARED

_FRAMEWORKS = ("unittest", "pytest", "_pytest", __name__.partition(".")[0])
"""Packages whose exceptions steer tests, and this one."""


class ModuleName(str):
    """Name of a module that the answer's code has imported."""

    __slots__ = ()


class JudgeMirrors(Mirrors):
    """Mirrors whose word is not taken where it would decide a test."""

    def __init__(self) -> None:
        super().__init__(1)
        self.named: set[int] = set()
        """Numbers of the classes that tests name: these are under test, with all that they say."""
        self._doubtful: set[int] = set()
        """Numbers of objects that the answer made from what a test expects."""
        content = {"aigo_class": None, "aigo_mirrors": self, "__call__": self.special_method("__call__")}
        self._function: Any = MirrorType("function", (self.root,), content)

    def refuse(self, reason: str) -> Any:
        raise self.end.over("unjudged", reason)

    def module(self, name: str) -> Any:
        return ModuleName(name)

    def _exception(self, module: str, name: str, base: str) -> Any:
        # Those of test frameworks say that a test is skipped, or was meant to fail.
        if module.partition(".")[0] in _FRAMEWORKS:
            return base_class(base)
        return super()._exception(module, name, base)

    def known_name(self, value: Any) -> tuple[str, str] | None:
        if type(value) is types.BuiltinFunctionType and value.__module__ in ("builtins", "math", "_operator"):
            return value.__module__.lstrip("_"), value.__name__
        return super().known_name(value)

    def new_function(self, number: int, names: list[Any]) -> Any:
        function = self._instance(self._function, number, None)
        for attribute, text in zip(("__name__", "__qualname__", "__module__", "__doc__"), names, strict=True):
            object.__setattr__(function, attribute, text if type(text) is str else None)
        return function

    def special(self, name: str, mirror: Any, *operands: Any) -> Any:
        plain = [operand for operand in operands if not mirrored(operand)]
        if name in COMPARISONS and plain:
            return self._compared(name, mirror, plain[0])
        if name == "__hash__" and hash_of(mirror) is not None:
            return hash_of(mirror)
        judged = name == "__contains__" and plain and class_of(mirror) not in self.named
        content = self.ask("plain", mirror) if judged else NotImplemented
        if content is not NotImplemented:
            return plain[0] in content
        result = super().special(name, mirror, *operands)
        if result is NotImplemented:
            return result
        if judged and result:
            self.refuse(f"only the answer's class {_name(mirror)} says that {plain[0]!r:.80} is in it")
        return self._trusted(name, result, mirror, operands, bool(plain))

    def _trusted(self, name: str, result: Any, mirror: Any, operands: tuple[Any, ...], plain: bool) -> Any:
        """A result that does not depend on what a test expects; mirrors of those that do are remembered."""
        doubtful = any(id(value) in self._doubtful for value in (mirror, *operands))
        if not (name in BINARY and (plain or doubtful)) and not (name in CONVERSIONS and doubtful):
            return result
        if not mirrored(result):
            self.refuse(
                f"only the answer's class {_name(mirror)} says what {name} gives with a value of the tests"
            )
        if result is not mirror or not name.startswith("__i"):
            self._doubtful.add(id(result))
            self.end.kept.append(result)
        return result

    def _compared(self, name: str, mirror: Any, plain: Any) -> Any:
        if type(plain) in SHARED and name in ("__eq__", "__ne__"):
            content = self.ask("plain", mirror)
            if content is not NotImplemented:
                return (content == plain) is (name == "__eq__")
        answer = super().special(name, mirror, plain)
        if answer is NotImplemented or answer is (name == "__ne__"):
            return answer
        return self.refuse(f"only the answer's class {_name(mirror)} says how it compares with {plain!r:.80}")


def _name(mirror: Any) -> str:
    return str((mirror if type(mirror) is MirrorType else type(mirror)).__name__)


ALIASES = {"np": "numpy", "pd": "pandas"}
"""Names of modules that are as common as their own."""


class Scope(dict[str, Any]):
    """The names of the tests: their own, Python's, and then those of the answer."""

    def __init__(self, end: Any, tests: list[types.CodeType]):
        super().__init__({"__name__": "__main__"})
        self._end = end
        loaded, stored, bases = _names(tests)
        self._modules = bases & set(getattr(sys, "stdlib_module_names", ()))
        names = loaded - stored
        python = {name for name in names if hasattr(builtins, name)}
        # A test of nothing but `sum(10, 15) == 6` means the answer's function; else names are Python's own.
        redefined = set() if names - python else {name for name in python if end.ask("global", name)[0]}
        if len(redefined) > 1:
            raise end.over(
                "unjudged", f"the answer defines {', '.join(sorted(redefined))} anew, which the tests use"
            )
        self._under_test = redefined

    def __missing__(self, name: str) -> Any:
        if name.startswith("__") or (hasattr(builtins, name) and name not in self._under_test):
            raise KeyError(name)
        is_defined, value = self._end.ask("global", name)
        if not is_defined:
            raise KeyError(name)
        if type(value) is ModuleName or name in self._modules:
            return self._module(name, value)
        if type(value) is MirrorType:
            self._end.values.named.add(value.aigo_class)
        return value

    def __setitem__(self, name: str, value: Any) -> None:
        super().__setitem__(name, value)
        if type(value) is type and value.__module__ == "__main__" and _holds_data(value):
            self._end.ask("lend", name, value)

    def _module(self, name: str, value: Any) -> Any:
        """A module, by its own name: of this process."""
        meant = ALIASES.get(name, name)
        if type(value) is ModuleName and value.rpartition(".")[2] != meant:
            raise self._end.over(
                "unjudged", f"the answer calls {value!s:.80} {name}, and the tests use that name"
            )
        module_name = str(value) if type(value) is ModuleName else meant
        try:
            module = importlib.import_module(module_name)
        except ImportError as error:
            raise self._end.over(
                "unjudged", f"the tests use {name}, which only the answer imports: {error}"
            ) from error
        super().__setitem__(name, module)
        return module


def _holds_data(kind: type) -> bool:
    """Whether a class has nothing of its own but special methods: no test to call, no value to read."""
    return all(name.startswith("__") or value is None for name, value in vars(kind).items())


def _names(tests: list[types.CodeType]) -> tuple[set[str], set[str], set[str]]:
    """Global names that tests use, those that they set, and those that they use attributes of."""
    loaded: set[str] = set()
    stored: set[str] = set()
    bases: set[str] = set()
    for code in _all_code(tests):
        name = None
        for step in dis.get_instructions(code):
            if step.opname in ("LOAD_ATTR", "LOAD_METHOD") and name is not None:
                bases.add(name)
            name = step.argval if step.opname in ("LOAD_NAME", "LOAD_GLOBAL") else None
            if name is not None:
                loaded.add(name)
            elif step.opname in ("STORE_NAME", "STORE_GLOBAL"):
                stored.add(step.argval)
    return loaded, stored, bases


def _all_code(codes: list[Any]) -> Iterator[types.CodeType]:
    for code in codes:
        if isinstance(code, types.CodeType):
            yield code
            yield from _all_code(list(code.co_consts))
