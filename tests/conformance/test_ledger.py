"""The ledger of known gaps is correct and has no duplicates."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from tests.conformance.carrying_out import faults
from tests.conformance.comparing import ENGINES
from tests.conformance.features import features, ready
from tests.conformance.ledger import LEDGER, KnownGap, entries
from tests.support.commands import TASKS


def test_every_entry_names_an_engine_and_a_feature() -> None:
    known = {feature.id for feature in features()}
    known |= {f"task: {folder.name}" for folder in TASKS.iterdir() if (folder / "task.yaml").is_file()}
    assert [entry for entry in entries() if entry[0] not in ENGINES or entry[1] not in known] == []


def test_no_gap_is_listed_twice() -> None:
    listed = list(entries())
    assert len(set(listed)) == len(listed)


def test_no_gap_is_left_as_todo() -> None:
    assert [gap for gap in LEDGER if gap.kind == "todo"] == []


def test_every_feature_runs_on_at_least_one_engine() -> None:
    """A feature must run on at least one engine."""
    listed = list(entries())
    assert {
        feature for _, feature in listed if all((engine, feature) in listed for engine in ENGINES)
    } == set()


@pytest.fixture
def listed(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Return a function that replaces the entries of the ledger."""

    def put(*gaps: KnownGap) -> None:
        monkeypatch.setattr("tests.conformance.ledger.LEDGER", gaps)

    return put


def found(name: str, folder: Path) -> list[str]:
    (feature,) = [each for each in features() if each.id == name]
    return faults(name, lambda: ready(feature, folder / "task"), folder, feature.expect)


@pytest.mark.xdist_group("conformance")
def test_an_unlisted_gap_fails(listed: Callable[..., None], tmp_path: Path) -> None:
    listed()
    (fault,) = found("scorers: code_exec", tmp_path)
    assert fault.startswith("lighteval refuses what the ledger does not list")


@pytest.mark.xdist_group("conformance")
def test_an_outdated_gap_fails(listed: Callable[..., None], tmp_path: Path) -> None:
    listed(KnownGap("inspect", ("solvers: single turn, chat",), "never", "cannot", "cannot"))
    (fault,) = found("solvers: single turn, chat", tmp_path)
    assert fault == "inspect carries out what the ledger lists as a gap (cannot)"


@pytest.mark.xdist_group("conformance")
def test_a_refusal_for_another_reason_fails(listed: Callable[..., None], tmp_path: Path) -> None:
    listed(KnownGap("lighteval", ("scorers: code_exec",), "never", "is tired", "too late in the day"))
    (fault,) = found("scorers: code_exec", tmp_path)
    assert fault.startswith("lighteval refuses, but not because of 'too late in the day'")
