"""What is not plain, said in JSON: objects, classes, functions and exceptions become mirrors on the other
side of the talk.

Classes are mirrored with their bases, so that `isinstance` and `except` work here. An object of a class that
is derived from `int`, `str` or another plain, unchanging type is an object of such a class here as well, with
the value it really has.
"""

from __future__ import annotations

import sys
import types
import weakref
from collections.abc import Callable
from typing import Any

from aigo_bridge.sandbox.judging.mirror import (
    OF_UNCHANGING,
    SPECIAL,
    UNCHANGING,
    Mirror,
    MirrorType,
    array,
    base_class,
    builtin_error,
    itself,
    mirrored,
    number_of,
    plain_value,
)
from aigo_bridge.sandbox.judging.values import Values

KNOWN = frozenset([
    "builtins", "collections", "collections.abc", "datetime", "decimal", "fractions", "typing", "numbers",
    "enum", "abc", "uuid",
])  # fmt: skip
"""Modules whose classes are the same in both processes."""

FUNCTIONS = (
    types.FunctionType,
    types.BuiltinFunctionType,
    types.MethodType,
    types.MethodDescriptorType,
    types.WrapperDescriptorType,
    types.MethodWrapperType,
)


class Mirrors(Values):
    """The values of one end, with the objects that it handed out and the mirrors that it was handed."""

    end: Any
    """Set by the end that these belong to."""

    def __init__(self, numbers: int):
        super().__init__(numbers)
        self._objects: dict[int, Any] = {}
        self._object_numbers: dict[int, int] = {}
        self._kept: dict[int, Any] = {}
        """Classes, and objects with a plain value; they are few, and stay."""
        self._alive: weakref.WeakValueDictionary[int, Any] = weakref.WeakValueDictionary()
        self.root: Any = MirrorType("object", (Mirror,), {"aigo_class": None, "aigo_mirrors": self})

    def ask(self, operation: str, *operands: Any) -> Any:
        """Have something done by the other side."""
        return self.end.ask(operation, *operands)

    def special(self, name: str, mirror: Any, *operands: Any) -> Any:
        """Call a special method of the other side."""
        return self.end.ask("special", name, mirror, operands)

    def refuse(self, reason: str) -> Any:
        """Something cannot be done with mirrors."""
        raise TypeError(reason)

    def known(self, module: str, name: str) -> Any:
        """A class that both processes have.

        Raises:
            ValueError: it is not one of those.
        """
        value_class = getattr(__import__(module, fromlist=["*"]), name) if module in KNOWN else None
        if not isinstance(value_class, type) and (
            module != "typing" or isinstance(value_class, types.FunctionType)
        ):
            raise ValueError("not a class of both")
        return value_class

    def known_name(self, value: Any) -> tuple[str, str] | None:
        """Module and name of a class that both processes have."""
        if type(value) is not type and type(type(value)).__module__ not in ("builtins", "abc", "typing"):
            return None
        try:
            module, name = (
                value.__module__,
                getattr(value, "__qualname__", None) or getattr(value, "_name", None),
            )
        except Exception:  # noqa: BLE001  # an object may do anything when asked
            return None
        if type(module) is not str or type(name) is not str or module not in KNOWN:
            return None
        if module != "typing" and not issubclass(type(value), type):
            return None
        home = sys.modules.get(module)
        return (module, name) if home is not None and home.__dict__.get(name) is value else None

    def module(self, name: str) -> Any:
        """A module of the other side, as this side has it."""
        raise ValueError("no modules here")

    def taken(self, number: int) -> Any:
        """An object that was handed out."""
        return self._objects[number]

    def has_lent(self, value: Any) -> bool:
        """Whether an object of this side is in the other's hands."""
        return id(value) in self._object_numbers

    def forget(self, numbers: list[int]) -> None:
        """Objects that the other side has let go."""
        for number in numbers:
            del self._object_numbers[id(self._objects.pop(number))]

    def let_go(self, numbers: list[int]) -> list[int]:
        """Those of the numbers whose mirrors are really gone: one may have come again meanwhile."""
        return [number for number in set(numbers) if number not in self._alive]

    def hand_out(self, value: Any) -> int:
        """The number of an object of this side."""
        number = self._object_numbers.get(id(value))
        if number is None:
            number, self._next = self._next, self._next + 2
            self._objects[number] = value
            self._object_numbers[id(value)] = number
        return number

    # Outward

    def outward(self, value: Any, key: bool) -> Any:
        if mirrored(value):
            return ["mine", number_of(value)]
        if type(value) is types.ModuleType:
            return ["module", value.__name__]
        name = self.known_name(value)
        if name is not None:
            return ["known", *name]
        if type(value).__module__ == "numpy":
            form = self._numpy_form(value)
            if form is not None:
                return form
        if issubclass(type(value), type):
            return self._class_form(value)
        if issubclass(type(value), BaseException):
            number = number_of(value)
            return self._error_form(value) if number is None else ["mine", number]
        if type(value) in FUNCTIONS:
            return self._function_form(value)
        if type(value) is types.CoroutineType:
            return ["coroutine", self.hand_out(value)]
        if type(value) is types.GeneratorType:
            return ["generator", self.hand_out(value)]
        kind = self._class_form(type(value))
        plain = next((base for base in UNCHANGING if base in type(value).__mro__), None)
        if plain is not None:
            return ["derived", self.hand_out(value), kind, self.encode(plain_value(plain, value), key)]
        return ["object", self.hand_out(value), kind, hash(value) if key else None]

    def _class_form(self, kind: type) -> Any:
        known = self.known_name(kind)
        if known is not None:
            return ["known", *known]
        if (
            issubclass(kind, BaseException)
            and kind.__module__ in sys.modules
            and kind.__module__ != "__main__"
        ):
            return ["exception", kind.__module__, kind.__name__, builtin_error(kind).__name__]
        new = id(kind) not in self._object_numbers
        number = self.hand_out(kind)
        if not new:
            return ["class", number, None]
        plain = next((base.__name__ for base in UNCHANGING if base in kind.__mro__), None)
        error = builtin_error(kind).__name__ if issubclass(kind, BaseException) else None
        special = set()
        for base in kind.__mro__[:-1]:
            if (plain is None and error is None) or base.__module__ != "builtins":
                special |= {name for name in base.__dict__ if name in SPECIAL}
        bases = [self._class_form(base) for base in kind.__bases__ if self.known_name(base) is None]
        unhashable = getattr(kind, "__hash__", None) is None
        names = [str(kind.__name__), str(getattr(kind, "__qualname__", "")), str(kind.__module__)]
        shown = str.__str__(kind.__doc__) if isinstance(kind.__doc__, str) else None
        return ["class", number, [names, shown, bases, plain or error, sorted(special), unhashable]]

    def _numpy_form(self, value: Any) -> Any:
        """Arrays of plain numbers are values, and single ones what Python has for them."""
        name = type(value).__name__
        if name == "ndarray" and value.dtype.kind in "biufc":
            return ["array", value.dtype.str, list(value.shape), value.tobytes().decode("latin-1")]
        plain = (
            value.item() if hasattr(value, "dtype") and hasattr(value, "item") and name != "ndarray" else None
        )
        return self.encode(plain) if type(plain) in (bool, int, float, complex, str, bytes) else None

    def _function_form(self, value: Any) -> Any:
        names = [
            getattr(value, attribute, None)
            for attribute in ("__name__", "__qualname__", "__module__", "__doc__")
        ]
        return [
            "function",
            self.hand_out(value),
            [attribute if type(attribute) is str else None for attribute in names],
        ]

    def _error_form(self, value: BaseException) -> Any:
        kind = type(value)
        base = builtin_error(kind)
        form = None if base is kind else self._class_form(kind)
        args = value.args if type(value.args) is tuple else ()
        cause = value.__cause__
        return [
            "raised",
            self.hand_out(value),
            base.__name__,
            form,
            [self.encode(arg) for arg in args],
            None if cause is None or cause is value else self.encode(cause),
            self.place(value),
        ]

    def place(self, error: BaseException) -> str:
        """Where an exception was raised, for messages."""
        return ""

    # Inward

    def inward(self, form: list[Any]) -> Any:
        name, *content = form
        if name == "mine":
            return self.taken(*content)
        if name == "known":
            return self.known(*content)
        if name == "module":
            return self.module(*content)
        if name == "class":
            return self._class(*content)
        if name == "exception":
            return self._exception(*content)
        if name == "array":
            return array(*content)
        if name == "raised":
            return self._raised(*content)
        number = content[0]
        if type(number) is not int or number % 2 == self._next % 2:
            raise ValueError("an object's number is not its sender's to give")
        mirror = self._kept.get(number)
        if mirror is None:
            mirror = self._alive.get(number)
        if mirror is not None:
            if type(mirror) is MirrorType:
                raise ValueError("an object with the number of a class")
            return mirror
        return self._new_mirror(name, number, content[1:])

    def _new_mirror(self, name: str, number: int, content: list[Any]) -> Any:
        if name == "derived":
            kind, base = self.decode(content[0]), self.decode(content[1])
            if type(kind) is not MirrorType or type(base) not in UNCHANGING or type(base) not in kind.__mro__:
                raise ValueError("a derived value without its class")
            mirror = type(base).__new__(kind, base)  # type: ignore[call-overload]
            object.__setattr__(mirror, "aigo_number", number)
            self._kept[number] = mirror
            return mirror
        if name == "object":
            kind = self.decode(content[0])
            mirror = self._instance(kind if type(kind) is MirrorType else self.root, number, content[1])
        elif name in ("function", "generator", "coroutine"):
            mirror = getattr(self, f"new_{name}")(number, *content)
        else:
            raise ValueError("a form of no known kind")
        self._alive[number] = mirror
        return mirror

    def _instance(self, kind: Any, number: int, hashed: Any) -> Any:
        if issubclass(kind, (BaseException, *UNCHANGING)):
            raise ValueError("an object of another kind than its class")  # noqa: TRY004
        mirror = object.__new__(kind)
        object.__setattr__(mirror, "aigo_number", number)
        if hashed is not None:
            object.__setattr__(mirror, "aigo_hash", int(hashed))
        return mirror

    def new_function(self, number: int, names: list[Any]) -> Any:
        """A function of the other side."""
        raise NotImplementedError

    def new_generator(self, number: int) -> Any:
        """A generator of the other side."""
        source = self._instance(self.root, number, None)

        def generator() -> Any:
            sent = None
            while True:
                more, value = self.ask("send", source, sent)
                if not more:
                    return value
                sent = yield value

        return generator()

    def new_coroutine(self, number: int) -> Any:
        """A coroutine of the other side, which runs there to its end."""
        source = self._instance(self.root, number, None)

        async def coroutine() -> Any:
            return self.ask("await", source)

        return coroutine()

    def _class(self, number: int, description: Any) -> Any:
        if description is None:
            mirror = self._kept[number]
            if type(mirror) is not MirrorType:
                raise ValueError("no class")
            return mirror
        if type(number) is not int or number % 2 == self._next % 2 or number in self._kept:
            raise ValueError("a class's number is not its sender's to give")
        (name, qualname, module), doc, forms, plain, special, unhashable = description
        bases = [base for base in map(self.decode, forms) if type(base) is MirrorType]
        if not bases:
            bases = [self.root]
        base = base_class(plain)
        if base is not None and not any(issubclass(kind, base) for kind in bases):
            bases.append(base)
        mirror = self._make_class(
            name, bases, base or self.root, {"aigo_class": number, "aigo_mirrors": self}
        )
        limited = OF_UNCHANGING if base in UNCHANGING else SPECIAL
        for method in special:
            if method in limited and method in SPECIAL:
                type.__setattr__(mirror, method, self.special_method(method))
        if base is None or base not in UNCHANGING:
            if unhashable and "__hash__" not in special:
                type.__setattr__(mirror, "__hash__", None)
        else:
            for method in ("__str__", "__repr__", "__format__", "__copy__", "__deepcopy__"):
                if method not in special:
                    type.__setattr__(mirror, method, getattr(base, method, itself))
        for attribute, text in (("__qualname__", qualname), ("__module__", module), ("__doc__", doc)):
            if isinstance(text, str):
                type.__setattr__(mirror, attribute, text)
        self._kept[number] = mirror
        return mirror

    def _make_class(self, name: str, bases: list[Any], base: Any, content: dict[str, Any]) -> Any:
        try:
            return MirrorType(str(name), tuple(bases), dict(content))
        except TypeError:  # bases that do not go together here
            own_bases = (self.root,) if base is self.root else (self.root, base)
            return MirrorType(str(name), own_bases, dict(content))

    def special_method(self, name: str) -> Callable[..., Any]:
        """A special method of a mirror's class."""

        def method(self: Any, *args: Any, **kwargs: Any) -> Any:
            mirrors = type(self).aigo_mirrors
            if name == "__call__":
                return mirrors.ask("call", self, args, kwargs)
            return mirrors.special(name, self, *args)

        method.__name__ = name
        return method

    def _exception(self, module: str, name: str, base: str) -> Any:
        """An exception's class of a library: of this side's, if it has been imported here, else the nearest
        of Python's own.
        """
        kind = getattr(sys.modules.get(module), name, None)
        return kind if isinstance(kind, type) and issubclass(kind, BaseException) else base_class(base)

    def _raised(self, number: int, base: str, form: Any, forms: list[Any], cause: Any, place: str) -> Any:
        kind: Any = base_class(base) if form is None else self.decode(form)
        if not (isinstance(kind, type) and issubclass(kind, BaseException)):
            raise ValueError("no exception")  # noqa: TRY004
        args = tuple(self.decode(arg) for arg in forms)
        try:
            error = kind(*args) if form is None else kind.__new__(kind, *args)
        except Exception:  # noqa: BLE001  # an exception with arguments that its class does not take
            error = kind.__new__(kind)
        object.__setattr__(error, "args", args)
        object.__setattr__(error, "aigo_number", number)
        object.__setattr__(error, "aigo_place", str(place))
        if cause is not None:
            object.__setattr__(error, "__cause__", self.decode(cause))
        return error
