"""Parts of a sample in a result: row, scores and texts.

The functions also accept the legacy format and values of types that AI GO does not expect.
"""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from aigo_bridge.codes import Code
from aigo_bridge.errors import UsageError
from aigo_bridge.metrics.grades import score_number
from aigo_bridge.results.counts import trials_of
from aigo_bridge.results.reading import SamplePart
from aigo_bridge.results.rows import items_of
from aigo_bridge.results.values import Json, mappings, member
from aigo_bridge.results.values import value_text as cut_text


def data_of(sample: Json, trial: Json) -> Json:
    """Return the dataset row."""
    for data in (member(trial, "sample", "data"), member(sample, "sample", "data")):
        if isinstance(data, dict):
            return data
    return {}


def values_of(score: Json) -> Iterator[tuple[str, Any]]:
    """Yield name and value of each score."""
    values = score.get("values")
    yield from values.items() if isinstance(values, dict) else ()


def mean_score(part: SamplePart, score: str, *, graded: bool) -> float | None:
    """Return the mean of a numeric score over the trials of a sample; `None` if no trial has a number.

    Args:
        part: sample.
        score: score name as `scorer.score`.
        graded: whether the scores are Inspect's, so that letters count as numbers.
    """
    numbers = [
        double
        for trial in trials_of(part.value)
        for name, double in numbers_of(trial, graded=graded)
        if name == score and double is not None
    ]
    return math.fsum(numbers) / len(numbers) if numbers else None


def numbers_of(trial: Json, *, graded: bool) -> Iterator[tuple[str, float | None]]:
    """Yield `scorer.score` and its number for each score of a trial; `graded` as in `mean_score`."""
    for score in mappings(trial.get("scores")):
        for name, value in values_of(score):
            yield f"{score.get('scorer_key')}.{name}", score_number(value, graded=graded)


_CUSTOM = {"custom_task_input_message": "user", "custom_task_output_message": "assistant"}


def role_of(item: Json) -> str:
    """Return the role of a message, or the type of another item."""
    kind = str(item.get("type"))
    return _CUSTOM.get(kind) or str(item.get("role") or kind)


def last_text(outputs: Sequence[Json], role: str) -> str | None:
    """Return the last message text of a role, from the last conversation with such a message."""
    for output in reversed(outputs):
        for item in reversed(list(items_of(output))):
            if role_of(item) == role:
                return message_text(item.get("content"))
    return None


def message_text(content: Any) -> str:
    """Return the texts of a message, one in each line. A value of a custom task is returned as JSON."""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return value_text(content)
    texts = [part.get("text") or part.get("refusal") for part in mappings(content)]
    return "\n".join(text for text in texts if isinstance(text, str))


def value_text(value: Any) -> str:
    """Return the full value: text unchanged, other types as JSON."""
    return cut_text(value, sys.maxsize)


Field = str | float | bool | None
Condition = Callable[[Callable[[str], Field]], bool]
"""Function that tests a trial, given a function from names to values."""

_TOKEN = re.compile(
    r"""\s+|(?P<sign>==|!=|<=|>=|=|<|>|\(|\)|,)|(?P<number>-?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)(?![\w.])"""
    r"""|"(?P<double>(?:[^"\\]|\\.)*)"|'(?P<single>(?:[^'\\]|\\.)*)'|`(?P<quoted>[^`]*)`|(?P<word>[^\W\d][\w.-]*)""",
    re.DOTALL,
)
_NUMBER = re.compile(r"-?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?")
_CONSTANTS: dict[str, Field] = {"true": True, "false": False, "null": None}
_ESCAPES = {"n": "\n", "t": "\t"}
_ORDERS: dict[str, Callable[[int], bool]] = {
    "==": lambda order: order == 0,
    "=": lambda order: order == 0,
    "!=": lambda order: order != 0,
    "<": lambda order: order < 0,
    "<=": lambda order: order <= 0,
    ">": lambda order: order > 0,
    ">=": lambda order: order >= 0,
}
_DEEPEST = 100


@dataclass(frozen=True)
class _Token:
    kind: Literal["sign", "value", "quoted", "word", "end"]
    text: str
    at: int
    value: Field = None


def condition_of(text: str) -> Condition:
    """Return a test for a condition such as `score < 0.5 and topic == "law"`, with the same syntax as on the
    pages.

    Args:
        text: condition. A comparison with a missing value is false, except `== null`.

    Raises:
        UsageError: the condition has a syntax error; the message contains the position.
    """
    return _Parser(list(_tokens(text))).parsed()


def _tokens(text: str) -> Iterator[_Token]:
    at = 0
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            raise _mistake(f"unexpected {text[at]!r}", at)
        kind = match.lastgroup
        if kind is not None:
            yield _token(kind, match, at)
        at = match.end()
    yield _Token("end", "", at)


def _token(kind: str, match: re.Match[str], at: int) -> _Token:
    content = match[kind]
    match kind:
        case "sign":
            return _Token("sign", content, at)
        case "number":
            return _Token("value", content, at, float(content))
        case "double" | "single":
            plain = re.sub(r"\\(.)", lambda sign: _ESCAPES.get(sign[1], sign[1]), content, flags=re.DOTALL)
            return _Token("value", match[0], at, plain)
        case "quoted":
            return _Token("quoted", content, at)
    if content in _CONSTANTS:
        return _Token("value", content, at, _CONSTANTS[content])
    return _Token("word", content, at)


def _mistake(problem: str, at: int) -> UsageError:
    return UsageError(f"--where: {problem} (character {at + 1})", code=Code.WRONG_OPTION)


class _Parser:
    """Recursive-descent parser of a condition: or, and, not, comparison."""

    def __init__(self, tokens: Sequence[_Token]):
        self._tokens = tokens
        self._place = 0
        self._depth = 0

    def parsed(self) -> Condition:
        """Return the test for all tokens."""
        test = self._any()
        if self._token.kind != "end":
            raise self._expected("and, or or the end")
        return test

    @property
    def _token(self) -> _Token:
        return self._tokens[self._place]

    def _expected(self, what: str) -> UsageError:
        shown = "the end" if self._token.kind == "end" else repr(self._token.text)
        return _mistake(f"expected {what}, found {shown}", self._token.at)

    def _take(self, kind: str, text: str) -> bool:
        """Consume the next token if it has this kind and text, and return whether it does."""
        if self._token.kind != kind or self._token.text != text:
            return False
        self._place += 1
        return True

    def _any(self) -> Condition:
        self._depth += 1
        if self._depth > _DEEPEST:
            raise self._expected("fewer parentheses")
        parts = [self._all()]
        while self._take("word", "or"):
            parts.append(self._all())
        self._depth -= 1
        return lambda field: any(part(field) for part in parts)

    def _all(self) -> Condition:
        parts = [self._negation()]
        while self._take("word", "and"):
            parts.append(self._negation())
        return lambda field: all(part(field) for part in parts)

    def _negation(self) -> Condition:
        times = 0
        while self._take("word", "not"):
            times += 1
        if self._take("sign", "("):
            test = self._any()
            if not self._take("sign", ")"):
                raise self._expected(")")
        else:
            test = self._comparison()
        return test if times % 2 == 0 else lambda field: not test(field)

    def _value(self) -> Field:
        if self._token.kind != "value":
            raise self._expected("a value; texts need quotes")
        self._place += 1
        return self._tokens[self._place - 1].value

    def _comparison(self) -> Condition:
        token = self._token
        if token.kind not in ("word", "quoted"):
            raise self._expected("a name")
        name = token.text
        self._place += 1
        refuse = self._take("word", "not")
        if self._take("word", "in"):
            return self._membership(name, refuse)
        if refuse:
            raise self._expected("in")
        if self._take("word", "contains"):
            needle = str(self._value()).lower()
            return lambda field: (value := field(name)) is not None and needle in _text(value).lower()
        sign = self._token.text if self._token.kind == "sign" else ""
        if sign not in _ORDERS:
            raise self._expected("==, !=, <, <=, >, >=, contains or in")
        self._place += 1
        wanted = self._value()
        if wanted is None:
            if sign not in ("==", "=", "!="):
                raise self._expected("== or != before null")
            return lambda field: (field(name) is None) == (sign != "!=")
        return lambda field: _compares(field(name), wanted, _ORDERS[sign])

    def _membership(self, name: str, refuse: bool) -> Condition:
        if not self._take("sign", "("):
            raise self._expected("(")
        values = [self._value()]
        while self._take("sign", ","):
            values.append(self._value())
        if not self._take("sign", ")"):
            raise self._expected(")")

        def test(field: Callable[[str], Field]) -> bool:
            value = field(name)
            if value is None:
                return not refuse and None in values
            equal = any(one is not None and _compares(value, one, _ORDERS["=="]) for one in values)
            return equal != refuse

        return test


def _text(value: Field) -> str:
    """Return a value in the same format as on the pages."""
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value:g}" if isinstance(value, float) else str(value)


def _compares(field: Field, value: Field, holds: Callable[[int], bool]) -> bool:
    """Return whether two values are in the given order. Numeric texts are compared as numbers."""
    if field is None:
        return False
    if isinstance(value, bool):
        is_equal = _text(field).lower() == _text(value) or (isinstance(field, float) and field == value)
        return holds(0 if is_equal else 1)
    if isinstance(value, float):
        if isinstance(field, str) and not _NUMBER.fullmatch(field):
            return False
        number = float(field)
        return not math.isnan(number) and holds((number > value) - (number < value))
    one, other = _text(field), _text(value)
    return holds((one > other) - (one < other))


_FIXED = {
    "id": "id",
    "trial": "i",
    "run": "r",
    "stop_reason": "z",
    "question": "q",
    "answer": "a",
    "truth": "g",
    "prediction": "p",
    "seconds": "w",
}
"""Cell in the samples table for each name in a condition."""
_NUMERIC = ("trial", "run", "seconds")
FIXED_NAMES = (*_FIXED, "status", "stage", "error", "score")


def field_of(cells: Json, name: str, *, graded: bool) -> Field:
    """Return the value of a name for a trial; `None` if missing.

    Args:
        cells: cells of the trial in the samples table (`aigo_bridge.results.rows`).
        name: name in a condition.
        graded: whether the scores are Inspect's, so that letters count as numbers.
    """
    if name in _FIXED:
        value = cells.get(_FIXED[name])
        return float(value) if value is not None and name in _NUMERIC else value
    errors = cells.get("e") or ()
    match name:
        case "status":
            return _status(cells)
        case "stage":
            return errors[0][0] if errors else None
        case "error":
            return "\n".join(error for _, error in errors) if errors else None
    scores: dict[str, Any] = cells.get("s") or {}
    names = {column.replace("\x1f", "."): value for column, value in scores.items()}
    if name == "score":
        return _score(next(iter(names.values()), None), graded)
    row: Json = cells.get("d") or {}
    if name in row:
        return str(row[name])
    plain = {column.partition("\x1f")[2]: value for column, value in reversed(scores.items())}
    return _score(names.get(name, plain.get(name)), graded)


def _status(cells: Json) -> str:
    state = cells.get("o")
    if state in ("failed", "not finished"):
        return str(state)
    if "x" in cells:
        return "excluded"
    return "not scored" if state == "unscored" else "scored"


def _score(value: Any, graded: bool) -> Field:
    text = value[0] if isinstance(value, list) else value
    if text is None:
        return None
    number = score_number(text, graded=graded) if isinstance(value, list) else None
    if number is not None:
        return number
    return float(text) if _NUMBER.fullmatch(text) else str(text)
