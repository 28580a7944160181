"""What the command line makes of golden logs, features and shipped tasks is byte for byte what it was.

`make golden` compares all of it, `make golden-update` rewrites it; the part that is quick is a test like any other.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.conformance.features import features
from tests.golden.outputs.case import Case
from tests.golden.outputs.cases import CASES
from tests.golden.outputs.comparing import difference, load, place, store, stored
from tests.golden.outputs.quick import QUICK
from tests.golden.outputs.reading import outputs
from tests.golden.outputs.running import Worker

MODE = os.environ.get("AIGO_GOLDEN", "quick")
"""`quick`, `all`, or `update`."""

CHOSEN = [case for case in CASES if case.name in QUICK or MODE != "quick"]

TOGETHER = {"inspect", "lighteval"} if MODE == "quick" else {"lighteval"}
"""Engines whose cases stay in one process of the tests: what they load costs more than they take."""


@pytest.fixture(scope="session")
def workers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Worker]]:
    """One for each engine: a process that has loaded torch is slow to fork."""
    found = {engine: Worker(tmp_path_factory.mktemp("home"), engine) for engine in ("inspect", "lighteval")}
    yield found
    for worker in found.values():
        worker.stop()


@pytest.mark.parametrize(
    "case",
    [
        pytest.param(
            case,
            id=case.name,
            marks=[pytest.mark.xdist_group(f"golden {case.engine}")] * (case.engine in TOGETHER),
        )
        for case in CHOSEN
    ],
)
def test_outputs_are_what_they_were(case: Case, workers: dict[str, Worker], tmp_path: Path) -> None:
    found = outputs(case, tmp_path / "here", workers[case.engine])
    if MODE == "update":
        store(case.name, found)
        return
    expected = load(case.name)
    if expected is None:
        pytest.fail(f"{case.name} has no golden: make golden-update", pytrace=False)
    if told := difference(expected, found):
        pytest.fail(f"{case.name} ({place(case.name).name})\n{told}", pytrace=False)


def test_every_golden_belongs_to_a_case() -> None:
    names = {case.name for case in CASES}
    assert len(names) == len(CASES)
    left = stored() - names
    if MODE == "update":
        for name in left:
            place(name).unlink()
    else:
        assert left == set()


def test_the_quick_part_has_every_verb_both_engines_and_each_area_of_features() -> None:
    assert {case.name for case in CASES} >= QUICK
    chosen = [case for case in CASES if case.name in QUICK]
    verbs = {command[0] for case in chosen for command in case.commands if command}
    assert verbs >= {command[0] for case in CASES for command in case.commands if command}
    for verb in ("import", "export", "convert", "run"):
        assert {case.engine for case in chosen if case.commands[0][0] == verb} == {"inspect", "lighteval"}
    areas = {feature.area for feature in features()}
    assert {name.split("/")[3] for name in QUICK if name.startswith("run/") and "/features/" in name} == areas
