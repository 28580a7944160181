"""Every surface shows the same facts about a result: the facts of each kind are compared with the output of
each surface.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path

import pytest
from tests.support.commands import Finished, Run
from tests.surfaces.kinds import KINDS, Facts, Kind
from tests.surfaces.surfaces import COUNTS, SURFACES
from typer.testing import CliRunner

from aigo_bridge.metrics.names import metric_identities, metric_labels, standard_errors
from aigo_bridge.results.reading import LogReader

pytestmark = [pytest.mark.engine, pytest.mark.slow, pytest.mark.xdist_group("conformance")]


CELLS = [
    pytest.param(kind, surface, id=f"{kind.name}-{surface}")
    for kind in KINDS
    for surface in SURFACES
    if kind.is_run or surface != "run"
]
"""Pairs of kind and surface. Only results of `run` have the summary of `run`."""


@pytest.fixture(scope="module")
def aigo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Run]:
    """Return a function that runs `aigo-bridge` in this process, in an empty folder."""
    from aigo_bridge.cli import app

    before = Path.cwd()
    os.chdir(tmp_path_factory.mktemp("surfaces"))

    def run(*words: object) -> Finished:
        done = CliRunner().invoke(app, [str(word) for word in words])
        if done.exception is not None and not isinstance(done.exception, SystemExit):
            raise done.exception
        return Finished(done.exit_code, done.stdout, done.stderr)

    yield run
    os.chdir(before)


@pytest.fixture(scope="module")
def result_of(aigo: Run, tmp_path_factory: pytest.TempPathFactory) -> Callable[[Kind], Path]:
    """Return a function that creates the result of each kind once."""
    results: dict[str, Path] = {}

    def make(kind: Kind) -> Path:
        if kind.name not in results:
            results[kind.name] = kind.make(tmp_path_factory.mktemp(kind.name), aigo)
        return results[kind.name]

    return make


def expected(facts: Facts) -> dict[str, int]:
    counts = asdict(facts)
    counts["trials"] = facts.samples if facts.trials is None else facts.trials
    counts["failed_trials"] = facts.failed if facts.failed_trials is None else facts.failed_trials
    return {name: counts[name] for name in COUNTS}


def metrics_of(result: Path, *, with_errors: bool = False) -> dict[str, float]:
    """Return the metrics of the evidence by their displayed names. Standard errors are part of their metric,
    or listed separately.
    """
    reader = LogReader(result)
    log = reader.frame()
    metrics = (log.evidence.metrics if log.evidence is not None else None) or []
    definition = log.specification.task.definition.model_dump(mode="json", exclude_unset=True)
    identities = metric_identities(definition, metrics)
    values = [value for metric in metrics for value in metric.values.values()]
    errors = {} if with_errors else standard_errors(identities)
    shown = [place for place in range(len(values)) if place not in errors]
    labels = metric_labels([identities[place] for place in shown])
    return {label: values[place] for label, place in zip(labels, shown, strict=True)}


@pytest.mark.parametrize(("kind", "surface"), CELLS)
def test_a_surface_shows_the_counts_and_metrics_of_the_evidence(
    kind: Kind, surface: str, result_of: Callable[[Kind], Path], aigo: Run
) -> None:
    result = result_of(kind)
    shown = SURFACES[surface](result, aigo)
    facts = expected(kind.facts)
    assert dict(shown.counts) == {name: facts[name] for name in shown.counts}
    if shown.metrics is not None:
        assert shown.metrics == pytest.approx(metrics_of(result, with_errors=shown.lists_errors))


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind.facts.metrics], ids=lambda kind: kind.name)
def test_evidence_metrics_equal_the_hand_counted_ones(kind: Kind, result_of: Callable[[Kind], Path]) -> None:
    metrics = {name: round(value, 4) for name, value in metrics_of(result_of(kind)).items()}
    assert metrics == kind.facts.metrics


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind.is_run], ids=lambda kind: kind.name)
def test_run_ends_with_1_if_a_sample_or_trial_failed(kind: Kind, result_of: Callable[[Kind], Path]) -> None:
    folder = result_of(kind).parent.parent
    failed = kind.facts.failed or kind.facts.failed_trials
    assert (folder / "code.txt").read_text() == ("1" if failed else "0")
