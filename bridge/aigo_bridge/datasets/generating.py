"""Generated datasets: start rows, then a sequence of synthesizers.

Each synthesizer converts one row into any number of rows. Rows are generated in the order of the start
rows, until the requested number is reached. The model may then have been called unnecessarily for the rest
of one batch.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from aigo_bridge.codes import Code
from aigo_bridge.datasets.rows import Rows
from aigo_bridge.datasets.synthesis import Ask, ModelSynthesizer, RunSnippet, Step, step_for
from aigo_bridge.errors import BridgeError, DatasetError, Issue
from aigo_bridge.spec.datasets import (
    DatasetGeneratorSpec,
    DatasetSampleCombinationsSource,
    DatasetSamplesSource,
    EmptySource,
    GeneratorDefinition,
    GeneratorSource,
    GeneratorSpecification,
    InlineSamplesSource,
    TaskResultSource,
)
from aigo_bridge.spec.parameters import resolve_config
from aigo_bridge.templates import bind_config
from aigo_bridge.text.plurals import plural

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor

LoadRows = Callable[[str], Rows]
"""Function from the key of a dataset to its rows. It raises the errors of the dataset."""

RowData = dict[str, Any]


@dataclass(frozen=True)
class GeneratorTools:
    """Functions that synthesizers call."""

    ask: Ask | None = None
    """Calls a model; used by several threads at the same time."""
    run_snippet: RunSnippet | None = None
    """Runs `synthesize(source)` of an author's snippet; `None` to reject snippets."""
    workers: int = 8
    """Maximum number of concurrent model calls."""


@dataclass(frozen=True)
class StartRows:
    """Sources of a generator's start rows; missing sources are rejected."""

    dataset: LoadRows | None = None
    """Returns the rows of a dataset, by its key."""
    result: LoadRows | None = None
    """Returns the rows of an earlier task result, by its key."""


def generate(
    generator: DatasetGeneratorSpec, request: GeneratorSpecification, start: StartRows, tools: GeneratorTools
) -> tuple[list[RowData], tuple[Issue, ...]]:
    """Return at most `request.num_samples` rows, and a warning if the start rows gave fewer.

    Raises:
        SpecError: config values are missing or wrong.
        TemplateError: a template is wrong or fails for a row.
        DatasetError: a start row, a model answer or a snippet result cannot be used, or a function is
            missing.
    """
    from concurrent.futures import ThreadPoolExecutor

    config = resolve_config(generator.config_spec, request.dataset_generator_config)
    written = generator.definition.model_dump(mode="json", exclude_unset=True)
    definition = GeneratorDefinition.model_validate(bind_config(written, config, secrets=generator.secrets))
    steps = [step_for(synthesizer, tools.ask, tools.run_snippet) for synthesizer in definition.synthesizers]
    rows: Iterator[RowData] = iter(_start_rows(definition.dataset, start))
    with ThreadPoolExecutor(max_workers=tools.workers) as pool:
        for number, step in enumerate(steps):
            rows = _applied(step, number, rows, pool, tools.workers)
        samples = list(itertools.islice(rows, request.num_samples))
    if len(samples) == request.num_samples:
        return samples, ()
    message = (
        f"the generator created {plural(len(samples), 'row', form=',')}, but "
        f"{request.num_samples:,} were requested"
    )
    return samples, (
        Issue(message, hint="all start rows are used", severity="warning", code=Code.FAILED_GENERATOR),
    )


def _applied(
    step: Step, number: int, rows: Iterator[RowData], pool: ThreadPoolExecutor, workers: int
) -> Iterator[RowData]:
    """Yield the rows after one step. Model calls run ahead by at most the number of workers."""
    if not isinstance(step, ModelSynthesizer):
        for row in rows:
            yield from _made(step, number, row)
        return
    while batch := list(itertools.islice(rows, workers)):
        for results in pool.map(lambda row: _made(step, number, row), batch):
            yield from results


def _made(step: Step, number: int, row: RowData) -> list[RowData]:
    try:
        return step.rows_from(row)
    except DatasetError:
        raise
    except BridgeError as error:
        raise DatasetError(
            str(error), path=("definition", "synthesizers", number), code=Code.FAILED_GENERATOR
        ) from error


def _start_rows(source: GeneratorSource, start: StartRows) -> Iterable[RowData]:
    match source:
        case EmptySource():
            return ({} for _ in range(int(source.num_samples)))
        case InlineSamplesSource():
            return (dict(sample) for sample in source.samples)
        case DatasetSamplesSource():
            return _shuffled(_loaded([source.key], start.dataset)[0], source.random_seed)
        case DatasetSampleCombinationsSource():
            tables = _loaded(list(source.keys), start.dataset)
            merged = (
                {key: value for row in rows for key, value in row.items()}
                for rows in itertools.product(*tables)
            )
            return merged if source.random_seed is None else _shuffled(list(merged), source.random_seed)
        case TaskResultSource():
            return _loaded([source.key], start.result, "task result")[0]


def _loaded(keys: Sequence[str | None], load: LoadRows | None, what: str = "dataset") -> list[list[RowData]]:
    path = ("definition", "dataset")
    if None in keys:
        raise DatasetError(f"a {what} key is missing in the generator", path=path, code=Code.FAILED_GENERATOR)
    if load is None:
        raise DatasetError(
            [
                Issue(f"the {what} {key!r} cannot be read", path=path, code=Code.FAILED_GENERATOR)
                for key in keys
            ]
        )
    return [[row.data for row in load(str(key)).rows] for key in keys]


def _shuffled(rows: list[RowData], seed: int | str | None) -> list[RowData]:
    if seed is None:
        return rows
    # One `random()` per row gives the same result in every Python version; `shuffle` may change.
    rank = random.Random(int(seed)).random  # noqa: S311  # a row order, not a secret
    ranks = [rank() for _ in rows]
    return [row for _, row in sorted(zip(ranks, rows, strict=True), key=lambda pair: pair[0])]
