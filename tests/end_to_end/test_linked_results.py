"""Folders with AI GO result logs as arguments: a run file and logs with equal file names."""

from __future__ import annotations

import csv
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest
from tests.extras.report.page.test_writing import summary
from tests.support.commands import Finished, Run
from tests.support.results import metric, question, result, write_result
from tests.support.viewing import reader_of, serving

import aigo_bridge
from aigo_bridge.errors import SpecError, UsageError
from aigo_report.page import sources_of

LOGS = {"first": "aabb", "second": "aaab"}
"""Task specification → answers; `a` is right."""
NAMES = ["export/run.yaml#first", "export/run.yaml#second"]
RUN_FILE = """evaluation:
  key: checks
  display_name: Checks
  description: ""
  task_specifications:
    - key: first
      task_key: quiz
      task_result_log_path: task_results/first/task_result_log.json
    - key: second
      task_key: quiz
      display_name: Second try
      task_result_log_path: ./task_results/second/task_result_log.json
"""


def write_log(path: Path, answers: str) -> None:
    samples = [question(number, answer, "a") for number, answer in enumerate(answers)]
    accuracy = answers.count("a") / len(answers)
    log = result(samples, [metric({"is_correct": accuracy})])
    log["specification"]["task"]["definition"]["scorers"] = [
        {"type": "string_equals", "key": "exact", "metrics": [{"type": "mean", "field": "is_correct"}]}
    ]
    path.parent.mkdir(parents=True, exist_ok=True)
    write_result(path, log)


@pytest.fixture
def export(tmp_path: Path) -> Path:
    """Folder written like `lf export eval-run --link-logs`, next to the same results as single files."""
    for key, answers in LOGS.items():
        write_log(tmp_path / "export" / "task_results" / key / "task_result_log.json", answers)
        write_log(tmp_path / "single" / f"{key}.tasklog.json", answers)
    (tmp_path / "export" / "run.yaml").write_text(RUN_FILE)
    return tmp_path / "export"


def plain(text: str) -> str:
    """Replace the names of task specifications by those of the single results."""
    for key in LOGS:
        text = text.replace(f"export/run.yaml#{key}", f"single/{key}.tasklog.json")
    return text.replace("export", "single")


# The same numbers, samples and names as of single results

VERBS = {
    "stats": ("stats", "{}", "--json"),
    "stats --repeatability": ("stats", "{}", "--repeatability", "--json"),
    "show": ("show", "{}", "--full"),
    "sql": ("sql", "SELECT * FROM samples", "{}", "--json"),
    "sql metrics": ("sql", "SELECT result, name, value FROM metrics", "{}", "--json"),
    "check": ("check", "{}", "--rule", "is_correct >= 0.6", "--json"),
    "check in text": ("check", "{}", "--rule", "is_correct >= 0.6", "--github"),
    "compare": ("compare", "{}", "{}", "--json"),
    "verify": ("verify", "{}", "--json"),
}


def without_lines(text: str, *words: str) -> str:
    return "\n".join(line for line in text.splitlines() if not any(word in line for word in words))


@pytest.mark.parametrize("location", ["export", "export/run.yaml"])
@pytest.mark.parametrize("verb", VERBS)
def test_verb_output_is_equal_for_linked_and_single_results(
    export: Path, aigo: Run, verb: str, location: str
) -> None:
    linked = aigo(*(word.format(location) for word in VERBS[verb]))
    single = aigo(*(word.format("single") for word in VERBS[verb]))

    assert single.out
    # `verify` names the files that it looks for.
    names = ("expected next to it",)
    assert without_lines(plain(linked.out), *names) == without_lines(single.out, *names)
    assert linked.code == single.code
    assert plain(linked.err) == single.err
    for name in () if verb == "sql" else NAMES:
        assert name in linked.out, linked.out


def test_report_has_the_specifications_as_titles(export: Path, aigo: Run) -> None:
    assert aigo("report", "export").code == 0
    assert aigo("report", "single", "--out", "single.html").code == 0

    linked, single = (summary(export.parent / name) for name in ("report.html", "single.html"))

    assert [one["title"] for one in linked["results"]] == ["first", "Second try"]
    assert [one["name"] for one in linked["results"]] == ["first", "second"]
    assert [one["metrics"] for one in linked["results"]] == [one["metrics"] for one in single["results"]]
    assert [one["counts"] for one in linked["results"]] == [one["counts"] for one in single["results"]]


@pytest.mark.parametrize("table", ["samples", "trials", "scores", "metrics", "results"])
def test_result_column_contains_the_specification(export: Path, aigo: Run, table: str) -> None:
    assert aigo("table", "export", "--out", "linked.csv", "--table", table).code == 0
    assert aigo("table", "single", "--out", "single.csv", "--table", table).code == 0

    with (export.parent / "linked.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))

    assert list(dict.fromkeys(row["result"] for row in rows)) == NAMES
    assert plain((export.parent / "linked.csv").read_text()) == (export.parent / "single.csv").read_text()


def test_lake_has_the_names_of_the_specifications(export: Path, aigo: Run) -> None:
    taken = aigo("import", "export", "--lake", "lake")
    again = aigo("import", "export/run.yaml", "--lake", "lake")
    aigo("import", "single", "--lake", "other.lake")

    assert taken.code == 0, taken.err
    assert "2 imported" in taken.err
    assert "0 imported, 2 there already" in again.err
    query = "SELECT result, name, text FROM metrics ORDER BY ALL"
    assert {row["result"] for row in aigo("sql", query, "lake", "--json").json} == set(NAMES)
    assert plain(aigo("sql", query, "lake", "--json").out) == aigo("sql", query, "other.lake", "--json").out


@pytest.mark.engine
@pytest.mark.slow
def test_scores_of_each_specification_have_their_own_folder(
    export: Path, aigo: Run, result_of: Callable[[Path], dict[str, Any]]
) -> None:
    (export.parent / "quiz.yaml").write_text(
        "key: quiz\ndisplay_name: Quiz\ndescription: ''\ndefinition:\n  dataset: {key: d}\n"
        "  solver:\n    type: single_turn_solver\n    input_builder: {type: chat_completion, input_messages: "
        '[{role: user, content: "{{ sample.question }}"}]}\n'
        "  scorers:\n    - {type: string_equals, ground_truth: '{{ sample.gold }}'}\n"
    )
    (export.parent / "d.jsonl").write_text('{"question": "Question 0?", "gold": "a"}\n')

    aigo("score", "quiz.yaml", "export", "--out", "scored")

    for key, answers in LOGS.items():
        scored = result_of(export.parent / "scored" / key / "quiz.tasklog.json")
        traces = [each["trials"][0]["solver"]["output"]["trace"] for each in scored["evidence"]["samples"]]
        assert [trace["items"][-1]["content"][0]["text"] for trace in traces] == list(answers)


def test_view_lists_the_specifications(export: Path) -> None:
    (export / "broken.yaml").write_text("task_result_log_path: [")
    with serving(export) as server:
        reader = reader_of(server.guard.address)
        entries = reader.entries()

        assert entries.keys() == {"run.yaml", "run.yaml#first", "run.yaml#second", "broken.yaml"}
        page, one, broken = (
            reader.get(f"data/entry/{entries[name]['id']}").json
            for name in ("run.yaml", "run.yaml#second", "broken.yaml")
        )

    assert [each["title"] for each in page["results"]] == ["first", "Second try"]
    assert [each["title"] for each in one["results"]] == ["Second try"]
    assert "not YAML" in broken["problem"]


# One specification, and several folders


def test_hash_selects_one_specification(export: Path, aigo: Run) -> None:
    done = aigo("stats", "export/run.yaml#second", "--json")
    checked = aigo("check", "export/run.yaml#second", "--rule", "is_correct >= 0.75", "--json")
    unknown = aigo("stats", "export/run.yaml#third")

    assert [one["result"] for one in done.json] == ["export/run.yaml#second"]
    assert checked.json["result"] == "export/run.yaml#second"
    assert checked.code == 0
    assert unknown.code == 2
    assert "export/run.yaml has no result 'third', expected one of 'first', 'second'" in unknown.err


def test_results_of_two_folders_are_paired_by_specification(export: Path, aigo: Run) -> None:
    """The order of the specifications and the paths of their logs do not matter."""
    other = export.with_name("other")
    for number, answers in enumerate(["aaaa", "abbb"]):
        write_log(other / "logs" / f"{number}.json", answers)
    specifications = [
        {"key": "second", "task_key": "quiz", "task_result_log_path": "logs/0.json"},
        {"key": "first", "task_key": "quiz", "task_result_log_path": "logs/1.json"},
        {"key": "other", "task_key": "quiz", "task_result_log_path": "logs/1.json"},
    ]
    evaluation = {"key": "e", "display_name": "E", "description": "", "task_specifications": specifications}
    (other / "evaluated.yml").write_text(json.dumps({"evaluation": evaluation}))

    compared = aigo("compare", "export", "other", "--json")
    checked = aigo(
        *("check", "other/evaluated.yml#first", "--baseline", "export", "--json"),
        *("--rule", "no regression beyond 0.01"),
    )
    mixed = aigo("compare", "export", "single/first.tasklog.json")

    pairs = [(one["base"], one["new"]) for one in compared.json["comparisons"]]
    assert pairs == [
        ("export/run.yaml#first", "other/evaluated.yml#first"),
        ("export/run.yaml#second", "other/evaluated.yml#second"),
    ]
    values = [one["metrics"][0]["base"] for one in compared.json["comparisons"]]
    assert values == [0.5, 0.75]
    assert "other: not compared, because not in all folders: other" in compared.err
    assert "-0.25" in checked.out
    assert mixed.code == 2
    assert "found both single results and folders" in mixed.err


def test_single_results_are_paired_with_a_run_file(export: Path, aigo: Run) -> None:
    done = aigo("compare", "single", "export", "--json")

    assert [(one["base"], one["new"]) for one in done.json["comparisons"]] == [
        (f"single/{key}.tasklog.json", f"export/run.yaml#{key}") for key in LOGS
    ]


def test_junit_has_a_suite_for_each_result(export: Path, aigo: Run) -> None:
    done = aigo("check", "export", "--rule", "is_correct >= 0.6", "--junit", "junit.xml")

    suites = ET.parse(export.parent / "junit.xml").getroot()
    assert done.code == 1
    assert [(suite.get("name"), suite.get("failures")) for suite in suites] == [
        ("aigo-bridge check run.yaml#first", "1"),
        ("aigo-bridge check run.yaml#second", "0"),
    ]


def test_specifications_without_keys_get_platform_keys(export: Path) -> None:
    text = RUN_FILE.replace("- key: first\n      task_key", "- task_key").replace(
        "- key: second\n      task_key", "- task_key"
    )
    (export / "run.yaml").write_text(text)

    assert [source.name for source in sources_of([export])] == ["quiz_1", "quiz_2"]


def test_evaluation_in_another_file_has_paths_relative_to_the_run_file(export: Path) -> None:
    evaluation = RUN_FILE.partition("\n")[2]
    (export / "parts").mkdir()
    (export / "parts" / "evaluation.yaml").write_text(
        "\n".join(line.removeprefix("  ") for line in evaluation.splitlines())
    )
    (export / "run.yaml").write_text("evaluation:\n  $ref: parts/evaluation.yaml\n")

    found = sources_of([export])

    assert [source.label for source in found] == [f"{export}/run.yaml#{key}" for key in LOGS]


def test_evaluation_next_to_its_run_file_counts_once(export: Path) -> None:
    evaluation = RUN_FILE.partition("\n")[2]
    text = "\n".join(line.removeprefix("  ") for line in evaluation.splitlines())
    (export / "evaluation.yaml").write_text(text)
    (export / "run.yaml").write_text("evaluation:\n  $ref: evaluation.yaml\n")

    assert [source.label for source in sources_of([export])] == [f"{export}/run.yaml#{key}" for key in LOGS]


def test_missing_models_and_tasks_are_ignored(export: Path) -> None:
    """Reading a result does not need the files of its run."""
    (export / "run.yaml").write_text("tasks:\n  - $ref: tasks/quiz.yaml\nmodels: [{key: x}]\n" + RUN_FILE)

    assert [source.name for source in sources_of([export])] == ["first", "second"]


def test_python_functions_take_run_files(export: Path) -> None:
    rows = list(aigo_bridge.open_results(export).metrics())

    assert [(row["result"], row["value"]) for row in rows] == [
        (f"{export}/run.yaml#first", 0.5),
        (f"{export}/run.yaml#second", 0.75),
    ]
    checked = aigo_bridge.verify(f"{export}/run.yaml#first")
    assert str(checked.result) == f"{export}/run.yaml#first"
    with pytest.raises(UsageError, match=r"has 2 results, expected one; name it: .*run\.yaml#first"):
        aigo_bridge.verify(export)


# Missing files


ALL_VERBS = {
    **{verb: words for verb, words in VERBS.items() if " " not in verb},
    "report": ("report", "{}"),
    "table": ("table", "{}", "--out", "x.csv"),
    "plot": ("plot", "{}", "--out", "x.svg"),
    "import": ("import", "{}", "--lake", "lake"),
    "score": ("score", "task.yaml", "{}"),
}


@pytest.fixture
def task(tmp_path: Path) -> None:
    shutil.copytree(Path(__file__).parents[2] / "examples" / "capitals", tmp_path, dirs_exist_ok=True)


def problems(done: Finished) -> str:
    assert done.code == 2, done.out + done.err
    assert "Traceback" not in done.err
    return done.err


@pytest.mark.usefixtures("task")
@pytest.mark.parametrize("location", ["export", "export/run.yaml"])
@pytest.mark.parametrize("verb", ALL_VERBS)
def test_all_missing_and_outside_logs_are_reported(export: Path, aigo: Run, verb: str, location: str) -> None:
    (export / "run.yaml").write_text(
        RUN_FILE.replace("task_results/first", "task_results/gone").replace(
            "./task_results/second", "../single"
        )
    )

    said = problems(aigo(*(word.format(location) for word in ALL_VERBS[verb])))

    assert "export/run.yaml:8:29: error: result log 'export/task_results/gone/task" in said
    assert "export/run.yaml:12:29: error: '../single/task_result_log.json' is outside the folder" in said


@pytest.mark.usefixtures("task")
@pytest.mark.parametrize("verb", ALL_VERBS)
def test_run_file_that_is_not_yaml_is_reported_with_its_place(export: Path, aigo: Run, verb: str) -> None:
    (export / "run.yaml").write_text(RUN_FILE + "  policies: [\n")

    said = problems(aigo(*(word.format("export") for word in ALL_VERBS[verb])))

    assert "export/run.yaml:14:1: error: not YAML" in said


def outside_by_a_link(export: Path) -> None:
    (export / "task_results" / "first" / "task_result_log.json").unlink()
    (export / "task_results" / "first" / "task_result_log.json").symlink_to(
        export.parent / "single" / "first.tasklog.json"
    )


def repeated(export: Path) -> None:
    (export / "run.yaml").write_text(RUN_FILE.replace("key: second", "key: first"))


def not_a_path(export: Path) -> None:
    (export / "run.yaml").write_text(RUN_FILE.replace("task_results/first/task_result_log.json", "[1]"))


def nul(export: Path) -> None:
    (export / "run.yaml").write_text(
        RUN_FILE.replace("task_results/first/task_result_log.json", '"task_results\\0"')
    )


def a_folder(export: Path) -> None:
    (export / "run.yaml").write_text(RUN_FILE.replace("first/task_result_log.json", "first"))


def climbing_key(export: Path) -> None:
    (export / "run.yaml").write_text(RUN_FILE.replace("key: first", "key: ../../x"))


@pytest.mark.parametrize(
    ("change", "line", "message"),
    [
        (outside_by_a_link, 8, "is outside the folder of the run file"),
        (repeated, 6, "2 specifications have the key 'first'"),
        (not_a_path, 8, "text"),
        (nul, 8, "expected a path"),
        (a_folder, 8, "does not exist"),
        (climbing_key, 6, "key"),
    ],
)
def test_invalid_specification_is_reported(
    export: Path, change: Callable[[Path], None], line: int, message: str
) -> None:
    change(export)

    with pytest.raises(SpecError) as raised:
        sources_of([export])

    assert raised.value.issues[0].line == line
    assert message in str(raised.value)


def test_run_file_without_results_is_refused(export: Path, aigo: Run) -> None:
    text = "".join(line for line in RUN_FILE.splitlines(keepends=True) if "task_result_log_path" not in line)
    (export / "run.yaml").write_text(text)

    assert "found no result in the folder" in problems(aigo("stats", "export"))
    assert "export/run.yaml: error: the file names no results" in problems(aigo("stats", "export/run.yaml"))


def test_specification_without_a_result_is_reported_and_fails_a_check(export: Path, aigo: Run) -> None:
    (export / "run.yaml").write_text(RUN_FILE + "    - {key: third, task_key: quiz}\n")

    shown = aigo("stats", "export")
    checked = aigo("check", "export", "--rule", "is_correct >= 0.1")

    assert shown.code == 0
    assert "the result of 'third' is missing from the evaluation" in shown.err
    assert "no result of 'third', so rules cannot be checked" in problems(checked)


def test_folder_with_result_logs_does_not_need_its_run_file(export: Path, aigo: Run) -> None:
    shutil.copy(export / "task_results" / "first" / "task_result_log.json", export / "own.tasklog.json")
    (export / "run.yaml").write_text("evaluation: [")

    assert [one["result"] for one in aigo("stats", "export", "--json").json] == ["export/own.tasklog.json"]
