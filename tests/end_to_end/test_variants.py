"""Several variants of one run on the command line: each in its own folder, with a comparison."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from tests.support.commands import REPOSITORY, Run

TASK = """key: ask
display_name: Ask
description: ""
config_spec:
  - {type: string, key: prompt, display_name: Prompt, default_value: "plain {{ sample.q }}"}
  - {type: int, key: times, display_name: Times, default_value: 1}
definition:
  dataset: {key: rows}
  solver:
    type: single_turn_solver
    input_builder:
      type: chat_completion
      input_messages: [{role: user, content: "<< config.times >> << config.prompt >>"}]
  scorers: [{type: string_equals, ground_truth: "{{ sample.a }}", metrics: [{type: mean, field: is_correct, name: right}]}]
"""
FILES = {
    "ask.yaml": TASK,
    "rows.jsonl": '{"q": "one", "a": "yes"}\n{"q": "two", "a": "yes"}\n',
    "a.md": "Be brief. {{ sample.q }}\n",
    "b.md": "Be kind. {{ sample.q }}\n",
    "good.jsonl": '{"match": {"regex": "kind|plain"}, "reply": "yes"}\n{"default": true, "reply": "no"}\n',
    "bad.jsonl": '{"default": true, "reply": "no"}\n',
}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    return tmp_path


def test_each_model_runs_in_its_folder_and_is_compared(aigo: Run, project: Path) -> None:
    done = aigo("run", "ask.yaml", "--model", "scripted/bad.jsonl, scripted/good.jsonl", "--report")

    assert done.code == 0, done.err
    assert {str(path) for path in Path("out").rglob("*.tasklog.json")} == {
        "out/bad/ask.tasklog.json",
        "out/good/ask.tasklog.json",
    }
    assert "2 samples are in both" in done.out
    assert "2 wrong → right" in done.out
    assert {str(path) for path in Path("out").rglob("report.html")} == {"out/report.html"}


def test_parameter_values_are_read_from_files(aigo: Run, project: Path) -> None:
    done = aigo("run", "ask.yaml", "--model", "scripted/good.jsonl", "--vary", "prompt=a.md,b.md", "--json")

    assert done.code == 0, done.err
    variants = done.json["variants"]
    assert [(each["name"], each["result"]["metrics"][0]["value"]) for each in variants] == [
        ("prompt=a", 0.0),
        ("prompt=b", 1.0),
    ]
    (comparison,) = done.json["comparison"]["comparisons"]
    (metric,) = comparison["metrics"]
    assert metric["difference"] == 1.0


def test_all_combinations_are_run_and_ranked(aigo: Run, project: Path) -> None:
    done = aigo(
        "run", "ask.yaml", "--model", "scripted/bad.jsonl,scripted/good.jsonl", "--vary", "prompt=a.md,b.md",
        "--vary", "times=1,2", "--limit", "1", "--json",
    )  # fmt: skip

    assert [each["name"] for each in done.json["variants"]] == [
        f"{model}+prompt={prompt}+times={times}"
        for model in ("bad", "good")
        for prompt in "ab"
        for times in "12"
    ]
    assert [each["result"]["metrics"][0]["value"] for each in done.json["variants"]] == [0.0] * 6 + [1.0] * 2
    assert len(done.json["comparison"]["comparisons"]) == 7
    assert done.json["comparison"]["rankings"]


def test_equal_names_are_distinguished(aigo: Run, project: Path) -> None:
    (project / "more").mkdir()
    shutil.copy(project / "good.jsonl", project / "more" / "Good.jsonl")

    done = aigo("run", "ask.yaml", "--model", "scripted/good.jsonl,scripted/more/Good.jsonl", "--json")

    assert [each["name"] for each in done.json["variants"]] == ["good", "Good_2"]


def test_a_comma_in_a_file_name_does_not_separate_values(aigo: Run, project: Path) -> None:
    shutil.copy(project / "good.jsonl", project / "a,b.jsonl")

    assert aigo("run", "ask.yaml", "--model", "scripted/a,b.jsonl").code == 0
    assert (project / "out" / "ask.tasklog.json").is_file()


def test_run_file_is_run_with_each_model(aigo: Run, tmp_path: Path) -> None:
    shutil.copytree(REPOSITORY / "examples", tmp_path / "examples")
    (tmp_path / "no.jsonl").write_text('{"default": true, "reply": "?"}\n')
    models = "scripted/examples/capitals/answers.jsonl,scripted/no.jsonl"

    done = aigo("run", "examples/capitals/run.yaml", "--model", models)

    assert done.code == 1, "the policy does not hold for the second"
    assert {str(path) for path in Path("out").rglob("evaluation.json")} == {
        "out/answers/evaluation.json",
        "out/no/evaluation.json",
    }
    assert "4 samples are in both" in done.out


def test_benchmark_runs_with_several_models(aigo: Run, tmp_path: Path) -> None:
    """Like Inspect: in one folder, compared on request."""
    shutil.copytree(REPOSITORY / "examples", tmp_path / "examples")
    for name in ("x", "y"):
        (tmp_path / f"{name}.jsonl").write_text('{"default": true, "reply": "?"}\n')

    done = aigo("run", "inspect:examples/riddles/riddles.py", "--model", "scripted/x.jsonl,scripted/y.jsonl")

    assert done.code == 0, done.err
    assert len(list((tmp_path / "out").glob("*.tasklog.json"))) == 2


def test_settings_after_a_model_name_are_not_models(aigo: Run, project: Path) -> None:
    done = aigo("run", "ask.yaml", "--model", "openai/x,temperature=0.7,seed=1", "--engine", "lighteval")

    assert "several variants" not in done.err
    assert not (project / "out" / "temperature=0.7").exists()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--model", "a,"], "--model: found 'a,', expected one or more different models"),
        (["--model", "a,a"], "--model: found 'a,a'"),
        (["--vary", "prompt"], "--vary: found 'prompt', expected KEY=VALUE,VALUE"),
        (["--vary", "prompt=a"], "--vary: found 'prompt=a', expected KEY=VALUE,VALUE"),
        (["--vary", "prompt=a,a"], "--vary: found 'prompt=a,a'"),
        (["--vary", "times=1,2", "--vary", "times=3,4"], "--vary: 'times' is set twice"),
        (["--vary", "times=1,2", "--config", "times=3"], "--vary: 'times' is already set with --config"),
        (["--model", "a,b", "--engine", "inspect,lighteval"], "--engine: found several engines and"),
        (["--vary", "nothing=1,2"], "nothing"),
        (["--vary", "times=1,x"], "times"),
    ],
)
def test_contradictory_options_are_reported_before_the_run(
    aigo: Run, project: Path, words: list[str], message: str
) -> None:
    model = [] if "--model" in words else ["--model", "scripted/good.jsonl"]

    done = aigo("run", "ask.yaml", *model, *words)

    assert done.code == 2
    assert message in done.err
    assert not (project / "out").exists()


def test_failed_variant_does_not_stop_the_others(aigo: Run, project: Path) -> None:
    (project / "fails.jsonl").write_text('{"default": true, "reply": {"error": "broken"}}\n')

    done = aigo("run", "ask.yaml", "--model", "scripted/fails.jsonl,scripted/good.jsonl", "--json")

    assert done.code == 1
    assert [each["exit_code"] for each in done.json["variants"]] == [1, 0]
