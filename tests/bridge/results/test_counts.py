"""States and counts of samples and trials, the same for every written form of a sample."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.support.results import Json, result, sample, score, trial

from aigo_bridge.dtypes import ScoresData, TaskResultError
from aigo_bridge.results.counts import (
    CANCELLED,
    RUNNING,
    Counts,
    SampleState,
    outcome_label,
    read_counts,
    record_facts,
    sample_facts,
    trial_number,
    trial_state,
)
from aigo_bridge.results.reading import LogReader
from aigo_stats.comparison.columns import read_columns


def ended(value: Any = 1.0, *, index: int = 0, error: str | None = None, scorer: str = "s") -> Json:
    """Return a trial that ended with a score or an error."""
    errors = [] if error is None else [{"error_type": error, "message": "no", "stage": "solver"}]
    scores = [] if error is not None else [score(scorer, {"x": value})]
    return trial("a", [], scores=scores, errors=errors, index=index)


BAD: Any = {"error": "Timeout"}

CASES: dict[str, tuple[Json, SampleState, tuple[int, int, int, int], str]] = {
    # Sample, its state, scored/unscored/failed/unfinished trials, label
    "scored": (sample(ended()), SampleState.SCORED, (1, 0, 0, 0), ""),
    "failed": (sample(ended(**BAD)), SampleState.FAILED, (0, 0, 1, 0), "failed"),
    "partly": (
        sample(ended(), ended(index=1, **BAD), ended(index=2, **BAD)),
        SampleState.SCORED,
        (1, 0, 2, 0),
        "2 of 3 trials failed",
    ),
    "all failed": (sample(ended(**BAD), ended(index=1, **BAD)), SampleState.FAILED, (0, 0, 2, 0), "failed"),
    "null": (sample(ended(None)), SampleState.UNSCORED, (0, 1, 0, 0), "unscored"),
    "NaN": (sample(ended(float("nan"))), SampleState.UNSCORED, (0, 1, 0, 0), "unscored"),
    "running": (sample(ended(error=RUNNING)), SampleState.UNFINISHED, (0, 0, 0, 1), "not finished"),
    "killed": (
        sample(ended(error="CancelledError"), ended(index=1, error=CANCELLED)),
        SampleState.UNFINISHED,
        (0, 0, 0, 2),
        "not finished",
    ),
    "scored, then killed": (
        sample(ended(), ended(index=1, error=CANCELLED)),
        SampleState.SCORED,
        (1, 0, 0, 1),
        "1 of 2 trials not finished",
    ),
    "failed, then killed": (
        sample(ended(**BAD), ended(index=1, error=CANCELLED)),
        SampleState.UNFINISHED,
        (0, 0, 1, 1),
        "not finished, 1 of 2 trials failed",
    ),
    "excluded": (
        {**sample(ended()), "action_records": [{"action": "exclude_from_metrics", "rule_key": "r"}]},
        SampleState.EXCLUDED,
        (1, 0, 0, 0),
        "excluded",
    ),
    "undecided": (
        {**sample(ended()), "errors": [{"error_type": "RuleError", "message": "no"}]},
        SampleState.FAILED,
        (0, 0, 1, 0),
        "failed",
    ),
    "scored together": (
        {**sample(trial("a", []), trial("a", [], index=1)), "scores": [score("s", {"x": 0.5})]},
        SampleState.SCORED,
        (2, 0, 0, 0),
        "",
    ),
    "invalidated": (
        sample(trial("a", [], scores=[score("s", {"x": 1})], errors=[{"error_type": "InvalidatedSample"}])),
        SampleState.SCORED,
        (1, 0, 0, 0),
        "",
    ),
    "legacy": (
        {name: part for name, part in ended(**BAD).items() if name != "index"},
        SampleState.FAILED,
        (0, 0, 1, 0),
        "failed",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_state_of_sample_and_trials(name: str) -> None:
    written, state, trials, label = CASES[name]

    facts = sample_facts(written)

    found = (SampleState.SCORED, SampleState.UNSCORED, SampleState.FAILED, SampleState.UNFINISHED)
    assert facts.state(1) is state
    assert tuple(facts.trials[each] for each in found) == trials
    assert outcome_label(facts, 1) == label
    states = [trial_state(written, each) for each in written.get("trials") or [written]]
    assert [states.count(each) for each in found] == list(trials)


def test_sample_fails_if_all_trials_failed_for_one_scorer() -> None:
    one_of_two = trial("a", [], scores=[score("s", {"x": 1})], errors=[{"error_type": "Timeout"}])
    other = trial("a", [], scores=[score("t", {"x": 1})], errors=[{"error_type": "Timeout"}], index=1)

    assert sample_facts(sample(one_of_two)).state(1) is SampleState.SCORED
    assert sample_facts(sample(one_of_two)).state(2) is SampleState.FAILED
    assert sample_facts(sample(one_of_two, other)).state(2) is SampleState.SCORED


def test_facts_of_records_match_the_written_sample() -> None:
    error = TaskResultError(error_type="Timeout", message="no")
    scores = ScoresData(scorer_key="s", values={"x": 1.0})

    records = record_facts([((), (scores,)), ((error,), ())])

    assert records == sample_facts(sample(ended(), ended(index=1, **BAD)))


def test_counts_of_a_file_add_up_and_match_its_columns(tmp_path: Path) -> None:
    path = tmp_path / "all.tasklog.json"
    path.write_text(json.dumps(result([written for written, *_ in CASES.values()])))

    counts, _ = read_counts(LogReader(path))

    states = [state for _, state, *_ in CASES.values()]
    assert (
        counts.samples
        == len(states)
        == sum((counts.scored, counts.unscored, counts.failed, counts.excluded, counts.unfinished))
    )
    assert counts.failed == states.count(SampleState.FAILED)
    trials = (counts.scored_trials, counts.unscored_trials, counts.failed_trials, counts.unfinished_trials)
    assert counts.trials == sum(trials)
    assert trials == tuple(sum(of_case[2][place] for of_case in CASES.values()) for place in range(4))
    assert read_columns(path).counts == counts


def test_counts_include_trials_only_if_there_are_several() -> None:
    assert Counts(samples=1, scored=1, trials=1).text() == "1 sample"
    assert Counts(samples=2, scored=1, failed=1, trials=2, failed_trials=1).text() == "2 samples: 1 failed"
    several = Counts(samples=4, scored=4, trials=12, failed_trials=7)
    assert several.text() == "4 samples, 12 trials: 7 of 12 trials failed"


def test_trial_numbers_start_at_1() -> None:
    assert [trial_number({"index": 0}, 5), trial_number({}, 5)] == [1, 6]
