"""References between files, environment variables, and YAML types of plain words."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel
from tests.bridge.reading.reading_examples import EXAMPLES, RUN_FILES, errors_of, issues_of, write

from aigo_bridge.codes import Code
from aigo_bridge.errors import Issue, SpecError
from aigo_bridge.reading import Dialect, read
from aigo_bridge.reading.variables import environment, expand, is_candidate, parse_env
from aigo_bridge.spec.datasets import DatasetSpec
from aigo_bridge.spec.evaluations import RunSpec
from aigo_bridge.spec.models import ModelSpec
from aigo_bridge.spec.task import TaskSpec

TASK = 'key: a\ndisplay_name: A\ndescription: ""\n'
END = "definition: {scorers: []}\n"


def test_included_text_is_stripped_and_never_parsed(tmp_path: Path) -> None:
    write(
        tmp_path,
        {
            "r.md": "\n  # Title\r\n!include x\n$HOME: {a}\n\n",
            "t.yaml": f"{TASK}long_description: !include r.md\n{END}",
        },
    )
    assert (
        read(TaskSpec, tmp_path / "t.yaml", env={"HOME": "x"}).spec.long_description
        == "# Title\n!include x\n$HOME: {a}"
    )


@pytest.mark.parametrize("path", ["r.md", "./r.md", '"r.md"', "'./r.md'", "sub/../r.md"])
def test_include_path_can_be_written_in_several_ways(path: str, tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    write(tmp_path, {"r.md": "text", "t.yaml": f"{TASK}long_description: !include {path}\n{END}"})
    assert read(TaskSpec, tmp_path / "t.yaml").spec.long_description == "text"


def test_reference_is_resolved_relative_to_its_own_file(tmp_path: Path) -> None:
    files = {
        "t.yaml": f"{TASK}definition:\n  scorers:\n    - $ref: scorers/s.yaml\n",
        "scorers/s.yaml": "{type: python, metrics: [], compute_scores_snippet: !include code/s.py}",
        "scorers/code/s.py": "\n\ndef compute_scores(sample):\n    return {\n",
    }
    write(tmp_path, files)
    with pytest.raises(SpecError) as caught:
        read(TaskSpec, tmp_path / "t.yaml")
    (issue,) = caught.value.issues
    assert (Path(issue.file or "").relative_to(tmp_path).as_posix(), issue.line, issue.column) == (
        "scorers/code/s.py",
        4,
        12,
    )
    assert issue.source_line == "    return {"
    assert issue.path == ("definition", "scorers", 0, "compute_scores_snippet")


def test_referenced_file_overrides_keys_next_to_the_reference(tmp_path: Path) -> None:
    write(tmp_path, {"t.yaml": "$ref: base.yaml\nkey: mine\ntags: [x]\n", "base.yaml": TASK + END})
    document = read(TaskSpec, tmp_path / "t.yaml")
    assert (document.spec.key, document.spec.tags) == ("a", ("x",))
    (warning,) = document.issues
    assert warning.message == "'key' is also in 'base.yaml', and the value there is used"


def test_a_whole_file_may_be_a_reference(tmp_path: Path) -> None:
    write(tmp_path, {"t.yaml": "$ref: base.yaml\n", "base.yaml": TASK + END})
    assert read(TaskSpec, tmp_path / "t.yaml").spec.key == "a"


def test_value_is_resolved_in_the_folder_of_its_own_file(tmp_path: Path) -> None:
    files = {
        **RUN_FILES,
        "run.yaml": RUN_FILES["run.yaml"].replace("$ref: dataset.yaml", "$ref: data/dataset.yaml"),
    }
    files["data/dataset.yaml"] = files["dataset.yaml"]
    run = read(RunSpec, write(tmp_path, files) / "run.yaml", env={})
    assert run.folder(("datasets", 0, "source", "file_path")) == tmp_path / "data"
    assert run.folder() == tmp_path


def test_task_in_a_run_file_is_read_as_a_separate_document(tmp_path: Path) -> None:
    run = read(RunSpec, write(tmp_path, RUN_FILES) / "run.yaml", env={})
    task = run.part(("tasks", 0), run.spec.tasks[0])
    assert task.spec.key == "capital-quiz"
    assert task.file == tmp_path / "task.yaml"
    place = task.locate(("definition", "solver", "type"))
    assert place.source_line == "    type: single_turn_solver"
    with pytest.raises(KeyError):
        run.part(("tasks", 9), run.spec.tasks[0])


def test_anchors_and_merge_keys_work(tmp_path: Path) -> None:
    text = (
        TASK
        + "definition:\n  scorers:\n    - &s {type: bleu, ground_truth: a, value: b}\n    - <<: *s\n      ground_truth: c\n    - *s\n"
    )
    (tmp_path / "t.yaml").write_text(text, encoding="utf-8")
    document = read(TaskSpec, tmp_path / "t.yaml")
    assert [scorer["ground_truth"] for scorer in document.data["definition"]["scorers"]] == ["a", "c", "a"]
    assert document.locate(("definition", "scorers", 1, "value")).line == 6


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig"])
@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
def test_line_endings_and_byte_order_marks_are_accepted(encoding: str, newline: str, tmp_path: Path) -> None:
    path = tmp_path / "t.yaml"
    path.write_bytes((TASK + END).replace("\n", newline).encode(encoding))
    document = read(TaskSpec, path)
    assert document.spec.key == "a"
    assert (document.locate(("description",)).line, document.locate(("description",)).column) == (3, 14)


@pytest.mark.parametrize(
    ("raw", "hint"),
    [
        (
            TASK.encode("utf-16"),
            "convert the file to UTF-8: iconv -f UTF-16 -t UTF-8 t.yaml > t.utf8.yaml",
        ),
        (
            b"key: a\nb: \xe9\n",
            "in Windows-1252 it is 'é'; if that is meant, convert the file to UTF-8: iconv -f CP1252 -t UTF-8 t.yaml > t.utf8.yaml",
        ),
        (
            b"b: \x81\n",
            "save it as UTF-8; if you know its encoding: iconv -f ENCODING -t UTF-8 t.yaml > t.utf8.yaml",
        ),
    ],
)
def test_other_encodings_are_rejected_with_position(
    raw: bytes, hint: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "t.yaml").write_bytes(raw)
    with pytest.raises(SpecError) as caught:
        read(TaskSpec, tmp_path / "t.yaml")
    assert caught.value.issues[0].hint == hint
    assert caught.value.code == Code.NOT_UTF8
    if b"\xe9" in raw:
        assert caught.value.issues[0].message.endswith("is not UTF-8 text: byte 11 is not UTF-8 (0xE9)")
        assert (caught.value.issues[0].line, caught.value.issues[0].column) == (2, 4)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "the file is empty"),
        ("# nothing\n", "the file is empty"),
        ("[]", "found another type, expected a task (a mapping)"),
        ("a task", "found another type, expected a task (a mapping)"),
        ("null", "found another type, expected a task (a mapping)"),
    ],
)
def test_file_without_a_mapping_is_rejected(text: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "t.yaml").write_text(text, encoding="utf-8")
    with pytest.raises(SpecError, match=message.replace("(", "\\(").replace(")", "\\)")):
        read(TaskSpec, tmp_path / "t.yaml")


def test_missing_file_and_folder_are_reported(tmp_path: Path) -> None:
    for path, words in ((tmp_path / "x.yaml", "does not exist"), (tmp_path, "is a folder")):
        with pytest.raises(SpecError, match=words):
            read(TaskSpec, path)


def test_json_files_are_read(tmp_path: Path) -> None:
    (tmp_path / "t.json").write_text(
        json.dumps(
            {"key": "a", "display_name": "Ä \U0001f600", "description": "", "definition": {}},
            ensure_ascii=False,
        ),
        encoding="utf-8",
    )
    assert read(TaskSpec, tmp_path / "t.json").spec.display_name == "Ä \U0001f600"


def test_values_are_coerced_as_the_format_specifies(tmp_path: Path) -> None:
    text = (
        TASK
        + "config_spec: [{type: int, key: a, display_name: A, min: ' 3', max: 3.0, default_value: true, nullable: 'off'}]\n"
        + END
    )
    (tmp_path / "t.yaml").write_text(
        text.replace("default_value: true", "default_value: '3'"), encoding="utf-8"
    )
    parameter: Any = read(TaskSpec, tmp_path / "t.yaml").spec.config_spec[0]
    assert (parameter.min, parameter.max, parameter.default_value, parameter.nullable) == (3, 3, 3, False)


def test_variable_is_expanded_if_a_value_starts_with_a_dollar(tmp_path: Path) -> None:
    text = "key: openai$gpt\ndisplay_name: $NAME\ndescription: a $NAME\nconfig: {url: '$BASE/v1', api_key: '${KEY}', model_key: $$TIER}\n"
    (tmp_path / "m.yaml").write_text(text, encoding="utf-8")
    model = read(
        ModelSpec, tmp_path / "m.yaml", env={"NAME": "5", "BASE": "https://x", "KEY": "k", "TIER": "k"}
    )
    config: Any = model.spec.config
    assert (model.spec.key, model.spec.display_name, model.spec.description) == ("openai$gpt", "5", "a $NAME")
    assert (config.url, config.api_key, config.model_key) == ("https://x/v1", "k", "$k")


def test_unset_variable_is_kept_with_a_warning(tmp_path: Path) -> None:
    (tmp_path / "m.yaml").write_text("key: m\ndisplay_name: M\nconfig: {url: $URL}\n", encoding="utf-8")
    document = read(ModelSpec, tmp_path / "m.yaml", env={})
    assert document.data["config"]["url"] == "$URL"
    assert [(issue.severity, issue.message, issue.line, issue.column) for issue in document.issues] == [
        ("warning", "environment variable 'URL' is not set; the text is kept unchanged", 3, 15)
    ]


def test_variables_in_list_items_and_keys_are_not_expanded(tmp_path: Path) -> None:
    (tmp_path / "t.yaml").write_text(f"{TASK}tags: [$A]\n{END}", encoding="utf-8")
    assert read(TaskSpec, tmp_path / "t.yaml", env={"A": "x"}).spec.tags == ("$A",)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("$A", "1"),
        ("$A-x", "1-x"),
        ("${A}${A}", "11"),
        ("$A/x", "1/x"),
        ("$$A", "$1"),
        ("$B", "$B"),
        ("$A$B", "1$B"),
        ("$", "$"),
        ("${}", "${}"),
    ],
)
def test_variables_are_expanded_as_in_a_shell(text: str, expected: str) -> None:
    assert is_candidate(text)
    assert expand(text, {"A": "1"})[0] == expected


@pytest.mark.parametrize("text", ["x$A", "a ${A} b", " $A", "$A\n", "openai$gpt-4", ""])
def test_other_texts_are_not_expanded(text: str) -> None:
    assert not is_candidate(text)


def test_env_file_is_parsed_and_the_process_environment_wins(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = "# c\nA=1\nexport B = two words # c\nC=\"x\\ny\"\nD='a # b'\nE=\nF=a#b\nnot a line\n"
    assert parse_env(text) == {"A": "1", "B": "two words", "C": "x\ny", "D": "a # b", "E": "", "F": "a#b"}
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("A_SET", "process")
    (tmp_path / ".env").write_text("A_SET=file\nB_SET=file\n", encoding="utf-8")
    found = environment()
    assert (found["A_SET"], found["B_SET"]) == ("process", "file")


@pytest.mark.parametrize("key", ["", "1", "yes", "1.5", "2024-01-01", ".nan"])
@pytest.mark.parametrize(
    "where",
    [
        "",
        "config_spec: [{{type: categorical, key: a, display_name: A, allowed_values: [], values_mapping: {{? {} : 1}}}}]\n",
    ],
)
def test_non_text_keys_are_rejected_everywhere(key: str, where: str, tmp_path: Path) -> None:
    text = TASK + (where.format(key) if where else f"? {key}\n: 1\n") + END
    assert any("as a key, expected text" in issue.message for issue in errors_of(text, tmp_path))


def test_unknown_kind_of_file_is_reported(tmp_path: Path) -> None:
    (issue,) = issues_of("name: x\nvalue: 1\n", tmp_path)
    assert issue.message == "unknown kind of file: found 'name', 'value'"


def test_file_of_another_kind_is_rejected_when_one_kind_is_expected(tmp_path: Path) -> None:
    (tmp_path / "t.yaml").write_text(TASK + END, encoding="utf-8")
    with pytest.raises(SpecError, match="unknown key 'definition'"):
        read(DatasetSpec, tmp_path / "t.yaml")


def test_dataset_without_source_or_generator_is_an_error(tmp_path: Path) -> None:
    (issue,) = errors_of("key: a\ndisplay_name: A\ntags: []\nsource: null\n", tmp_path)
    assert issue.message == "expected 'source' or 'generator_specification', found neither"


WORDS = st.sampled_from(
    [
        "type",
        "key",
        "python",
        "loop",
        "mean",
        "<< config.x >>",
        "{{ sample.a }}",
        "{% if %}",
        "{{",
        "\x1b",
        "",
        "a b",
        "$X",
        "is_correct",
    ]
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | WORDS | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(WORDS | st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=6,
)


@given(st.data())
def test_any_document_gives_a_specification_or_issues(data: st.DataObject) -> None:
    import tempfile

    import yaml

    document = yaml.safe_load(EXAMPLES[data.draw(st.sampled_from(sorted(EXAMPLES)))])
    holder, part = document, None
    for _ in range(data.draw(st.integers(1, 6))):
        keys = list(holder) if isinstance(holder, dict) else list(range(len(holder)))
        if not keys:
            break
        part = data.draw(st.sampled_from(keys))
        if not isinstance(holder[part], dict | list) or not holder[part]:
            break
        parent, holder = holder, holder[part]
        if data.draw(st.booleans()):
            holder = parent
            break
    if isinstance(holder, dict) and part not in holder:
        part = next(iter(holder))
    if isinstance(holder, list) and not (isinstance(part, int) and part < len(holder)):
        part = 0
    holder[part] = data.draw(JSON)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "x.yaml")
        path.write_text(json.dumps(document), encoding="utf-8")
        dialects: tuple[Dialect, ...] = ("default", "aigo-3.17")
        for dialect in dialects:
            problems = _problems(path, dialect)
            assert all(issue.file is not None and issue.message for issue in problems)


def _problems(path: Path, dialect: Dialect) -> list[Issue]:
    try:
        return list(read(BaseModel, path, dialect=dialect, env={}).issues)
    except SpecError as error:
        return list(error.issues)
