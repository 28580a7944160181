"""`eval.yaml` on the Hub and AI GO tasks have equal prompts, targets and scores in Inspect, in both directions."""

from __future__ import annotations

import json
import math
import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.support.commands import Run
from tests.support.hub import run_by_inspect

DATA_SETS = Path(__file__).resolve().parents[1] / "golden" / "inspect_hub" / "data_sets"
ANSWERS = {
    "Who came home?": "He did.\nANSWER: B",
    "Where is the key?": "I think B, no: **ANSWER: B**",
    "When?": "answer : (c)",
    "one and one?": "It is 3. No:\nANSWER: 2",
    "a thousand and one?": "$1,001",
    "sea wet": "Yes.",
    "sun cold": "no way, yes",
    "France": "Paris",
    "Peru": "  Lima\n",
    "Ägypten": "kairo",
}
GRADES = {"C": 1.0, "I": 0.0}


def result(folder: Path, key: str) -> dict[str, Any]:
    log: dict[str, Any] = json.loads((folder / f"{key}.tasklog.json").read_text())
    return log


def trials(log: dict[str, Any]) -> list[dict[str, Any]]:
    """Return all trials by epoch."""
    samples = [sample.get("trials") or [sample] for sample in log["evidence"]["samples"]]
    return [trial for epoch in zip(*samples, strict=True) for trial in epoch]


def prompt(trial: dict[str, Any]) -> list[list[str]]:
    items = trial["solver"]["output"]["trace"]["items"]
    return [[item["role"], "".join(part["text"] for part in item["content"])] for item in items[:-1]]


def scored(trial: dict[str, Any]) -> list[float]:
    return [score["values"].popitem()[1] for score in trial["scores"]]


def numbers(log: dict[str, Any]) -> list[float]:
    return [value for metric in log["evidence"]["metrics"] for value in metric["values"].values()]


def check_same(log: dict[str, Any], native: dict[str, Any], *, with_errors: bool) -> None:
    samples = native["samples"]
    assert list(map(prompt, trials(log))) == [sample["prompt"] for sample in samples]
    assert list(map(scored, trials(log))) == [
        [GRADES.get(value, value) for value in sample["scores"].values()] for sample in samples
    ]
    metrics = [
        value
        for values in native["metrics"].values()
        for name, value in values.items()
        if with_errors or name != "stderr"
    ]
    assert numbers(log) == pytest.approx(metrics)
    assert all(map(math.isfinite, metrics))


def write_model(folder: Path) -> str:
    rules = [{"match": {"contains": part}, "reply": reply} for part, reply in ANSWERS.items()]
    (folder / "model.jsonl").write_text("".join(json.dumps(rule) + "\n" for rule in rules))
    return "scripted/model.jsonl"


@pytest.mark.slow  # runs each task with Inspect itself
def test_converted_hub_dataset_has_the_metrics_of_inspect_and_round_trips(aigo: Run, tmp_path: Path) -> None:
    native = run_by_inspect(tmp_path / "home", ANSWERS, DATA_SETS / "choices", DATA_SETS / "numbers")
    model = write_model(tmp_path)
    tasks = {
        "choices": {"choices": "task"},
        "numbers/sums": {"numbers": "both/sums"},
        "numbers/facts": {"numbers": "both/facts"},
    }
    assert native.keys() == tasks.keys()
    for name, key in (("choices", "task"), ("numbers", "both")):
        made = aigo("convert", f"inspect-hub:{DATA_SETS / name}", "--out", key)
        assert (made.code, made.err) == (0, "")
    for name, places in tasks.items():
        (place,) = places.values()
        key = {"choices": "stories"}.get(name, name.rpartition("/")[2])
        done = aigo("run", f"{place}/task.yaml", "--model", model, "--out", f"out/{key}")
        assert done.code == 0, done.err
        check_same(result(tmp_path / "out" / key, key), native[name], with_errors=True)
        # Back again: the entry is the one that it was.
        back = aigo("export", f"{place}/task.yaml", "--to", "inspect-hub", "--out", f"back/{key}")
        assert back.code == 0, back.err
        (entry,) = yaml.safe_load((tmp_path / "back" / key / "eval.yaml").read_text())["tasks"]
        once_more = aigo("convert", f"inspect-hub:back/{key}", "--out", f"again/{key}")
        assert once_more.code == 0, once_more.err
        assert entry["id"] == key
        definitions = [
            yaml.safe_load((tmp_path / folder / "task.yaml").read_text())["definition"]
            for folder in (place, f"again/{key}")
        ]
        assert definitions[0] == definitions[1]


CAPITALS = """
key: capitals
display_name: Capitals
description: Capitals of countries
definition:
  type: benchmark_task
  dataset: {key: capitals-rows}
  solver:
    type: single_turn_solver
    input_builder:
      type: chat_completion
      input_messages:
      - {role: system, content: "Answer {shortly} about {{ sample.area }}."}
      - {role: user, content: "{{ sample.question }}"}
      - {role: user, content: "One {word}, {{ sample.area }}: {{ sample.question }}"}
  scorers:
  - {type: string_equals, ground_truth: "{{ sample.answer }}"}
  - type: string_equals
    key: trimmed
    ground_truth: "{{ sample.answer }}"
    value: "{{ solver_output.output.choices[0].message.content | trim }}"
  trials: {num_trials: 2}
"""


@pytest.mark.slow  # runs each task with Inspect itself
def test_exported_task_has_equal_metrics_in_inspect(aigo: Run, tmp_path: Path) -> None:
    (tmp_path / "capitals.yaml").write_text(CAPITALS)
    rows = [
        {"question": "France {x}?", "answer": "Paris", "area": "Europe\n "},
        {"question": "Ägypten?", "answer": "Kairo", "area": "Africa {input}"},
        {"question": "Peru?", "answer": "Lima", "area": "America"},
    ]
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    task = ("capitals.yaml", "--dataset", "capitals-rows=rows.jsonl")
    made = aigo("export", *task, "--to", "inspect-hub", "--out", "capitals")
    assert made.code == 0, made.err
    assert "inspect eval hf/ORG/NAME" in made.out
    done = aigo("run", *task, "--model", write_model(tmp_path), "--out", "out")
    assert done.code == 0, done.err
    native = run_by_inspect(tmp_path / "home", ANSWERS, tmp_path / "capitals")["capitals"]
    check_same(result(tmp_path / "out", "capitals"), native, with_errors=False)
    assert [sample["target"] for sample in native["samples"]] == ["Paris", "Kairo", "Lima"] * 2
    # And again: an export is replaced by the next one alone.
    assert aigo("export", *task, "--to", "inspect-hub", "--out", "capitals").code == 2
    assert aigo("export", *task, "--to", "inspect-hub", "--out", "capitals", "--force").code == 0
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "eval.yaml").write_text("tasks: []\n")
    foreign = aigo("export", *task, "--to", "inspect-hub", "--out", "other", "--force")
    assert foreign.code == 2
    assert "contains files that an export did not write" in foreign.err


def test_task_that_eval_yaml_cannot_express_is_refused_with_its_parts(aigo: Run, tmp_path: Path) -> None:
    text = CAPITALS.replace('role: user, content: "One', 'role: assistant, content: "One')
    text = text.replace("  trials: {num_trials: 2}", '  - {type: bleu, ground_truth: "{{ sample.answer }}"}')
    (tmp_path / "task.yaml").write_text(text)
    (tmp_path / "rows.jsonl").write_text('{"question": "France?", "answer": "Paris", "area": "Europe"}\n')
    task = ("task.yaml", "--dataset", "capitals-rows=rows.jsonl")
    refused = aigo("export", *task, "--to", "inspect-hub", "--out", "capitals")
    assert refused.code == 1
    assert "scorers[2] (bleu)" in refused.err
    assert "no scorer of an eval.yaml returns the same scores" in refused.err
    (tmp_path / "task.yaml").write_text(text.replace("bleu,", "string_equals, key: third,"))
    refused = aigo("export", *task, "--to", "inspect-hub", "--out", "capitals")
    assert refused.code == 1
    assert "its messages are of system, user, assistant" in refused.err
    assert not (tmp_path / "capitals").exists()


def test_lost_parts_of_an_unchanged_task_are_restored_on_export(aigo: Run, tmp_path: Path) -> None:
    """An unchanged converted task contains the complete entry, including parts lost with `--allow-gaps`."""
    shutil.copytree(DATA_SETS / "choices", tmp_path / "lossy")
    document = yaml.safe_load((tmp_path / "lossy" / "eval.yaml").read_text())
    (entry,) = document["tasks"]
    entry["scorers"].append({"name": "model_graded_qa"})
    entry |= {"shuffle_choices": True, "epoch_reducer": "max"}
    (tmp_path / "lossy" / "eval.yaml").write_text(yaml.safe_dump(document))
    assert aigo("convert", "inspect-hub:lossy", "--out", "task").code == 1
    assert aigo("convert", "inspect-hub:lossy", "--out", "task", "--allow-gaps").code == 0
    done = aigo("export", "task/task.yaml", "--to", "inspect-hub", "--out", "back")
    assert done.code == 0, done.err
    (again,) = yaml.safe_load((tmp_path / "back" / "eval.yaml").read_text())["tasks"]
    assert [scorer["name"] for scorer in again["scorers"]] == ["choice", "answer", "model_graded_qa"]
    assert (again["shuffle_choices"], again["epoch_reducer"], again["epochs"]) == (True, "max", 2)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["inspect-hub:none", "--out", "x"], "does not exist"),
        (["inspect-hub:none", "--out", "x", "-T", "repository=one"], "does not exist"),
        (["inspect-hub:none", "--out", "x", "-T", "where=org/rows"], "expected repository=ORG/NAME"),
        ([f"inspect-hub:{DATA_SETS / 'choices'}", "--out", "x", "-T", "repository=one"], "expected ORG/NAME"),
        ([f"inspect-hub:{DATA_SETS / 'numbers'}", "--out", "x", "--key", "one"], "--key: there are 2 tasks"),
    ],
)
def test_wrong_use_is_reported(arguments: list[str], message: str, aigo: Run) -> None:
    done = aigo("convert", *arguments)
    assert done.code == 2
    assert message in done.err


def test_missing_rows_are_reported_with_the_option(aigo: Run, tmp_path: Path) -> None:
    """Files outside the folder are not used, and several candidates are not guessed."""
    (tmp_path / "outside.jsonl").write_text("{}\n")
    (tmp_path / "rows").mkdir()
    (tmp_path / "rows" / "eval.yaml").write_text((DATA_SETS / "choices" / "eval.yaml").read_text())
    (tmp_path / "rows" / "test.jsonl").symlink_to(tmp_path / "outside.jsonl")
    made = aigo("convert", "inspect-hub:rows", "--out", "task")
    assert made.code == 0
    assert "pass the rows of stories when you run it: --dataset stories-rows=FILE" in made.err
    cached = tmp_path / "hub" / "datasets--org--rows" / "snapshots" / "abc"
    cached.mkdir(parents=True)
    (cached / "eval.yaml").symlink_to(tmp_path / "rows" / "eval.yaml")
    assert aigo("convert", f"inspect-hub:{cached}", "--out", "cached").code == 0
    source = yaml.safe_load((tmp_path / "cached" / "stories-rows.yaml").read_text())["source"]
    assert source == {
        "type": "huggingface",
        "path": "org/rows",
        "split": "test",
        "load_dataset_kwargs": {"name": "default", "revision": "abc"},
    }
