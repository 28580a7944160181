"""Price tables: user files with the price of a million tokens for each model.

    currency: USD
    models:
      openai/gpt-4.1-nano: {input: 0.10, output: 0.40}
      anthropic/*: {input: 3, output: 15}

A model is looked up by the engine's model name, then by its AI GO key. `*` matches any text, and the first
matching entry applies.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Annotated

from pydantic import Field, ValidationError

from aigo_bridge.codes import Code
from aigo_bridge.errors import Issue, SpecError
from aigo_bridge.reading import Document, issues_from_validation
from aigo_bridge.reading.loading import Loader, Unreadable
from aigo_bridge.reading.nodes import construct
from aigo_bridge.spec.base import DisplayName, SpecModel

PerMillion = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class _Prices(SpecModel):
    input: PerMillion
    output: PerMillion


class _Table(SpecModel):
    currency: DisplayName
    models: dict[str, _Prices]


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
    loader = Loader(path.parent, {})
    issues: list[Issue] = []
    try:
        node = loader.load(path)
    except Unreadable as error:
        raise SpecError([error.issue]) from error
    data = None if node is None else construct(node, issues)
    if node is None or not isinstance(data, dict):
        raise SpecError("expected a table: currency, models", file=str(path), code=Code.WRONG_PRICE)
    document = Document(None, data, path, loader.root, node=node, texts=loader.texts)
    try:
        table = _Table.model_validate(data)
    except ValidationError as error:
        issues += issues_from_validation(error, document, _Table)
    if issues := [*loader.issues, *issues]:
        issues.sort(key=lambda issue: (issue.line or 0, issue.column or 0))
        raise SpecError([replace(issue, code=Code.WRONG_PRICE) for issue in issues])
    prices = (Price(model, entry.input, entry.output) for model, entry in table.models.items())
    return PriceTable(table.currency, tuple(prices))


def names_of(model_map: Mapping[str, str], model: str | None) -> dict[str, str]:
    """Return AI GO model key (`""` for the evaluated model) → model name for the engine, for models that the
    user named.
    """
    return {**({} if model is None else {"": model}), **model_map}
