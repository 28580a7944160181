"""Outputs of the command line for golden logs, features and shipped tasks equal their goldens byte for byte.

`make golden-update` rewrites the goldens. `make test` compares every case. Promises covered by other tests have no golden.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.conformance.features import features
from tests.golden.outputs.case import Case
from tests.golden.outputs.cases import CASES, CHOSEN
from tests.golden.outputs.comparing import difference, load, place, store, stored
from tests.golden.outputs.reading import outputs
from tests.golden.outputs.running import Worker

UPDATE = "AIGO_GOLDEN" in os.environ
"""Whether goldens are rewritten."""


@pytest.fixture(scope="session")
def workers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Worker]]:
    """Return one worker for each engine, because a process with torch is slow to fork."""
    found = {engine: Worker(tmp_path_factory.mktemp("home"), engine) for engine in ("inspect", "lighteval")}
    yield found
    for worker in found.values():
        worker.stop()


@pytest.mark.parametrize(
    "case",
    # One test process for each engine, because loading an engine costs more than running its cases.
    [
        pytest.param(case, id=case.name, marks=pytest.mark.xdist_group(f"golden {case.engine}"))
        for case in CASES
    ],
)
def test_outputs_equal_their_goldens(case: Case, workers: dict[str, Worker], tmp_path: Path) -> None:
    found = outputs(case, tmp_path / "here", workers[case.engine])
    if UPDATE:
        store(case.name, found)
        return
    expected = load(case.name)
    if expected is None:
        pytest.fail(f"{case.name} has no golden: make golden-update", pytrace=False)
    if told := difference(expected, found):
        pytest.fail(f"{case.name} ({place(case.name).name})\n{told}", pytrace=False)


def test_every_golden_has_a_case() -> None:
    names = {case.name for case in CASES}
    assert len(names) == len(CASES)
    left = stored() - names
    if UPDATE:
        for name in left:
            place(name).unlink()
    else:
        assert left == set()


def test_cases_have_both_engines_and_every_area_of_features() -> None:
    assert {case.name for case in CASES} >= CHOSEN
    for verb in ("import", "export", "convert", "run"):
        assert {case.engine for case in CASES if case.commands[0][0] == verb} == {"inspect", "lighteval"}
    areas = {feature.area for feature in features()}
    assert {
        name.split("/")[3] for name in CHOSEN if name.startswith("run/") and "/features/" in name
    } == areas
