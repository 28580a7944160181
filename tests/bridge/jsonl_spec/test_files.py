"""Record files: errors affect one line only and name it, and ids are unique across the file."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.bridge.jsonl_spec.jsonl_records import SOUND, json_values, made, record, tasks

from aigo_bridge.errors import SpecError, UsageError
from aigo_bridge.jsonl_spec import (
    CATEGORIES,
    METRIC_NAMES,
    POST_PROCESS_RULES,
    Rule,
    TaskSpec,
    files,
    fixture_file,
    load_fixtures,
    load_tasks,
    read_records,
    validate_file,
    validate_task,
    write_records,
)


def written(path: Path, *lines: str | bytes | dict[str, Any]) -> Path:
    texts = [line if isinstance(line, str | bytes) else json.dumps(line) for line in lines]
    path.write_bytes(b"".join((text if isinstance(text, bytes) else text.encode()) + b"\n" for text in texts))
    return path


def found(path: Path) -> list[tuple[int | None, str, str]]:
    return [(error.line, error.rule.value, error.field) for error in validate_file(path)[1]]


def test_the_shipped_fixture_has_two_valid_tasks_of_every_category() -> None:
    ten, errors = validate_file(fixture_file())
    assert errors == []
    assert Counter(task.category for task in ten) == dict.fromkeys(CATEGORIES, 2)
    assert {task.metric_name for task in ten} == set(METRIC_NAMES)
    assert {task.post_process for task in ten} == set(POST_PROCESS_RULES)


def test_invalid_fixture_violates_every_rule_exactly_once(bad_file: Path) -> None:
    valid, errors = validate_file(bad_file)
    assert valid == []
    assert [error.rule for error in errors] == list(Rule)
    assert [error.line for error in errors] == list(range(1, len(Rule) + 1))
    lines = bad_file.read_text().splitlines()
    assert [error.text for error in errors] == lines


def test_fixtures_are_loaded_without_a_path() -> None:
    assert list(load_fixtures()) == validate_file(fixture_file())[0]
    assert len(load_fixtures()) == 10
    with pytest.raises(UsageError, match=r"'answers\.jsonl', 'tasks\.jsonl', 'tasks_bad\.jsonl'"):
        fixture_file("task_bad.jsonl")


def test_invalid_line_skips_only_its_record(tmp_path: Path) -> None:
    path = written(
        tmp_path / "t.jsonl", record(task_id="a"), "{", record(task_id="b", targets=[]), record(task_id="c")
    )
    valid, errors = validate_file(path)
    assert [task.task_id for task in valid] == ["a", "c"]
    assert [(error.line, error.rule) for error in errors] == [(2, Rule.JSON), (3, Rule.TARGETS_EMPTY)]


def test_an_issue_shows_file_line_field_and_rule(tmp_path: Path) -> None:
    path = written(tmp_path / "t.jsonl", record(targets=[]))
    (error,) = validate_file(path)[1]
    issue = error.to_issue(path)
    assert (issue.file, issue.line, issue.path) == (str(path), 1, ("targets",))
    assert issue.message == "targets: the list is empty, expected a target [targets_empty]"
    assert issue.source_line is not None
    assert json.loads(issue.source_line)["task_id"] == "arith_001"


def test_ids_are_unique_across_valid_and_invalid_lines(tmp_path: Path) -> None:
    path = written(
        tmp_path / "t.jsonl",
        record(task_id="a"),
        record(task_id="b", targets=[]),
        record(task_id="b"),
        record(task_id="a"),
        record(task_id="a"),
    )
    assert found(path) == [
        (2, "targets_empty", "targets"),
        (3, "task_id_unique", "task_id"),
        (4, "task_id_unique", "task_id"),
        (5, "task_id_unique", "task_id"),
    ]
    assert "line 1" in validate_file(path)[1][-1].message


def test_missing_and_blank_ids_are_not_duplicates(tmp_path: Path) -> None:
    path = written(tmp_path / "t.jsonl", record(task_id=""), record(task_id=""), *[record(task_id=None)] * 2)
    assert [rule for _, rule, _ in found(path)] == ["blank_text"] * 2 + ["missing_field"] * 2


@pytest.mark.parametrize(
    ("line", "rule", "field"),
    [
        ('{"task_id": "a", "metadata": {"k": 1, "k": 2}}', "duplicate_key", "k"),
        ('{"task_id" : "a", "task_id": "a"}', "duplicate_key", "task_id"),
        ('{"task_id"\t:"a","task_id":"a"}', "duplicate_key", "task_id"),
        ('{"task_id": "a", "metadata": {"x": [{"k": 1, "k": 1}]}}', "duplicate_key", "k"),
        ('{"metadata": {"k": NaN}}', "json", ""),
        ('{"metadata": {"k": -Infinity}}', "json", ""),
        ('{"metadata": {"k": 1e999}}', "json", ""),
        ('{"task_id": "\\ud800"}', "json", ""),
        (b'{"task_id": "\xff"}', "json", ""),
        ('{"task_id": "a"} {}', "json", ""),
        ("[" * 100_000, "json", ""),
        ('{"metadata": {"k": ' + "1" * 5_000 + "}}", "json", ""),
        ("null", "object", ""),
    ],
    ids=range(13),
)
def test_ambiguous_json_lines_are_refused(tmp_path: Path, line: str | bytes, rule: str, field: str) -> None:
    assert (1, rule, field) in found(written(tmp_path / "t.jsonl", line))


@pytest.mark.parametrize(
    ("line", "column", "hint"),
    [
        ('{"task_id": "a", "category": "arithmetic"', 42, "the line ends before the record does"),
        ('{"task_id": "a",\r', 17, "the line ends before the record does"),
        ('  {"task_id": "a" "category": "mcq"}', 19, None),
        ('{"task_id": "a"},', 17, "remove the comma"),
        ('{"task_id": "a"} {"task_id": "b"}', 18, "begin a new line here"),
        ("{'task_id': 'a'}", 2, "texts in double quotes"),
        ('{"task_id": None}', 13, "JSON writes null, true and false"),
        ('{"task_id": "a",}', None, "without a comma after the last field"),
        ('{"task_id": "a', 13, "close the quote"),
        ('{"task_id": "a\tb"}', 15, "written \\t or \\n"),
        ('{"task_id": "\\w"}', 14, "a backslash inside a text"),
        ("# records of May", 1, "does not support comments"),
        ("// records of May", 1, "does not support comments"),
        ('{"task_id": "größe\u20ac"'.encode("cp1252"), 16, "save the file as UTF-8"),
    ],
    ids=range(14),
)
def test_invalid_json_is_reported_with_position_and_fix(
    tmp_path: Path, line: str | bytes, column: int | None, hint: str | None
) -> None:
    path = written(tmp_path / "t.jsonl", SOUND, line)
    (error,) = validate_file(path)[1]
    issue = error.to_issue(path)
    if column is not None:  # Python versions report different positions for a trailing comma
        assert (issue.line, issue.column) == (2, column)
    assert issue.source_line is not None
    assert issue.source_line == (line if isinstance(line, str) else line.decode("utf-8", "replace")).rstrip()
    assert (hint in (issue.hint or "")) if hint else issue.hint is None


def test_long_integers_stay_exact(tmp_path: Path) -> None:
    task = made(metadata={"seed": 123456789012345678901234567890})
    write_records([task], tmp_path / "t.jsonl")
    assert validate_file(tmp_path / "t.jsonl") == ([task], [])


def test_spaces_around_colons_and_escaped_quotes_are_accepted(tmp_path: Path) -> None:
    task = made(
        prompt='Say "a": then "b" : and stop', metadata={"nested": {"deep": [{"a": 1}]}, '"k" :': 1.5}
    )
    path = written(tmp_path / "t.jsonl", json.dumps(task.to_record(), separators=(" , ", " : ")))
    assert validate_file(path) == ([task], [])


def test_blank_lines_byte_order_mark_and_windows_line_ends_are_ignored(tmp_path: Path) -> None:
    line = json.dumps(SOUND).encode()
    (tmp_path / "t.jsonl").write_bytes(
        b"\xef\xbb\xbf" + line + b"\r\n\r\n  \n" + line.replace(b"001", b"002")
    )
    assert [task.task_id for task in validate_file(tmp_path / "t.jsonl")[0]] == ["arith_001", "arith_002"]


def test_an_empty_file_has_no_tasks_and_no_errors(tmp_path: Path) -> None:
    assert validate_file(written(tmp_path / "t.jsonl")) == ([], [])


def test_compressed_files_are_read(tmp_path: Path) -> None:
    (tmp_path / "t.jsonl.gz").write_bytes(gzip.compress(json.dumps(SOUND).encode()))
    assert validate_file(tmp_path / "t.jsonl.gz") == ([made()], [])


def test_unreadable_file_is_named_in_the_error(tmp_path: Path) -> None:
    (tmp_path / "utf16.jsonl").write_bytes(json.dumps(SOUND).encode("utf-16"))
    (tmp_path / "cut.jsonl.gz").write_bytes(gzip.compress(json.dumps(SOUND).encode())[:-12])
    for name, reason in [
        ("none.jsonl", "No such file"),
        ("utf16.jsonl", "UTF-16"),
        ("cut.jsonl.gz", "end-of-stream"),
    ]:
        with pytest.raises(SpecError, match=reason) as caught:
            validate_file(tmp_path / name)
        assert caught.value.issues[0].file == str(tmp_path / name)


def test_a_line_that_is_too_long_is_one_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "LONGEST_LINE", 1_000)
    long = json.dumps(record(task_id="long", prompt="x" * 5_000))
    path = written(tmp_path / "t.jsonl", record(task_id="a"), long, record(task_id="b"))
    assert found(path) == [(2, "json", "")]
    assert [task.task_id for task in validate_file(path)[0]] == ["a", "b"]
    (error,) = validate_file(path)[1]
    assert error.text is not None
    assert len(error.text) <= 1_000


def test_records_are_read_lazily(tmp_path: Path) -> None:
    """The second line is not read before it is requested."""
    path = written(tmp_path / "t.jsonl", record(task_id="a"), "{")
    stream = read_records(path)
    assert isinstance(next(stream), TaskSpec)
    assert isinstance(next(stream), tuple)


def test_run_refuses_a_file_with_errors_unless_bad_tasks_are_allowed(tmp_path: Path, bad_file: Path) -> None:
    path = written(tmp_path / "t.jsonl", SOUND, "{", record(task_id="b", targets=[]))
    with pytest.raises(SpecError) as caught:
        load_tasks(path)
    assert [issue.line for issue in caught.value.issues] == [2, 3]
    assert load_tasks(path, allow_bad_tasks=True) == (made(),)
    with pytest.raises(SpecError) as caught:
        load_tasks(bad_file, allow_bad_tasks=True)
    assert len(caught.value.issues) == len(Rule)
    with pytest.raises(SpecError, match="does not contain task records"):
        load_tasks(written(tmp_path / "empty.jsonl"), allow_bad_tasks=True)


@settings(deadline=None)
@given(st.lists(tasks(), max_size=5, unique_by=lambda task: task.task_id))
def test_written_file_is_read_back_unchanged(
    tmp_path_factory: pytest.TempPathFactory, some: list[TaskSpec]
) -> None:
    path = tmp_path_factory.mktemp("jsonl") / "t.jsonl"
    write_records(some, path)
    assert validate_file(path) == (some, [])


@settings(deadline=None)
@given(st.dictionaries(st.sampled_from([*SOUND, "other"]), json_values, max_size=3))
def test_line_and_record_have_the_same_errors(
    tmp_path_factory: pytest.TempPathFactory, changes: dict[str, Any]
) -> None:
    value = {**SOUND, **changes}
    path = written(tmp_path_factory.mktemp("jsonl") / "t.jsonl", value)
    task, errors = validate_task(value)
    assert validate_file(path)[0] == ([task] if task else [])
    assert found(path) == [(1, error.rule.value, error.field) for error in errors]


@settings(deadline=None)
@given(st.binary(max_size=60), st.integers(0, 400))
def test_damaged_bytes_are_reported_as_errors(
    tmp_path_factory: pytest.TempPathFactory, junk: bytes, place: int
) -> None:
    line = orjson.dumps(SOUND)
    path = tmp_path_factory.mktemp("jsonl") / "t.jsonl"
    path.write_bytes(b"\n" + line[:place] + junk + line[place:] + b"\n" + line.replace(b"001", b"002"))
    valid, _ = validate_file(path)
    assert "arith_002" in [task.task_id for task in valid]


def test_compressed_records_that_expand_to_gigabytes_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "tasks.jsonl.gz"
    path.write_bytes(gzip.compress(b"x" * 140_000_000, 1))
    with pytest.raises(SpecError, match="looks like a zip bomb"):
        validate_file(path)
