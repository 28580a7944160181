"""Untrusted task files: includes stay in the folder, and no code is executed."""

from __future__ import annotations

from pathlib import Path

import pytest

from aigo_bridge.errors import SpecError
from aigo_formats.definitions import Function
from aigo_formats.lm_eval.tasks.definition import read_definition


def written(folder: Path, **files: str) -> Path:
    for name, text in files.items():
        (folder / f"{name}.yaml").write_text(text)
    return folder / "task.yaml"


def problem(path: Path) -> str:
    with pytest.raises(SpecError) as error:
        read_definition(path, path.parent)
    assert all(issue.code != "AB000" for issue in error.value.issues)
    return "\n".join(str(issue) for issue in error.value.issues).replace(f"{path.parent}/", "")


def test_keys_of_a_task_override_included_keys(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        task="include: [one.yaml, two.yaml]\ntask: t\ntarget_delimiter: ''\n",
        one="doc_to_text: one\ntarget_delimiter: ' '\nmetric_list: [{metric: acc}]\n",
        two="doc_to_text: two\ntask_list: []\n",
    )
    definition = read_definition(path, tmp_path)
    assert definition.values == {
        "doc_to_text": "two",
        "target_delimiter": "",
        "metric_list": [{"metric": "acc"}],
        "task": "t",
    }
    assert definition.places[("metric_list", 0, "metric")].file.endswith("one.yaml")
    assert definition.places[("target_delimiter",)].line == 3


def test_function_tag_is_read_as_a_name_without_execution(tmp_path: Path) -> None:
    (tmp_path / "utils.py").write_text(f"open({str(tmp_path / 'run')!r}, 'w')\n")
    path = written(tmp_path, task="task: t\nprocess_docs: !function utils.process_docs\n")
    assert read_definition(path, tmp_path).values["process_docs"] == Function("utils.process_docs")
    assert not (tmp_path / "run").exists()


def test_includes_outside_the_root_folder_are_rejected(tmp_path: Path) -> None:
    (tmp_path / "secret.yaml").write_text("task: secret\n")
    inner = tmp_path / "inner"
    inner.mkdir()
    (inner / "link.yaml").symlink_to(tmp_path / "secret.yaml")
    for name in ("../secret.yaml", str(tmp_path / "secret.yaml"), "link.yaml"):
        assert "is outside the root folder" in problem(written(inner, task=f"include: {name}\ntask: t\n"))
        # The user may name a wider root.
        assert read_definition(inner / "task.yaml", tmp_path).values["task"] == "t"


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({"task": "include: task.yaml\n"}, "task.yaml:1:10: files include each other: task.yaml → task.yaml"),
        (
            {"task": "include: a.yaml\n", "a": "include: task.yaml\n"},
            "a.yaml:1:10: files include each other: task.yaml → a.yaml → task.yaml",
        ),
        ({"task": "task: t\ninclude: none.yaml\n"}, "task.yaml:2:10: 'none.yaml' does not exist"),
        ({"task": "include: 3\n"}, "task.yaml:1:10: 'include': found 3, expected the name of a file"),
        ({"task": "- a\n"}, "is not a mapping"),
        ({"task": ""}, "is not a mapping"),
        ({"task": "a: [b\n"}, "not YAML"),
        ({"task": "a: b\n---\nc: d\n"}, "not YAML"),
        ({"task": "task: !!python/object/apply:os.system ['true']\n"}, "not YAML"),
        ({"task": "task: !other x\n"}, "task.yaml:1:7: unknown tag '!other'"),
        ({"task": "task: !function [a]\n"}, "`!function` without a function name"),
        ({"task": "? [a, b]\n: c\n"}, "a key is not text"),
        ({"task": "task: t\ndoc_to_txt: x\nmetrics: y\n"}, "unknown key 'doc_to_txt' (did you mean 'doc_to_text'?)"),
        ({"task": "task: \x0e\n"}, "not YAML: "),
        ({"task": "task: !!int x\n"}, "a value does not match its tag"),
        ({"task": "~: x\n"}, "the key None is not text"),
        ({"task": "task: " + "[" * 20_000 + "]" * 20_000}, "nested too deeply"),
        ({"task": "task: " + "x" * (1 << 20)}, "cannot be read"),
        (
            {"task": "a: &a [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
                f"{new}: &{new} [*{old}, *{old}, *{old}, *{old}, *{old}, *{old}, *{old}, *{old}, *{old}, *{old}]\n"
                for old, new in zip("abcdef", "bcdefg", strict=True)
            )},
            "expands to more than 100,000 values",
        ),
    ],
)  # fmt: skip
def test_a_file_that_is_not_a_task_is_reported_with_its_position(
    files: dict[str, str], message: str, tmp_path: Path
) -> None:
    assert message in problem(written(tmp_path, **files))


def test_all_unknown_keys_are_reported_together(tmp_path: Path) -> None:
    path = written(tmp_path, task="one: 1\ntwo: 2\n")
    assert problem(path).count("unknown key") == 2


def test_values_that_are_not_text_are_reported(tmp_path: Path) -> None:
    path = tmp_path / "task.yaml"
    path.write_bytes(b"task: \xff\xfe\n")
    assert "is not UTF-8 text" in problem(path)
    assert "cannot be read" in problem(tmp_path)


def test_a_duplicate_key_is_a_warning(tmp_path: Path) -> None:
    definition = read_definition(written(tmp_path, task="task: a\ntask: b\n"), tmp_path)
    assert definition.values["task"] == "b"
    assert [str(issue.line) for issue in definition.warnings] == ["2"]
