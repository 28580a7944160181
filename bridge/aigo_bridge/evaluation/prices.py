"""Price tables: user files with the price of a million tokens for each model.

    currency: USD
    models:
      openai/gpt-4.1-nano: {input: 0.10, output: 0.40}
      anthropic/*: {input: 3, output: 15}

A model is looked up by the engine's model name, then by its AI GO key. `*` matches any text, and the first
matching entry applies.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import yaml
from yaml.nodes import MappingNode, Node, ScalarNode

from aigo_bridge.access.opening import open_regular
from aigo_bridge.codes import Code
from aigo_bridge.errors import Issue, SpecError

MOST_BYTES = 1_000_000
_FIELDS = ("input", "output")


@dataclass(frozen=True)
class Price:
    """Price of a million tokens, in the currency of the table."""

    model: str
    """Model name or pattern of the entry."""
    input: float
    output: float


@dataclass(frozen=True)
class PriceTable:
    """Prices of models."""

    currency: str
    prices: tuple[Price, ...]

    def price(self, *names: str | None) -> Price | None:
        """Return the price of a model with any of these names; `None` if the table does not contain it."""
        for name in names:
            if name:
                for price in self.prices:
                    if fnmatchcase(name, price.model):
                        return price
        return None


def read_prices(path: Path) -> PriceTable:
    """Read a price table.

    Raises:
        SpecError: the file is not a price table; lists every problem with its position.
    """
    try:
        with open_regular(path) as file:
            text = file.read(MOST_BYTES + 1)
        if len(text) > MOST_BYTES:
            raise SpecError(
                f"a price table may have at most {MOST_BYTES} bytes", file=str(path), code=Code.WRONG_PRICE
            )
        root = yaml.compose(text.decode(), Loader=yaml.SafeLoader)
    except OSError as error:
        raise SpecError(
            f"it cannot be read: {error.strerror}", file=str(path), code=Code.UNREADABLE_FILE
        ) from error
    except UnicodeDecodeError as error:
        raise SpecError("it is not UTF-8", file=str(path), code=Code.NOT_UTF8) from error
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        message = f"not valid YAML: {getattr(error, 'problem', None) or error}"
        line = None if mark is None else mark.line + 1
        raise SpecError(message, file=str(path), line=line, code=Code.NOT_YAML) from error
    issues: list[Issue] = []
    table = _table(root, path, issues)
    if issues or table is None:
        raise SpecError(issues)
    return table


def _table(root: Node | None, path: Path, issues: list[Issue]) -> PriceTable | None:
    parts = dict(_entries(root, path, issues, "a table: currency, models", ("currency", "models")))
    currency, models = parts.get("currency"), parts.get("models")
    if not isinstance(currency, ScalarNode) or not currency.value.strip():
        issues.append(_issue(path, currency or root, "expected 'currency', e.g. USD"))
    if models is None:
        issues.append(_issue(path, root, "expected 'models': model → {input: …, output: …}"))
        return None
    prices: list[Price] = []
    for name, node in _entries(models, path, issues, "model → {input: …, output: …}"):
        fields = dict(_entries(node, path, issues, "{input: …, output: …}", _FIELDS))
        figures = {field: _figure(fields.get(field), node, field, path, issues) for field in _FIELDS}
        prices.append(Price(name, **figures))
    return PriceTable(str(getattr(currency, "value", "")), tuple(prices))


def _entries(
    node: Node | None, path: Path, issues: list[Issue], expected: str, names: tuple[str, ...] = ()
) -> Iterator[tuple[str, Node]]:
    if not isinstance(node, MappingNode):
        issues.append(_issue(path, node, f"expected {expected}"))
        return
    seen: set[str] = set()
    for key, value in node.value:
        name = key.value if isinstance(key, ScalarNode) else ""
        if name in seen or not name or (names and name not in names):
            problem = (
                "is in the table twice"
                if name in seen
                else f"is unknown; expected {', '.join(names) or 'a name'}"
            )
            issues.append(_issue(path, key, f"{name!r} {problem}"))
            continue
        seen.add(name)
        yield name, value


def _figure(node: Node | None, entry: Node, field: str, path: Path, issues: list[Issue]) -> float:
    value: Any = node.value if isinstance(node, ScalarNode) else None
    try:
        figure = float(value)
    except (TypeError, ValueError):
        figure = math.nan
    if not (math.isfinite(figure) and figure >= 0):
        shown = "nothing" if node is None else repr(value)
        message = f"{field!r}: found {shown}, expected a price per million tokens (a number of at least 0)"
        issues.append(_issue(path, node or entry, message))
    return figure


def _issue(path: Path, node: Node | None, message: str) -> Issue:
    if node is None:
        return Issue(message, file=str(path), code=Code.WRONG_PRICE)
    mark = node.start_mark
    return Issue(message, file=str(path), line=mark.line + 1, column=mark.column + 1, code=Code.WRONG_PRICE)


def names_of(model_map: Mapping[str, str], model: str | None) -> dict[str, str]:
    """Return AI GO model key (`""` for the evaluated model) → model name for the engine, for models that the
    user named.
    """
    return {**({} if model is None else {"": model}), **model_map}
