"""Messages about missing results, unused models and unavailable options."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.support.commands import Run

TASK = """\
key: t
display_name: T
description: ''
definition:
  dataset: {key: rows}
  scorers:
    - type: model_as_a_judge_classifier
      model_key: judge
      system_prompt: Say correct or incorrect.
      user_prompt: "{{ sample.q }}"
      correct_labels: [correct]
      incorrect_labels: [incorrect]
"""
MISSING = "nothere"
VERBS = [
    ("report", MISSING),
    ("report", f"{MISSING}.tasklog.json"),
    ("show", MISSING),
    ("stats", MISSING),
    ("compare", MISSING, "other"),
    ("check", MISSING, "--rule", "accuracy >= 1"),
    ("table", MISSING, "--out", "x.csv"),
    ("sql", "select 1", MISSING),
    ("plot", MISSING, "--out", "x.svg"),
    ("verify", MISSING),
    ("attest", MISSING, "--new-key", "key"),
    ("bundle", MISSING, "--out", "b.zip"),
    ("view", MISSING),
    ("validate", MISSING),
    ("import", MISSING),
    ("export", MISSING, "--to", "inspect-log", "--out", "x.eval"),
    ("explain", MISSING),
    ("run", MISSING, "--model", "m/m"),
    ("generate", MISSING, "--out", "x.jsonl"),
    ("upgrade", MISSING),
    ("power", MISSING),
]


@pytest.fixture
def task(tmp_path: Path) -> Path:
    (tmp_path / "rows.jsonl").write_text('{"q": "correct"}\n')
    path = tmp_path / "t.yaml"
    path.write_text(TASK)
    return path


@pytest.mark.parametrize("words", VERBS, ids=lambda words: f"{words[0]} {words[1]}"[:30])
def test_a_missing_file_is_reported_as_missing(words: tuple[str, ...], aigo: Run) -> None:
    done = aigo(*words)
    assert done.code == 2
    assert MISSING in done.err
    assert any(said in done.err for said in ("no logs at ", "does not exist")), done.err
    assert "expected one that ends in" not in done.err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("run", "--model-map", "jugde=m/m"), "does not use model 'jugde' (did you mean 'judge'?)"),
        (
            ("run", "--model-map", "judge=m/m", "--model-map", "other=m/m"),
            "does not use model 'other' (it uses 'judge')",
        ),
        (("explain", "--cost", "--model-map", "jugde=m/m"), "does not use model 'jugde'"),
    ],
)
def test_unused_model_is_named(arguments: tuple[str, ...], message: str, task: Path, aigo: Run) -> None:
    verb, *options = arguments
    done = aigo(verb, task, *options)
    assert done.code == 2
    assert f"--model-map: the task {message}" in done.err


def test_unused_model_of_a_generator_is_refused(tmp_path: Path, aigo: Run) -> None:
    (tmp_path / "g.yaml").write_text(
        "key: g\ndisplay_name: G\ndescription: ''\ndefinition:\n"
        "  dataset: {type: inline_samples, samples: [{q: 1}]}\n  synthesizers: [{type: empty}]\n"
    )
    (tmp_path / "d.yaml").write_text(
        "key: d\ndisplay_name: D\n"
        "generator_specification: {dataset_generator_key: g, num_samples: 1, dataset_generator_config: {}}\n"
    )
    done = aigo("generate", "d.yaml", "--out", "o.jsonl", "--model-map", "judge=m/m")
    assert done.code == 2
    assert "the generator does not use model 'judge'" in done.err


def test_hidden_options_are_not_suggested(aigo: Run) -> None:
    for typed in ("--mor", "--engine-opt"):
        done = aigo("run", typed, "x")
        assert done.code == 2
        assert typed in done.err
        assert "--more" not in done.err
        assert "--engine-option" not in done.err


@pytest.mark.engine
def test_error_code_follows_the_message_of_inspect(
    task: Path, aigo: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    done = aigo("run", task, "--engine", "inspect", "--model-map", "judge=openai/gpt-4o", "--out", "o")
    (line,) = [line for line in done.err.splitlines() if "OPENAI_API_KEY" in line]
    assert line.startswith("error: model 'openai/gpt-4o': Unable to initialise OpenAI client")
    assert line.endswith("environment. [AB402]")
