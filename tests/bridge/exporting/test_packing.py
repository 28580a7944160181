"""A packed export is the same task on another machine: files, rows, ids and digest."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aigo_bridge.access.grants import Grants, granting
from aigo_bridge.codes import Code
from aigo_bridge.errors import SpecError, UnsupportedPlanError, UsageError
from aigo_bridge.evaluation.task import plan
from aigo_bridge.exporting.manifest import ExportManifest, read_manifest
from aigo_bridge.exporting.packing import pack, packed_plan, typed_arguments, write_rows
from aigo_bridge.plan.plan import PlanOrigin, TaskPlan
from aigo_bridge.spec.parameters import (
    BooleanParameter,
    CategoricalParameter,
    DictParameter,
    FloatParameter,
    IntParameter,
    ListParameter,
    Parameter,
    StringParameter,
)

TASK = """\
key: qa
display_name: QA
description: ""
config_spec:
  - {{type: int, key: n, display_name: N, default_value: 3}}
definition:
  dataset: {dataset}
  solver:
    type: single_turn_solver
    input_builder:
      type: chat_completion
      input_messages:
        - {{role: user, content: {content}}}
  scorers: {scorers}
"""


def write_task(
    folder: Path,
    *,
    content: str = '"{{ sample.q }} << config.n >>"',
    scorers: str = "[]",
    dataset: str = "{key: rows}",
) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "task.yaml").write_text(TASK.format(content=content, scorers=scorers, dataset=dataset))
    (folder / "rows.jsonl").write_text('{"q": "a"}\n{"q": "b", "x": 1}\n{"q": "c"}\n')
    return folder / "task.yaml"


def packed(made: TaskPlan, folder: Path) -> TaskPlan:
    """Return the plan that is read from the packed files of a plan."""
    manifest = ExportManifest(
        "qa", "hosted", "inspect", made.task.key, made.task.display_name, "", made.digest, "", len(made.samples),
        made.num_trials, True, made.model_keys, (), (), (), dict(made.config),
    )  # fmt: skip
    pack(made, folder, manifest).write(folder)
    return packed_plan(folder, made.config)


def same(one: TaskPlan, other: TaskPlan) -> bool:
    """Return whether two plans are equal except for their origin. NaN equals NaN."""
    rows = [json.dumps([sample.id, dict(sample.data)]) for sample in one.samples]
    return one.header() == other.header() and rows == [
        json.dumps([sample.id, dict(sample.data)]) for sample in other.samples
    ]


def test_included_files_are_packed_with_their_paths(tmp_path: Path) -> None:
    """Includes are nested, from parent folders and subfolders, as text and YAML."""
    root = tmp_path / "author"
    scorers = "[{$ref: ../scorers/equal.yaml}]"
    file = write_task(root / "tasks" / "deep", content="!include ../../prompts/ask.md", scorers=scorers)
    (root / "prompts").mkdir()
    (root / "prompts" / "ask.md").write_text("Say {{ sample.q }} – << config.n >>\n")
    (root / "tasks" / "scorers").mkdir()
    (root / "tasks" / "scorers" / "equal.yaml").write_text(
        "type: string_equals\nground_truth: !include ./truth.jinja\n"
    )
    (root / "tasks" / "scorers" / "truth.jinja").write_text("{{ sample.q }}")
    made = plan(PlanOrigin(str(file), root=str(root)))

    again = packed(made, tmp_path / "packed")

    assert same(made, again)
    assert sorted(path.relative_to(tmp_path / "packed").as_posix() for path in (tmp_path / "packed").rglob("*.*")) == [
        "export.json", "samples.jsonl", "task/prompts/ask.md", "task/tasks/deep/task.yaml", "task/tasks/scorers/equal.yaml",
        "task/tasks/scorers/truth.jinja",
    ]  # fmt: skip


def test_includes_by_absolute_path_are_refused(tmp_path: Path) -> None:
    file = write_task(tmp_path / "author", content=f"!include {tmp_path}/author/ask.md")
    (tmp_path / "author" / "ask.md").write_text("x")
    made = plan(PlanOrigin(str(file)))

    with pytest.raises(UnsupportedPlanError, match=r"cannot be moved to another folder: .*written relative"):
        packed(made, tmp_path / "packed")


def test_rows_chosen_by_number_keep_their_ids(tmp_path: Path) -> None:
    file = write_task(tmp_path / "author")
    (tmp_path / "author" / "rows.jsonl").write_text("".join(f'{{"q": "{n}"}}\n' for n in range(20)))
    made = plan(PlanOrigin(str(file), num_samples=2, subsampling="random"))
    assert [sample.id for sample in made.samples] != [0, 1]

    again = packed(made, tmp_path / "packed")

    assert same(made, again)
    assert again.num_samples == 2
    assert again.dataset is not None
    assert again.dataset.total == 20


def test_packed_plan_with_fewer_rows_has_a_different_digest(tmp_path: Path) -> None:
    made = plan(PlanOrigin(str(write_task(tmp_path / "author"))))
    packed(made, tmp_path / "packed")

    fewer = packed_plan(tmp_path / "packed", made.config, num_samples=2)

    assert same(fewer, plan(PlanOrigin(str(tmp_path / "author" / "task.yaml"), num_samples=2)))
    assert fewer.digest != made.digest


def test_several_datasets_are_packed_as_one_file_each(tmp_path: Path) -> None:
    file = write_task(
        tmp_path / "author", dataset="{keys: [rows, more]}", content='"{{ sample.rows.q }} << config.n >>"'
    )
    (tmp_path / "author" / "more.jsonl").write_text('{"q": "d", "y": [1]}\n{"q": "e"}\n{"q": "f"}\n')
    made = plan(PlanOrigin(str(file), num_samples=2, subsampling="random"))
    assert [set(sample.data) for sample in made.samples] == [{"rows", "more"}] * 2

    assert same(made, packed(made, tmp_path / "packed"))


def test_display_name_of_a_dataset_file_is_kept(tmp_path: Path) -> None:
    file = write_task(tmp_path / "author", dataset="{key: named}")
    entity = "key: named\ndisplay_name: A name\nsource: {type: local, file_path: rows.jsonl}\n"
    (tmp_path / "author" / "named.yaml").write_text(entity)
    made = plan(PlanOrigin(str(file)))

    again = packed(made, tmp_path / "packed")

    assert same(made, again)
    assert again.dataset is not None
    assert again.dataset.display_name == "A name"


def test_a_task_that_reads_other_environment_variables_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with granting(Grants(variables=frozenset({"AIGO_TEST_PROMPT"}))):
        monkeypatch.setenv("AIGO_TEST_PROMPT", "Say it")
        made = plan(PlanOrigin(str(write_task(tmp_path / "author", content="$AIGO_TEST_PROMPT"))))
        assert same(made, packed(made, tmp_path / "packed"))
        assert "Say it" not in (tmp_path / "packed" / "task" / "task.yaml").read_text()

        monkeypatch.setenv("AIGO_TEST_PROMPT", "Say something else")

        with pytest.raises(UsageError, match="reads environment variables, and they have other values here"):
            packed_plan(tmp_path / "packed", made.config)


def test_export_that_this_release_reads_differently_is_refused(tmp_path: Path) -> None:
    made = plan(PlanOrigin(str(write_task(tmp_path / "author"))))
    packed(made, tmp_path / "packed")
    manifest = read_manifest(tmp_path / "packed")
    replace(manifest, release="0.0.1", task_digest="0" * 64).write(tmp_path / "packed")

    with pytest.raises(UsageError, match=r"otherwise than 0\.0\.1, which exported them; install that one"):
        packed_plan(tmp_path / "packed", made.config)


def test_files_changed_during_packing_are_refused(tmp_path: Path) -> None:
    file = write_task(tmp_path / "author")
    made = plan(PlanOrigin(str(file)))
    file.write_text(file.read_text().replace("QA", "Other"))

    with pytest.raises(UnsupportedPlanError):
        packed(made, tmp_path / "packed")


def test_dataset_that_is_not_in_the_export_is_refused(tmp_path: Path) -> None:
    file = write_task(tmp_path / "author", dataset="{key: << config.d >>}")
    text = file.read_text()
    parameter = "config_spec:\n  - {type: dataset, key: d, display_name: D, default_value: rows}\n"
    file.write_text(text.replace("config_spec:\n", parameter))
    made = plan(PlanOrigin(str(file)))
    packed(made, tmp_path / "packed")

    with pytest.raises(UsageError, match="the export has the rows of dataset 'rows' only") as caught:
        packed_plan(tmp_path / "packed", {**made.config, "d": "other"})
    assert caught.value.code == Code.OTHER_EXPORT


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "export.json is missing"),
        ("{", "is damaged"),
        ("[]", "is damaged"),
        ("{}", "is damaged: 'format'"),
        ('{"format": 2}', "has format 2, this release reads format 1"),
        ('{"format": 1}', "is damaged: 'module'"),
    ],
)
def test_a_folder_that_is_not_an_export_is_reported(
    content: str | None, message: str, tmp_path: Path
) -> None:
    if content is not None:
        (tmp_path / "export.json").write_text(content)

    with pytest.raises(UsageError, match=message) as caught:
        read_manifest(tmp_path)
    assert (caught.value.code == Code.OTHER_RELEASE) is (message.startswith("has format"))


cells = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("ab\u2028é", max_size=3), inner, max_size=3),
    max_leaves=8,
)  # fmt: skip
a_row = st.dictionaries(st.sampled_from(["q", "x y", "sample_id", "items", "ü"]), cells, min_size=1)


@settings(deadline=None)
@given(rows=st.lists(a_row, min_size=1, max_size=4))
def test_packed_rows_are_restored_unchanged(
    rows: list[dict[str, Any]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    """This includes types, NaN, infinities, long integers and Unicode line separators."""
    from aigo_bridge.datasets.files import load_file

    file = tmp_path_factory.mktemp("rows") / "rows.jsonl"
    columns = dict.fromkeys(name for row in rows for name in row)
    complete = [{name: row.get(name, math.nan) for name in columns} for row in rows]

    write_rows(complete, file)

    assert [repr(row.data) for row in load_file(file).rows] == [repr(row) for row in complete]


def common(key: str) -> dict[str, Any]:
    return {"key": key, "display_name": key}


PARAMETERS: list[Parameter] = [
    StringParameter(type="string", **common("text")),
    IntParameter(type="int", **common("whole")),
    FloatParameter(type="float", **common("number")),
    BooleanParameter(type="boolean", **common("flag")),
    ListParameter(type="list", dtype="string", **common("texts")),
    ListParameter(type="list", dtype="integer", **common("wholes")),
    ListParameter(type="list", dtype="boolean", **common("flags")),
    DictParameter(type="dict", value_dtype="integer", **common("map")),
    CategoricalParameter(type="categorical", allowed_values=("a", "b"), **common("one")),
    CategoricalParameter(type="categorical", allowed_values=("a", "b"), multiple=True, **common("several")),
]


@pytest.mark.parametrize(
    ("key", "arrived", "meant"),
    [
        ("text", ["a", " b"], "a, b"),
        ("text", "", ""),
        ("whole", "3", 3),
        ("number", "1e-3", 0.001),
        ("number", 2, 2),
        ("flag", "true", True),
        ("texts", "a", ["a"]),
        ("texts", "", []),
        ("texts", ["1", "b"], ["1", "b"]),
        ("wholes", ["1", "2"], [1, 2]),
        ("wholes", 1, [1]),
        ("flags", ["true", "false"], [True, False]),
        ("map", {"a": 1}, {"a": 1}),
        ("one", "a", "a"),
        ("several", "a", ["a"]),
        ("several", ["a", "b"], ["a", "b"]),
        ("text", None, None),
    ],
)
def test_received_arguments_are_converted_to_parameter_types(
    key: str, arrived: object, meant: object
) -> None:
    assert typed_arguments(PARAMETERS, {key: arrived}) == {key: meant}


def test_argument_changed_by_yaml_parsing_is_refused() -> None:
    """YAML reads `010` as 8 and `yes` as true, so the original text cannot be restored."""
    with pytest.raises(SpecError) as caught:
        typed_arguments(PARAMETERS, {"text": 8, "one": True, "unknown": 1})

    assert [issue.path for issue in caught.value.issues] == [("config", "text"), ("config", "one")]
    assert all(issue.hint for issue in caught.value.issues)


def test_plan_without_a_file_cannot_be_packed(tmp_path: Path) -> None:
    made = replace(plan(PlanOrigin(str(write_task(tmp_path / "author")))), origin=None)

    with pytest.raises(UnsupportedPlanError, match="does not come from a file"):
        packed(made, tmp_path / "packed")
