"""Record files as tasks: planned, explained and exported like the task that `convert` writes."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from tests.bridge.jsonl_spec.jsonl_records import SOUND, record
from tests.support.commands import Run

from aigo_bridge.errors import SpecError, UsageError
from aigo_bridge.evaluation.task import plan
from aigo_bridge.exporting.packing import packed_plan
from aigo_bridge.jsonl_spec import fixture_file, load_fixtures, render
from aigo_bridge.plan.plan import PlanOrigin

LINE = json.dumps(SOUND)
BAD = json.dumps(record(task_id="b", targets=[]))
ROWS = '{"question": "1 + 1?", "answer": "2"}\n{"question": "2 + 2?", "answer": "4"}\n'
LOG_LINE = '{"sample_id": 1, "trials": []}\n'


def written(path: Path, text: str | bytes) -> Path:
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def planned(path: Path, **origin: Any) -> Any:
    return plan(PlanOrigin(task=str(path), **origin))


def test_record_file_and_converted_task_have_the_same_plan(aigo: Run, tmp_path: Path) -> None:
    """The digest of task, rows and trials is the same, so the metrics belong to the same task."""
    assert aigo("convert", fixture_file(), "--out", "written").code == 0

    direct, converted = planned(fixture_file()), planned(tmp_path / "written")

    assert direct.digest == converted.digest
    assert (direct.name, direct.display_name, direct.task.description) == (
        "tasks",
        "tasks",
        "10 tasks of tasks.jsonl",
    )
    assert [sample.id for sample in direct.samples] == [task.task_id for task in load_fixtures()]
    assert direct.warnings == ()
    assert (
        planned(fixture_file(), num_samples=3, subsampling="random").digest
        == planned(tmp_path / "written", num_samples=3, subsampling="random").digest
    )


def test_records_are_found_by_folder_and_by_shipped_name(tmp_path: Path) -> None:
    assert planned(fixture_file().parent).digest == planned(fixture_file()).digest
    assert planned(Path("aigo_tasks/jsonl-fixture")).digest == planned(fixture_file()).digest
    with pytest.raises(UsageError, match=r"contains neither task\.yaml nor tasks\.jsonl"):
        planned(tmp_path)


@pytest.mark.parametrize(
    ("name", "content", "key"),
    [
        ("one.jsonl", LINE, "one"),
        ("Größe & co.jsonl", LINE, "Gr-e-co"),
        ("_.jsonl", LINE, "_"),
        (".jsonl", LINE, "jsonl-tasks"),
        ("packed.jsonl.gz", gzip.compress(LINE.encode()), "packed"),
        ("t.ndjson", LINE, "t"),
        ("T.JSONL", LINE, "T"),
        ("windows.jsonl", b"\xef\xbb\xbf\r\n" + LINE.encode() + b"\r\n\r\n", "windows"),
        ("records.txt", LINE + "\n", "records"),
        ("records", "\n\n" + LINE, "records"),
        ("one.json", LINE, "one"),
        ("one.yaml", f"{LINE}\n{json.dumps(record(task_id='z'))}\n", "one"),
    ],
)
def test_record_files_are_recognized_by_name_or_content(
    tmp_path: Path, name: str, content: str | bytes, key: str
) -> None:
    made = planned(written(tmp_path / name, content))

    assert made.task.key == key
    assert made.samples[0].id == "arith_001"


@pytest.mark.parametrize(
    ("name", "content", "message", "hint"),
    [
        ("t.jsonl", ROWS, "found rows with 'question', 'answer'", "run TASK --dataset KEY=t.jsonl"),
        ("t.jsonl", '{"task_id": 1, "prompt": "def f():", "test": ""}\n', "'category', 'targets'", "--dataset"),
        ("t.jsonl", "{}\n", "found rows with no fields", "--dataset"),
        ("r.tasklog.jsonl", LOG_LINE, "a result log", "aigo-bridge score"),
        ("t.jsonl", f"[{LINE},\n{BAD}]", "found a list of objects", "jq -c '.[]' t.jsonl > t-lines.jsonl"),
        ("t.json", f"[\n{LINE}\n]", "found a list of objects", "jq -c '.[]' t.json > t.jsonl"),
        ("t.jsonl", json.dumps(SOUND, indent=2), "an object over several lines", "jq -c '.' t.jsonl"),
        ("t.json", json.dumps(SOUND, indent=2), "an object over several lines", "jq -c '.' t.json > t.jsonl"),
        ("t.jsonl", "", "does not contain task records", None),
        ("t.jsonl", "\n \r\n", "does not contain task records", None),
        ("t.jsonl", LINE.encode("utf-16"), "it is UTF-16, expected UTF-8", None),
        ("t.jsonl", "[1, 2]\n", "found a list, expected an object", None),
        ("t.jsonl", f"{LINE}\n{LINE}\n", "already the id of line 1", None),
        ("t.jsonl", LINE.replace("41", "41é").encode("cp1252"), "is not UTF-8", "save the file as UTF-8"),
    ],
    ids=range(14),
)  # fmt: skip
def test_run_and_validate_report_the_same_invalid_record_files(
    aigo: Run, tmp_path: Path, name: str, content: str | bytes, message: str, hint: str | None
) -> None:
    written(tmp_path / name, content)

    for verb, code in (
        (("run", name, "--model", "none"), 2),
        (("explain", name), 2),
        (("validate", name), 1),
    ):
        if name == "r.tasklog.jsonl" and verb[0] == "validate":
            continue  # correct in this place
        done = aigo(*verb)
        told = done.err + done.out
        assert done.code == code, verb
        assert message in told
        assert hint is None or hint in told
        assert "Traceback" not in told
    assert not (tmp_path / "out").exists()


@pytest.mark.engine
def test_invalid_records_are_refused_unless_bad_tasks_are_allowed(aigo: Run, tmp_path: Path) -> None:
    written(tmp_path / "t.jsonl", f"{LINE}\n{{\n{BAD}\n{json.dumps(record(task_id='c'))}\n")

    with pytest.raises(SpecError) as caught:
        planned(tmp_path / "t.jsonl")
    made = planned(tmp_path / "t.jsonl", allow_bad_tasks=True)

    *places, total = caught.value.issues
    assert [issue.line for issue in places] == [2, 3]
    assert (total.message, total.hint) == (
        "2 of 4 records are invalid",
        "correct them, or run only the valid ones with --allow-bad-tasks",
    )
    assert [sample.id for sample in made.samples] == ["arith_001", "c"]
    assert made.num_invalid == 2
    assert {issue.severity for issue in made.warnings} == {"warning"}
    assert made.warnings[-1].message == "2 of 4 records are invalid and skipped"
    # The evidence records it, because the metric does not cover all records.
    assert made.task.description == "2 tasks of t.jsonl; 2 of 4 records are invalid and skipped"
    for verb in (("explain",), ("export", "--to", "inspect", "--out", "x")):
        assert aigo(verb[0], "t.jsonl", *verb[1:]).code == 2
        assert aigo(verb[0], "t.jsonl", *verb[1:], "--allow-bad-tasks").code == 3


def test_file_with_only_invalid_records_is_refused_with_their_count(aigo: Run) -> None:
    done = aigo("run", fixture_file("tasks_bad.jsonl"), "--model", "none", "--allow-bad-tasks")

    assert done.code == 2
    assert "21 of 21 records are invalid" in done.err
    assert "22 errors" in done.err


def test_only_the_first_of_many_problems_are_shown(aigo: Run, tmp_path: Path) -> None:
    written(tmp_path / "t.jsonl", f"{LINE}\n" + f"{BAD}\n" * 200)

    done = aigo("explain", "t.jsonl")

    assert done.code == 2
    assert "and 349 more problems [AB115]" in done.err
    assert "all of them: aigo-bridge validate t.jsonl" in done.err
    assert "200 of 201 records are invalid" in done.err


@pytest.mark.parametrize("verb", ["upgrade", "generate"])
def test_json_lines_are_not_reported_as_an_unclosed_bracket(aigo: Run, tmp_path: Path, verb: str) -> None:
    written(tmp_path / "t.jsonl", f"{LINE}\n{LINE}\n")

    done = aigo(verb, "t.jsonl", *(("--out", "x.jsonl") if verb == "generate" else ()))

    assert done.code == 2
    assert "for JSON lines (rows or task records)" in done.err
    assert "bracket" not in done.err


@pytest.mark.parametrize("verb", ["run", "explain"])
def test_options_that_do_not_apply_to_records_are_refused(aigo: Run, tmp_path: Path, verb: str) -> None:
    written(tmp_path / "t.jsonl", LINE)
    (tmp_path / "run.yaml").write_text(
        "evaluation: {key: e, display_name: E, description: '', task_specifications: []}\n"
    )
    capitals = fixture_file().parents[3] / "examples" / "capitals" / "task.yaml"

    for arguments, message in (
        (("t.jsonl", "--config", "a=b"), "'a'"),
        (("t.jsonl", "--dataset", "other=t.jsonl"), "its dataset is 't-records'"),
        (("run.yaml", "--allow-bad-tasks"), "--allow-bad-tasks: only for JSONL files with task records"),
        ((capitals, "--allow-bad-tasks"), "--allow-bad-tasks: only for JSONL files with task records"),
    ):
        done = aigo(verb, *arguments)
        assert done.code == 2, arguments
        assert message in done.err


@pytest.mark.engine
@pytest.mark.parametrize("engine", ["inspect", "lighteval"])
def test_export_contains_the_task_of_the_records(aigo: Run, tmp_path: Path, engine: str) -> None:
    """The packed files give the same plan without the record file."""
    lines = fixture_file().read_text().splitlines()
    path = written(tmp_path / "my.jsonl", "\n".join(line for line in lines if '"code_exec"' not in line))
    digest = planned(path).digest

    done = aigo("export", "my.jsonl", "--to", engine, "--out", "hosted")
    path.unlink()

    assert done.code == 0, done.err
    assert packed_plan(tmp_path / "hosted" / "my", {}).digest == digest
    assert (tmp_path / "hosted" / "my" / "task" / "my.yaml").is_file()


def test_explain_shows_the_rendered_prompt_of_a_record(aigo: Run) -> None:
    done = aigo("explain", fixture_file(), "--json", "-n", 20)

    assert done.code == 0, done.err
    shown = [sample["messages"][0]["content"] for sample in done.json["samples"]]
    assert shown == [render(task) for task in load_fixtures()]
