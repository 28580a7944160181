"""A scorer type is one file and one row: reading, checks, preview and runs use its record."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from tests.support.commands import Run
from tests.support.recipes import single_turn
from tests.support.scorer_example import KNOWN_WORDS, KnownWordsScorer

from aigo_bridge.scoring.registry import SCORER_TYPES, register
from aigo_bridge.spec import task
from aigo_bridge.spec.scorers import SCORERS

TASK = single_turn({"type": "known_words", "expected": "{{ sample.text }}"}, key="words", question="question")


@pytest.fixture(autouse=True)
def known_words() -> Iterator[None]:
    register(KNOWN_WORDS)
    yield
    del SCORERS["known_words"], SCORER_TYPES[KnownWordsScorer]
    task.rebuild()


@pytest.fixture
def written(tmp_path: Path) -> Path:
    (tmp_path / "rows.jsonl").write_text(
        '{"question": "One?", "text": "a b c"}\n{"question": "Two?", "text": "a"}\n'
    )
    path = tmp_path / "task.yaml"
    path.write_text(yaml.safe_dump(TASK))
    return path


def with_scorer(path: Path, **fields: object) -> Path:
    document = yaml.safe_load(path.read_text())
    document["definition"]["scorers"][0] |= fields
    path.write_text(yaml.safe_dump(document))
    return path


def test_every_scorer_type_can_be_run() -> None:
    assert set(SCORER_TYPES) == set(SCORERS.values())


@pytest.mark.engine
@pytest.mark.parametrize("engine", ["inspect", "lighteval"])
def test_new_scorer_type_runs(engine: str, aigo: Run, written: Path, tmp_path: Path) -> None:
    rules = tmp_path / "model.rules"
    rules.write_text('{"default": true, "reply": "a z"}\n')
    command = ("run", written, "--engine", engine, "--model", f"scripted/{rules}", "--out", tmp_path / "out")
    run = aigo(*command, "--json")
    assert run.code == 0, run.err
    (result,) = (tmp_path / "out").glob("*.tasklog.json")
    evidence = json.loads(result.read_bytes())["evidence"]
    assert [sample["trials"][0]["scores"][0]["values"] for sample in evidence["samples"]] == [
        {"known_words": 0.5}
    ] * 2
    assert [metric["values"] for metric in evidence["metrics"]] == [{"vocabulary": 0.5}]


def test_fields_of_a_new_scorer_type_are_validated(aigo: Run, written: Path) -> None:
    assert aigo("validate", written).code == 0
    wrong = with_scorer(written, min_length=0, metrics=[{"type": "mean", "field": "known_word"}])
    said = aigo("validate", wrong)
    assert said.code == 1
    assert "'min_length': found 0, expected 1 or more" in said.out + said.err
    assert "the scorer does not return score 'known_word'" in said.out + said.err
    unknown = aigo("validate", with_scorer(written, min_length=1, metrics=[], expectd="x"))
    assert (
        "known keys: key, display_name, purpose, metrics, type, expected, min_length"
        in unknown.out + unknown.err
    )
    strict = aigo("validate", written, "--dialect", "aigo-3.17")
    assert "'type': 'known_words' is an aigo-bridge extension" in strict.out + strict.err


def test_templates_of_a_new_scorer_type_are_checked_for_unknown_columns(
    aigo: Run, written: Path, tmp_path: Path
) -> None:
    said = aigo("explain", with_scorer(written, expected="{{ sample.txt }}"))
    assert said.code == 2
    assert "`sample.txt` is not a column of the dataset" in said.err + said.out


def test_new_scorer_type_is_shown_in_the_preview(aigo: Run, written: Path) -> None:
    said = aigo("explain", written, "--json")
    (scorer,) = said.json["samples"][0]["scorers"]
    assert scorer["fields"] == {"expected": "a b c", "min_length": "1"}
    assert "vocabulary" in said.out
