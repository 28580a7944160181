"""What a value prints as, and what a name that does not exist is."""

from __future__ import annotations

from enum import Enum
from typing import Any, NoReturn

from jinja2.exceptions import UndefinedError
from jinja2.runtime import Undefined
from jinja2.utils import missing


def text_of(value: object) -> str:
    """What a value prints as inside a template.

    A class may define a static method `__template_text__(value) -> str | None`. It is asked for objects of the class
    and for lists that begin with one, such as the content parts of a message; so a model output can print the text of
    its first choice. Everything else, and what it answers with `None`, prints as in Jinja: `str(value)`.
    """
    if isinstance(value, str):
        # `str` of a member of an enumeration of texts is `Role.user`.
        return str(value.value) if isinstance(value, Enum) else str(value)
    text = own_text(value)
    return str(value) if text is None else text


def own_text(value: object) -> str | None:
    """The text that a value of such a class prints as; `None` for what prints as in Jinja."""
    first = value[0] if isinstance(value, list) and value else value
    text_for = getattr(type(first), "__template_text__", None)
    text = None if text_for is None else text_for(value)
    return None if text is None else str(text)


class UnknownNameError(UndefinedError):
    """A template reads a name that does not exist; `missing` knows which."""

    def __init__(self, missing: MissingName):
        super().__init__(missing.explain())
        self.missing = missing


class MissingName(Undefined):
    """Undefined as AI GO needs it: an error when used, but `default` and `is defined` reach through it.

    Jinja's own strict class raises already on the dot in `sample.meta.lang | default("en")` when `meta`
    is missing.
    """

    __slots__ = ()

    def explain(self) -> str:
        """Jinja's wording."""
        return self._undefined_message

    def _fail(self, *_: Any, **__: Any) -> NoReturn:
        if self._undefined_exception is not UndefinedError:
            raise self._undefined_exception(self._undefined_message)
        raise UnknownNameError(self)

    def _beyond(self) -> MissingName:
        if self._undefined_exception is not UndefinedError:
            self._fail()
        return self

    @property
    def name(self) -> str | None:
        """The name that does not exist."""
        return None if self._undefined_name is None else str(self._undefined_name)

    @property
    def hint(self) -> str | None:
        """Jinja's own explanation, when the cause is not an unknown name."""
        return self._undefined_hint

    @property
    def owner(self) -> object:
        """The object that lacks the name."""
        return self._undefined_obj

    @property
    def owner_is_unknown(self) -> bool:
        """Whether the missing name is a variable of the template rather than a part of something."""
        return self._undefined_obj is missing

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return self._beyond()

    def __getitem__(self, name: Any) -> Any:
        return self._beyond()

    __str__ = __iter__ = __len__ = __bool__ = __contains__ = __call__ = _fail
    __eq__ = __ne__ = __hash__ = __lt__ = __le__ = __gt__ = __ge__ = _fail
    __int__ = __float__ = __complex__ = __index__ = __neg__ = __pos__ = _fail
    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __pow__ = __rpow__ = _fail
    __truediv__ = __rtruediv__ = __floordiv__ = __rfloordiv__ = __mod__ = __rmod__ = _fail
