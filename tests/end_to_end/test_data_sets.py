"""Datasets on the command line: next to the task, combined, and generated in a separate step."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.support.commands import Run

TASK = """
key: t
display_name: T
description: ""
definition:
  dataset: {dataset}
  solver:
    type: single_turn_solver
    input_builder: {{type: chat_completion, input_messages: [{{role: user, content: "{{{{ sample.q }}}}"}}]}}
  scorers:
    - {{type: string_equals, ground_truth: "{{{{ sample.a }}}}"}}
"""


@pytest.fixture
def echo(tmp_path: Path) -> str:
    (tmp_path / "m.jsonl").write_text('{"default": true, "reply": "yes"}\n')
    return "scripted/m.jsonl"


def rows(path: Path, *answers: str) -> None:
    path.write_text(
        "".join(json.dumps({"q": f"{path.stem}-{n}", "a": a}) + "\n" for n, a in enumerate(answers))
    )


@pytest.mark.parametrize("place", ["d.jsonl", "datasets/d.jsonl", "datasets/d.yaml", "other.yaml"])
def test_rows_are_found_next_to_the_task(aigo: Run, tmp_path: Path, echo: str, place: str) -> None:
    (tmp_path / "t.yaml").write_text(TASK.format(dataset="{key: d}"))
    path = tmp_path / place
    path.parent.mkdir(exist_ok=True)
    if path.suffix == ".yaml":
        rows(path.parent / "data.jsonl", "yes", "no")
        path.write_text("key: d\ndisplay_name: D\nsource: {type: local, file_path: data.jsonl}\n")
    else:
        rows(path, "yes", "no")

    done = aigo("run", "t.yaml", "--model", echo, "--json")

    assert done.code == 0, done.err
    assert done.json["metrics"][0]["value"] == 0.5


SIDE_BY_SIDE = (
    TASK.format(dataset="{keys: [questions, my-answers]}")
    .replace("sample.q", "sample.questions.q")
    .replace("sample.a", "sample['my-answers'].a")
)


@pytest.fixture
def beside(tmp_path: Path) -> Path:
    """Task with two datasets, one of them with ids."""
    (tmp_path / "t.yaml").write_text(SIDE_BY_SIDE)
    (tmp_path / "questions.jsonl").write_text('{"q": "a", "sample_id": "x"}\n{"q": "b", "sample_id": "y"}\n')
    (tmp_path / "my-answers.csv").write_text("a,n\nyes,1\nno,2\n")
    return tmp_path


@pytest.mark.parametrize("engine", ["inspect", "lighteval"])
def test_datasets_are_combined_by_row(aigo: Run, beside: Path, echo: str, engine: str) -> None:
    """`keys`: row n of each dataset is part of sample n, under the dataset's key."""
    done = aigo("run", "t.yaml", "--model", echo, "--out", "out", "--engine", engine)

    assert done.code == 0, done.err
    result = json.loads((beside / "out" / "t.tasklog.json").read_text())
    samples = result["evidence"]["samples"]
    assert [sample["trials"][0]["sample"]["data"] for sample in samples] == [
        {"questions": {"q": "a", "sample_id": "x"}, "my-answers": {"a": "yes", "n": 1}},
        {"questions": {"q": "b", "sample_id": "y"}, "my-answers": {"a": "no", "n": 2}},
    ]
    assert [sample["sample_id"] for sample in samples] == [0, 1]
    assert result["evidence"]["metrics"][0]["values"] == {"accuracy": 0.5}


def test_combined_rows_are_selected_together(aigo: Run, beside: Path, echo: str) -> None:
    """If all datasets have equal ids, the samples have these ids."""
    (beside / "my-answers.csv").write_text("a,sample_id\nyes,x\nno,y\n")

    done = aigo("run", "t.yaml", "--model", echo, "-n", 1, "--subsampling", "random", "--out", "out")

    assert done.code == 0, done.err
    (sample,) = json.loads((beside / "out" / "t.tasklog.json").read_text())["evidence"]["samples"]
    data = sample["trials"][0]["sample"]["data"]
    assert data["questions"]["sample_id"] == data["my-answers"]["sample_id"] == sample["sample_id"]


def test_mismatched_combined_datasets_are_reported(aigo: Run, beside: Path, echo: str) -> None:
    (beside / "my-answers.csv").write_text("a,sample_id\nyes,y\nno,x\n")
    swapped = aigo("run", "t.yaml", "--model", echo)
    (beside / "my-answers.csv").write_text("a,sample_id\nyes,x\n")
    short = aigo("run", "t.yaml", "--model", echo)
    (beside / "t.yaml").write_text(SIDE_BY_SIDE.replace("questions.q", "questions.qq"))
    (beside / "my-answers.csv").write_text("a\nyes\nno\n")
    typo = aigo("run", "t.yaml", "--model", echo)

    assert swapped.code == 0
    assert "in 2 of 2 positions their ids differ (first: 'x' and 'y')" in swapped.err
    assert (short.code, typo.code) == (2, 2)
    assert "different numbers of rows: 'questions' has 2, 'my-answers' has 1" in short.err
    assert "`sample.questions.qq` is not a column of dataset 'questions'" in typo.err
    assert "did you mean 'q'?" in typo.err


def test_empty_cells_of_combined_rows_are_reported(aigo: Run, beside: Path, echo: str) -> None:
    (beside / "questions.jsonl").write_text('{"q": "a"}\n{"q": null}\n')

    done = aigo("run", "t.yaml", "--model", echo)

    assert "column 'questions.q' is null in 1 of 2 samples (first: sample 1)" in done.err


def test_task_with_several_datasets_is_exported(aigo: Run, beside: Path, echo: str) -> None:
    done = aigo("export", "t.yaml", "--to", "inspect", "--out", "exported")

    assert done.code == 0, done.out + done.err
    names = {path.name for path in (beside / "exported").rglob("samples*.jsonl")}
    assert names == {"samples.jsonl", "samples_2.jsonl"}


def test_data_files_stay_below_their_root(aigo: Run, tmp_path: Path, echo: str) -> None:
    """A foreign dataset file cannot read the rest of the disk."""
    (tmp_path / "secret.jsonl").write_text('{"q": "key", "a": "yes"}\n')
    folder = tmp_path / "tasks"
    folder.mkdir()
    (folder / "t.yaml").write_text(TASK.format(dataset="{key: d}"))
    (folder / "d.yaml").write_text(
        "key: d\ndisplay_name: D\nsource: {type: local, file_path: ../secret.jsonl}\n"
    )

    refused = aigo("run", "tasks/t.yaml", "--model", echo)
    allowed = aigo("run", "tasks/t.yaml", "--model", echo, "--root", tmp_path)

    assert refused.code == 2
    assert "--root" in refused.err or "outside" in refused.err
    assert allowed.code == 0, allowed.err


def test_random_subsampling_is_deterministic(aigo: Run, tmp_path: Path, echo: str) -> None:
    (tmp_path / "t.yaml").write_text(TASK.format(dataset="{key: d}"))
    rows(tmp_path / "d.jsonl", *["yes"] * 50)

    shown = [
        [
            sample["sample_id"]
            for sample in json.loads((tmp_path / out / "t.tasklog.json").read_text())["evidence"]["samples"]
        ]
        for out in ("a", "b")
        if aigo("run", "t.yaml", "--model", echo, "-n", 5, "--subsampling", "random", "--out", out).code == 0
    ]

    assert shown[0] == shown[1]
    assert shown[0] == sorted(shown[0])
    assert shown[0] != [0, 1, 2, 3, 4]


@pytest.fixture
def generated(tmp_path: Path) -> Path:
    """Dataset whose rows are made by a model and a snippet."""
    (tmp_path / "d.yaml").write_text(
        "key: d\ndisplay_name: D\ngenerator_specification:\n  dataset_generator_key: g\n  num_samples: 3\n"
        "  dataset_generator_config: {writer: w}\n"
    )
    (tmp_path / "g.yaml").write_text(
        """
key: g
display_name: G
description: ""
config_spec:
  - {type: model, key: writer, display_name: Writer}
definition:
  dataset:
    type: inline_samples
    samples: [{q: Norway}, {q: Peru}, {q: Japan}]
  synthesizers:
    - type: llm
      model_key: << config.writer >>
      user_prompt_template: "Capital of {{ source.q }}?"
      sample_properties: {a: {type: string}}
    - type: python
      synthesize_snippet: |
        def synthesize(source):
            return [{**source, "a": source["a"].lower()}]
"""
    )
    (tmp_path / "w.jsonl").write_text(
        '{"match": {"contains": "Norway", "on": "user"}, "reply": "{\\"a\\": \\"YES\\"}"}\n'
        '{"default": true, "reply": "{\\"a\\": \\"No\\"}"}\n'
    )
    return tmp_path


def test_generated_rows_are_written_and_run(aigo: Run, generated: Path, echo: str) -> None:
    done = aigo("generate", "d.yaml", "--out", "rows.jsonl", "--model-map", "w=scripted/w.jsonl")
    assert done.code == 0, done.err
    assert [json.loads(line) for line in (generated / "rows.jsonl").read_text().splitlines()] == [
        {"q": "Norway", "a": "yes"},
        {"q": "Peru", "a": "no"},
        {"q": "Japan", "a": "no"},
    ]

    (generated / "t.yaml").write_text(TASK.format(dataset="{key: d}"))
    done = aigo("run", "t.yaml", "--dataset", "d=rows.jsonl", "--model", echo, "--json")
    assert done.json["metrics"][0]["value"] == pytest.approx(1 / 3)


def test_run_without_generated_rows_names_the_generate_command(aigo: Run, generated: Path, echo: str) -> None:
    """Planning calls no model and runs no snippet."""
    (generated / "t.yaml").write_text(TASK.format(dataset="{key: d}"))

    done = aigo("run", "t.yaml", "--model", echo)

    assert done.code == 2
    assert "aigo-bridge generate d.yaml --out d.jsonl" in done.err


PASSED_ON = """
key: g
display_name: G
description: ""
config_spec:
  - {type: dataset, key: from, display_name: From, default_value: cities}
definition:
  dataset: START
  synthesizers: [{type: empty}]
"""

REQUEST = (
    "key: d\ndisplay_name: D\ngenerator_specification:\n"
    "  {dataset_generator_key: g, num_samples: 9, dataset_generator_config: {}}\n"
)


@pytest.mark.parametrize("given", [False, True])
@pytest.mark.parametrize(
    ("start", "cities"),
    [
        ("{type: dataset_samples, key: cities}", ["Oslo", "Bergen"]),
        ("{type: dataset_samples, key: << config.from >>}", ["Oslo", "Bergen"]),
        ("{type: dataset_sample_combinations, keys: [cities, years]}", ["Oslo", "Oslo", "Bergen", "Bergen"]),
    ],
)
def test_generated_rows_start_from_datasets(
    aigo: Run, tmp_path: Path, start: str, cities: list[str], *, given: bool
) -> None:
    """The source datasets are next to the file, or passed by their keys."""
    (tmp_path / "d.yaml").write_text(REQUEST)
    (tmp_path / "g.yaml").write_text(PASSED_ON.replace("START", start))
    elsewhere = tmp_path / ("elsewhere" if given else "datasets")
    elsewhere.mkdir()
    (elsewhere / "cities.csv").write_text("city\nOslo\nBergen\n")
    (elsewhere / "years.jsonl").write_text('{"year": 1}\n{"year": 2}\n')
    options = [
        f"--dataset={name}=elsewhere/{name}.{kind}" for name, kind in (("cities", "csv"), ("years", "jsonl"))
    ]

    done = aigo("generate", "d.yaml", "--out", "rows.jsonl", *(options if given else []))

    assert done.code == 0, done.err
    rows = [json.loads(line) for line in (tmp_path / "rows.jsonl").read_text().splitlines()]
    assert [row["city"] for row in rows] == cities
    assert (
        "was not found" in aigo("generate", "d.yaml", "--out", "o", "--dataset", "other=x").err or not given
    )


def test_generated_rows_start_from_a_task_result(aigo: Run, tmp_path: Path, echo: str) -> None:
    (tmp_path / "t.yaml").write_text(TASK.format(dataset="{key: d}"))
    rows(tmp_path / "d.jsonl", "yes", "no")
    assert aigo("run", "t.yaml", "--model", echo, "--out", "out").code == 0
    (tmp_path / "new.yaml").write_text(REQUEST.replace("key: d\n", "key: new\n", 1))
    (tmp_path / "g.yaml").write_text(
        PASSED_ON.replace("START", "{type: task_result, ai_app_key: app, key: t}")
    )

    missing = aigo("generate", "new.yaml", "--out", "rows.jsonl")
    done = aigo("generate", "new.yaml", "--out", "rows.jsonl", "--dataset", "t=out/t.tasklog.json")

    assert missing.code == 2
    assert "task result 't' was not found" in missing.err
    assert done.code == 0, done.err
    made = [json.loads(line) for line in (tmp_path / "rows.jsonl").read_text().splitlines()]
    assert [(row["q"], row["scores"]) for row in made] == [
        ("d-0", {"string_equals": {"is_correct": 1.0}}),
        ("d-1", {"string_equals": {"is_correct": 0.0}}),
    ]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["none.yaml", "--out", "r.jsonl"], "file 'none.yaml' does not exist"),
        (["d.yaml", "--out", "r.jsonl"], "--model-map 'w=PROVIDER/MODEL'"),
        (["d.yaml"], "Missing option"),
    ],
)
def test_wrong_use_of_generate_is_reported(
    aigo: Run, generated: Path, arguments: list[str], message: str
) -> None:
    done = aigo("generate", *arguments)

    assert done.code == 2
    assert message in done.err
    assert not (generated / "r.jsonl").exists()
