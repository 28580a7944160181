"""Replay of a recording on every engine: the evidence is the same, and all answers come from the cassette.

The suite tests a part of the features. `AIGO_CONFORMANCE_CASSETTES=all` (`make conformance`) tests all
features and shipped tasks, recorded on both engines.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from tests.conformance.carrying_out import unproved
from tests.conformance.comparing import ENGINES, differences, outcome_on
from tests.conformance.features import Feature, Ready, features, ready
from tests.conformance.ledger import known_gap
from tests.conformance.test_features import surroundings
from tests.conformance.test_shipped_tasks import NAMES, shipped

from aigo_bridge.engine.recording import played_name
from aigo_bridge.errors import Issue
from aigo_bridge.evaluation.costs import AnswerLength, plan_cost
from aigo_trust.recording.recording import Recorder
from aigo_trust.recording.replay import Cassette

pytestmark = pytest.mark.xdist_group("conformance")

WHOLE = os.environ.get("AIGO_CONFORMANCE_CASSETTES") == "all"

LIMITS = frozenset({"time_limit", "cost_limit"})

FEATURES = [
    each
    for each in features()
    if "again" not in each.document and not LIMITS & set(each.document.get("options", {}))
]
"""Features that can be replayed. Excluded are second runs, which reuse data of the first run, and features
that depend on call times or model prices."""

SHOWN = (
    "solvers: multi turn, generate_message by another model",
    "failures: failing models",
    "scorers: string_equals_mcqa with log-likelihoods",
)
"""Features that are always tested."""


def chosen() -> Iterator[tuple[Feature, str]]:
    for number, feature in enumerate(FEATURES):
        engines = [engine for engine in ENGINES if known_gap(engine, feature.id) is None]
        if WHOLE:
            yield from ((feature, engine) for engine in engines)
        elif number % 20 == 5 or feature.id in SHOWN:
            yield feature, engines[number % len(engines)]


SHIPPED = [
    (name, engine)
    for name in (NAMES if WHOLE else ["hp-trivia", "handoff-small"])
    for engine in ENGINES
    if known_gap(engine, f"task: {name}") is None
]


@pytest.mark.parametrize(
    ("feature", "engine"), [pytest.param(*pair, id=f"{pair[0].id} on {pair[1]}") for pair in chosen()]
)
def test_a_feature_is_replayed_from_its_cassette(feature: Feature, engine: str, tmp_path: Path) -> None:
    with surroundings(feature, f"scripted/{tmp_path / 'task' / 'model.rules'}"):
        made = ready(feature, tmp_path / "task")
        assert faults(feature.id, engine, made, tmp_path) == []


@pytest.mark.parametrize(("name", "engine"), SHIPPED)
def test_a_shipped_task_is_replayed_from_its_cassette(name: str, engine: str, tmp_path: Path) -> None:
    assert faults(f"task: {name}", engine, shipped(name), tmp_path) == []


def faults(name: str, engine: str, made: Ready, folder: Path) -> list[str]:
    """Return the errors when every engine replays a recording."""
    recorder = Recorder(folder / "c.cassette")
    try:
        recorded = outcome_on(engine, made.plan, folder / "recorded", **made.settings, recording=recorder)
    finally:
        recorder.close()
    found = [f"not recorded: {reason}" for reason in recorder.reasons]
    recording = folder / "c.cassette"
    found += [
        f"recorded: {each}"
        for each in unproved(made.plan, folder / "recorded" / engine / "result.json", recording)
    ]
    issues: list[Issue] = []
    played: dict[str, Mapping[str, Any]] = {}
    with closing(Cassette(folder / "c.cassette", issues.append)) as cassette:
        for other in ENGINES:
            if known_gap(other, name) is None:
                player = cassette.player()
                settings = {**made.settings, **_played_models(made.settings), "recording": player}
                played[other] = outcome_on(other, made.plan, folder / "played", **settings)
                result = folder / "played" / other / "result.json"
                found += [f"played on {other}: {each}" for each in unproved(made.plan, result, recording)]
                found += [f"{other}: {player.num_missing} calls missing"] if player.num_missing else []
                found += [f"{other}: {player.num_unasked} calls not made"] if player.num_unasked else []
        found += _cost_faults(made, cassette, all_scored=recorded["counts"].failed == 0)
    found += map(str, issues)
    (first, *others) = played
    for other in others:
        found += [f"{first} | {other}: {each}" for each in differences(played[first], played[other])]
    found += [
        f"recorded | {first}: {each}" for each in differences(_nameless(recorded), _nameless(played[first]))
    ]
    return found


def _cost_faults(made: Ready, cassette: Cassette, *, all_scored: bool) -> list[str]:
    """Return an error if the number of model calls is outside the bounds of `explain --cost`."""
    calls = Counter(cassette.line(number)["call"]["model_key"] for number in range(cassette.num_calls))
    return [
        f"{calls[model.key]} calls of {model.key!r} were made, bounds are {model.calls}"
        for model in plan_cost(made.plan, {}, None, AnswerLength()).models
        if calls[model.key] > model.calls.high or (all_scored and calls[model.key] < model.calls.low)
    ]


def _played_models(settings: Mapping[str, Any]) -> dict[str, Any]:
    model = settings.get("model")
    names = {key: played_name(name) for key, name in (settings.get("model_map") or {}).items()}
    return {"model": None if model is None else played_name(model), "model_map": names}


def _nameless(value: Any, key: str = "") -> Any:
    """Return an outcome without model names and without raw requests."""
    if key == "models":
        return len(value)
    if key == "direct_ios":
        return None
    if key == "events":
        # Failed attempts before a retry do not count as calls.
        last = [call for call in value if not call["failed"]] or value[-1:]
        return [_nameless(call) for call in last]
    if key == "usage" and isinstance(value, dict) and "num_prompt_tokens" not in value:
        return sorted(map(str, value.values()))
    if key in ("model", "evaluated_entity", "provider"):
        return None
    if isinstance(value, Mapping):
        return {name: _nameless(part, str(name)) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [_nameless(part) for part in value]
    return value
