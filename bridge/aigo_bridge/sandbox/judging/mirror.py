"""Objects, classes and functions that stand for those of the other process.

A mirror keeps a number; what is done to it is done to the object with that number, over there.
"""

from __future__ import annotations

import builtins
from typing import Any

COMPARISONS = ("__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__")
_OPERATORS = [
    "add", "sub", "mul", "matmul", "truediv", "floordiv", "mod", "divmod", "pow", "lshift", "rshift", "and",
    "xor", "or",
]  # fmt: skip
BINARY = tuple(
    f"__{sign}{name}__" for sign in ("", "r", "i") for name in _OPERATORS if sign + name != "idivmod"
)
_CONVERSIONS = [
    "neg", "pos", "abs", "invert", "int", "float", "complex", "index", "round", "trunc", "floor", "ceil",
    "bool", "len", "hash",
]  # fmt: skip
CONVERSIONS = tuple(f"__{name}__" for name in _CONVERSIONS)
_OTHERS = [
    "str", "repr", "format", "bytes", "iter", "next", "reversed", "getitem", "setitem", "delitem", "contains",
    "enter", "exit", "missing", "await", "aiter", "anext", "aenter", "aexit",
]  # fmt: skip
OTHERS = tuple(f"__{name}__" for name in _OTHERS)
SPECIAL = frozenset((*COMPARISONS, *BINARY, *CONVERSIONS, *OTHERS, "__call__"))
UNCHANGING = (int, float, complex, str, bytes, tuple, frozenset)
OF_UNCHANGING = frozenset(("__str__", "__repr__", "__format__", "__call__", "__enter__", "__exit__"))
"""Special methods that are asked for of objects with a plain value; all else is done with the value."""

FOREIGN_PROTOCOLS = ("__array_", "__cuda_array_", "__torch_", "__dlpack_", "__arrow_c_", "__dataframe_")
"""Beginnings of names by which libraries let an object do their work (`numpy.allclose`, say), or say where in
memory it lies."""


class MirrorType(type):
    """Type of the classes that stand for classes."""

    aigo_mirrors: Any
    aigo_class: int | None

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        return cls.aigo_mirrors.ask("call", cls, args, kwargs)

    def __getattr__(cls, name: str) -> Any:
        if name.startswith(("aigo_", *FOREIGN_PROTOCOLS)) or cls.aigo_class is None:
            raise AttributeError(name)
        return cls.aigo_mirrors.ask("getattr", cls, name)

    def __setattr__(cls, name: str, value: Any) -> None:
        if name.startswith(("aigo_", "_abc", "__")) or cls.aigo_class is None:
            type.__setattr__(cls, name, value)
        else:
            cls.aigo_mirrors.ask("setattr", cls, name, value)

    def __iter__(cls) -> Any:
        return cls.aigo_mirrors.special("__iter__", cls)

    def __len__(cls) -> Any:
        return cls.aigo_mirrors.special("__len__", cls)

    def __getitem__(cls, key: Any) -> Any:
        return cls.aigo_mirrors.special("__getitem__", cls, key)

    def __contains__(cls, item: Any) -> Any:
        return cls.aigo_mirrors.special("__contains__", cls, item)

    def __bool__(cls) -> bool:
        return True


def mirrored(value: Any) -> bool:
    """Whether a value stands for one of the other side."""
    kind = type(value)
    return kind is MirrorType or (type(kind) is MirrorType and number_of(value) is not None)


def number_of(mirror: Any) -> int | None:
    """The number of what a mirror stands for."""
    if type(mirror) is MirrorType:
        return mirror.__dict__.get("aigo_class")
    try:
        number: int = object.__getattribute__(mirror, "aigo_number")
    except AttributeError:
        return None
    return number


def class_of(mirror: Any) -> int | None:
    """The number of the class that a mirror is, or that it is an object of."""
    kind = mirror if type(mirror) is MirrorType else type(mirror)
    number: int | None = kind.aigo_class
    return number


def hash_of(mirror: Any) -> int | None:
    """The hash that came with a mirror, if it did."""
    value: int | None = object.__getattribute__(mirror, "aigo_hash")
    return value


class Mirror(metaclass=MirrorType):
    """An object of the other side."""

    aigo_class = None
    aigo_number = None
    aigo_hash = None

    def __getattr__(self, name: str) -> Any:
        if name.startswith(("aigo_", *FOREIGN_PROTOCOLS)):
            raise AttributeError(name)
        return type(self).aigo_mirrors.ask("getattr", self, name)

    def __setattr__(self, name: str, value: Any) -> None:
        if name.startswith("__") and name.endswith("__"):
            object.__setattr__(self, name, value)
        else:
            type(self).aigo_mirrors.ask("setattr", self, name, value)

    def __delattr__(self, name: str) -> None:
        type(self).aigo_mirrors.ask("delattr", self, name)

    def __del__(self) -> None:
        try:
            number = object.__getattribute__(self, "aigo_number")
            if number is not None and not isinstance(self, BaseException):
                type(self).aigo_mirrors.end.dropped.append(number)
        except (AttributeError, TypeError):
            return  # it was never complete, or the interpreter is ending

    def __copy__(self) -> Any:
        return type(self).aigo_mirrors.ask("copy", self, False)

    def __deepcopy__(self, memo: Any) -> Any:
        return type(self).aigo_mirrors.ask("copy", self, True)

    def __reduce_ex__(self, protocol: Any) -> Any:
        return type(self).aigo_mirrors.refuse(f"a {type(self).__name__} of the answer cannot be pickled")

    def __init_subclass__(cls, **options: Any) -> None:
        if "aigo_class" not in vars(cls):
            cls.aigo_mirrors.refuse(f"tests derive a class from the answer's class {cls.__mro__[1].__name__}")

    def __str__(self) -> Any:
        return type(self).aigo_mirrors.special("__str__", self)

    def __repr__(self) -> Any:
        return type(self).aigo_mirrors.special("__repr__", self)

    def __format__(self, spec: str) -> Any:
        return type(self).aigo_mirrors.special("__format__", self, spec)

    __dict__: Any = property(lambda self: type(self).aigo_mirrors.ask("getattr", self, "__dict__"))


def array(kind: str, shape: list[int], content: str) -> Any:
    """An array of numbers."""
    numpy: Any = __import__("numpy")
    dtype = numpy.dtype(str(kind))
    if dtype.kind not in "biufc":
        raise ValueError("no array of numbers")
    return numpy.frombuffer(content.encode("latin-1"), dtype=dtype).reshape(shape).copy()


def itself(value: Any, *memo: Any) -> Any:
    """The value: what a copy of an unchanging one is."""
    return value


def plain_value(plain: Any, value: Any) -> Any:
    """What a value of a derived class is, whatever its own methods say."""
    if plain is tuple:
        return tuple(tuple.__iter__(value))
    if plain is frozenset:
        return frozenset(frozenset.__iter__(value))
    if plain is int:
        return int.__add__(value, 0)
    if plain is str:
        return str.__str__(value) if type(value) is str else str.__getitem__(value, slice(None))
    if plain is bytes:
        return bytes.__getitem__(value, slice(None))
    return plain.__add__(value, 0) if plain is complex else plain.__pos__(value)


def builtin_error(kind: Any) -> Any:
    """The class itself, or the nearest base, that Python has built in."""
    return next(base for base in kind.__mro__ if builtins.__dict__.get(base.__name__) is base)


def base_class(name: Any) -> Any:
    """The class of Python's own that a mirrored one is derived from; `None`: from none that matters."""
    if name is None:
        return None
    base = getattr(builtins, name)
    if base in UNCHANGING or (isinstance(base, type) and issubclass(base, BaseException)):
        return base
    raise ValueError("no base of both")
