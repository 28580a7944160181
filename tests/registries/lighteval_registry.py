"""Conversion of every task in the lighteval registry."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from functools import partial
from typing import Any

from tests.registries.published_rows import lighteval_row
from tests.registries.rows import fitting_row, varied
from tests.registries.table import Verdict, of_error


def verdicts(names: frozenset[str] | None = None) -> Iterator[Verdict]:
    """Return the conversion outcome of each task.

    Args:
        names: names of tasks. `None` converts all tasks that are found without a network.
    """
    from aigo_lighteval.benchmarks.convert import convert
    from aigo_lighteval.benchmarks.pipeline import SplitRows
    from aigo_lighteval.benchmarks.tasks import built_in, select

    for name, config in built_in().configs.items():
        if names is not None and name not in names:
            continue
        (selected,) = select(f"{name}:")
        row = lighteval_row(name)
        try:
            if row is None or not _fits(config, row):
                row = fitting_row(partial(_document, config))
        except LookupError as error:
            yield of_error(name, error, rows=str(error))
            continue
        splits = {
            split: SplitRows([varied(row, number) for number in range(3)])
            for split in (*config.evaluation_splits, *config.hf_avail_splits)
        }
        try:
            converted = convert(selected, splits)
        except Exception as error:  # noqa: BLE001  # a crash is an answer, too, and is counted
            yield of_error(name, error)
            continue
        yield Verdict.of_document(name, converted.task)


def _fits(config: Any, row: Any) -> bool:
    """Return whether a row like the published ones makes a document, with choices or without."""
    from lighteval.tasks.requests import Doc

    try:
        return isinstance(config.prompt_function(copy.deepcopy(row), config.name), Doc)
    except Exception:  # noqa: BLE001  # a stranger's code; then a row is guessed
        return False


def _document(config: Any, cells: Any) -> None:
    """Make the document of a row, as a run would."""
    doc = config.prompt_function(cells, config.name)
    if isinstance(doc, list):
        raise TypeError("several documents of a row, of which lighteval itself makes nothing")
    if doc is None or not doc.choices:
        raise ValueError("no document, or one without choices")
    doc.get_golds()
