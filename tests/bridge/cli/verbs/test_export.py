"""`aigo-bridge export`: written files, refused exports and their reasons."""

from __future__ import annotations

import gzip
import importlib.metadata
import json
from pathlib import Path
from typing import Any

import pytest
import yaml
import zstandard
from tests.support.commands import Finished, Run

pytestmark = pytest.mark.engine

ASK = {
    "type": "single_turn_solver",
    "input_builder": {
        "type": "chat_completion",
        "input_messages": [{"role": "user", "content": "{{ sample.q }}"}],
    },
}
EQUALS = {"type": "string_equals", "ground_truth": "{{ sample.a }}"}
SNIPPET = "def compute_scores(sample, solver_output):\n    return {'s': 1}\n"
JUDGE = {"type": "model_as_a_judge_scorer", "model_key": "judge", "user_prompt": "{{ solver_output.output }}"}

JUDGE_REASON = "Inspect's model-graded scorers are the closest, but use other prompts, parse replies differently and do not retry"


@pytest.fixture
def author(tmp_path: Path) -> Any:
    """Write a task with two rows and return its folder."""

    def write(key: str = "qa", folder: str = "author", **definition: Any) -> Path:
        place = tmp_path / folder
        place.mkdir(exist_ok=True)
        task = {
            "key": key,
            "display_name": "Questions",
            "description": "Two questions.",
            "definition": {"dataset": {"key": "rows"}, "solver": ASK, "scorers": [EQUALS], **definition},
        }
        (place / "task.yaml").write_text(yaml.safe_dump(task))
        (place / "rows.jsonl").write_text('{"q": "1+1?", "a": "2"}\n{"q": "1+2?", "a": "3"}\n')
        return place

    return write


def tree(folder: Path) -> list[str]:
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())


def test_missing_engine_is_reported_only_if_the_export_needs_it(
    aigo: Run, author: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """lighteval has no logs to write, installed or not."""

    def version(package: str) -> str:
        raise importlib.metadata.PackageNotFoundError(package)

    monkeypatch.setattr(importlib.metadata, "version", version)
    done = aigo("export", "any.tasklog.json", "--to", "lighteval-log", "--out", "logs")
    missing = aigo("export", "author", "--to", "lighteval", "--out", "docs")

    assert done.code == missing.code == 2
    assert "results cannot be written as logs of engine 'lighteval'" in done.err
    assert "lighteval is not installed; run: pip install" in missing.err


def test_written_files_are_listed(aigo: Run, author: Any, tmp_path: Path) -> None:
    author(scorers=[EQUALS, JUDGE])

    done = aigo("export", "author", "--to", "inspect", "--out", "new/exported")

    assert done == Finished(
        0,
        "qa: 6 files in new/exported, 2 samples\n"
        "note: 'judge' must be set with --model-role 'judge=PROVIDER/MODEL'\n"
        "run it in new/exported:\n"
        "  inspect eval qa.py --model PROVIDER/MODEL --model-role judge=PROVIDER/MODEL\n",
        "",
    )
    assert tree(tmp_path / "new" / "exported") == [
        "README.md", "qa.py", "qa/export.json", "qa/samples.jsonl", "qa/task/task.yaml", "requirements.txt",
    ]  # fmt: skip
    readme = (tmp_path / "new" / "exported" / "README.md").read_text()
    assert "inspect eval qa.py --model PROVIDER/MODEL --model-role judge=PROVIDER/MODEL\n" in readme
    assert (
        (tmp_path / "new" / "exported" / "requirements.txt")
        .read_text()
        .splitlines()[1]
        .startswith("aigo-bridge==")
    )
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["exported"]


def test_export_summary_is_printed_as_json(aigo: Run, author: Any) -> None:
    author()

    done = aigo("export", "author", "--to", "inspect", "--native", "--out", "x", "-n", 1, "--json")

    assert done.code == 0
    digest = done.json.pop("digest")
    assert len(digest) == 64
    assert {name: value for name, value in done.json.items() if name != "digest"} == {
        "task": "qa",
        "form": "native",
        "folder": "x",
        "files": ["qa.py", "README.md", "qa/export.json", "qa/samples.jsonl", "requirements.txt"],
        "samples": 1,
        "model_keys": [],
        "commands": ["inspect eval qa.py --model PROVIDER/MODEL"],
    }


def test_native_refusal_lists_every_part(aigo: Run, author: Any, tmp_path: Path) -> None:
    author(
        scorers=[EQUALS, {**EQUALS, "key": "late", "value": "{{ solver_output.output | length }}"}, JUDGE],
        actions=[{"key": "a", "action": "exclude_from_metrics", "filter": {"op": "equals", "expression": "{{ scores.late.is_correct }}", "value": 1}}],
    )  # fmt: skip

    done = aigo("export", "author", "--to", "inspect", "--native", "--out", "x")

    assert done.code == 1
    assert done.err.splitlines() == [
        "error: task 'qa' cannot be exported as plain Inspect code: 3 of its 7 parts have no exact form there [AB508]",
        "  solver (single_turn_solver)           exact",
        "  scorers[0] (string_equals)            exact",
        "  scorers[0].metrics[0] (mean)          exact",
        "  scorers[1] (string_equals)            unsupported: value is a template over the model's answer",
        "  scorers[1].metrics[0] (mean)          exact",
        "  scorers[2] (model_as_a_judge_scorer)  approximate: " + JUDGE_REASON,
        "  actions                               unsupported: rule 'a' uses answers or scores",
        "hint: without --native the whole task is exported; its file then needs aigo-bridge to run",
    ]
    assert not (tmp_path / "x").exists()


UNSUPPORTED: dict[str, tuple[dict[str, Any], str]] = {
    "python scorer": ({"scorers": [{"type": "python", "compute_scores_snippet": SNIPPET}]}, "scorers[0] (python)"),
    "python solver": (
        {"solver": {"type": "python", "run_solver_snippet": "async def run_solver(sample, model, trace):\n    return trace\n"}},
        "solver (python)",
    ),
    "grouped": (
        {
            "solver": {"type": "grouped_single_turn_solver", "input_builder": {"type": "generic", "template": "[]"}},
            "scorers": [],
        },
        "solver (grouped_single_turn_solver)",
    ),
    "post-processor": (
        {"solver": {**ASK, "postprocessor": {"type": "python", "postprocess_snippet": "def postprocess(sample, solver_output):\n    return []\n"}}},
        "solver.postprocessor",
    ),
    "recorded beginning": (
        {
            "solver": {
                "type": "multi_turn_solver",
                "message_builders": [{"type": "load_trace", "trace_column": "q"}, {"type": "generate"}],
            }
        },
        "solver (multi_turn_solver)",
    ),
    "an answer that may be missing": (
        {
            "solver": {
                "type": "multi_turn_solver",
                "message_builders": [{"type": "generate", "terminate_if": {"includes": "x", "keep_iteration": False}}],
            },
            "scorers": [EQUALS, {**EQUALS, "value": "{{ sample.q }}"}],
        },
        "solver (multi_turn_solver)",
    ),
    "judge": ({"scorers": [JUDGE]}, "scorers[0] (model_as_a_judge_scorer)"),
    "code for a dataset": (
        {
            "dataset": None,
            "solver": None,
            "scorers": [{"type": "python", "compute_scores_snippet": "def compute_scores(sample):\n    return {'s': 1}\n"}],
        },
        "scorers[0] (python)",
    ),
    "metric": (
        {"scorers": [{**EQUALS, "metrics": [{"type": "weighted_average", "field": "is_correct", "weights": {"1.0": 1}}]}]},
        "scorers[0].metrics[0] (weighted_average)",
    ),
    "passes of a share": (
        {
            "scorers": [{"type": "bleu", "ground_truth": "x"}],
            "trials": {"num_trials": 2, "score_aggregators": [{"score_name": "bleu_score", "aggregator": {"function": "pass@k", "k": 2}}]},
        },
        "trials",
    ),
}  # fmt: skip


APPROXIMATE = {"judge", "code for a dataset"}


@pytest.mark.parametrize("name", UNSUPPORTED)
def test_native_export_refuses_inexact_parts(name: str, aigo: Run, author: Any) -> None:
    definition, part = UNSUPPORTED[name]
    folder = author(**definition)
    rows = ["--dataset", f"rows={folder / 'rows.jsonl'}"]

    done = aigo("export", "author", "--to", "inspect", "--native", "--out", "x", "--json", *rows)

    assert done.code == 1, done.err
    inexact = [entry for entry in done.json["parts"] if entry["fidelity"] != "exact"]
    assert [entry["part"] for entry in inexact] == [part]
    assert inexact[0]["fidelity"] == ("approximate" if name in APPROXIMATE else "unsupported")
    assert inexact[0]["reason"]


def test_samples_that_would_fail_are_named_before_they_are_exported(
    aigo: Run, author: Any, tmp_path: Path
) -> None:
    author(
        solver={
            **ASK,
            "input_builder": {
                "type": "generic",
                "template": '{"messages": [{"role": "user", "content": "{{ sample.q }}"}]}',
            },
        }
    )
    (tmp_path / "author" / "rows.jsonl").write_text('{"q": "a", "a": "2"}\n{"q": "\\"", "a": "3"}\n')

    done = aigo("export", "author", "--to", "inspect", "--native", "--out", "x")

    assert done.code == 1
    assert "unsupported: 1 would fail in a run: sample 1: the input template did not return JSON" in done.err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("author", "--to", "inspekt"), "--to: found 'inspekt'; did you mean 'inspect'?"),
        (("author", "--to", "excel"), "--to: found 'excel'; expected one of "),
        (("nothing", "--to", "inspect"), "file 'nothing' does not exist"),
        (("author/out.tasklog.json", "--to", "inspect"), "accepts a task; did you mean --to inspect-log?"),
        (("author", "--to", "inspect-log", "--native"), "--native: only for tasks; --to inspect-log accepts only result logs"),
        (("author/task.yaml", "--to", "inspect-log"), "author/task.yaml: error: the file names no results"),
        (("author/rows.jsonl", "--to", "inspect-log"), "rows.jsonl"),
        (("missing.json", "--to", "inspect-log"), "result log 'missing.json' does not exist"),
        (
            ("author/other.json", "--to", "inspect-log"),
            "other.json: error: not a result log that can be exported: format_version: found no such field, expected one (and ",
        ),
        (("author", "--to", "inspect", "--config", "x=1"), "unknown parameter 'x'"),
        (("author", "author", "--to", "inspect"), "--to inspect accepts one task, found 2: author, author"),
    ],
)  # fmt: skip
def test_invalid_arguments_are_reported_and_nothing_is_written(
    arguments: tuple[str, ...], message: str, aigo: Run, author: Any, tmp_path: Path
) -> None:
    (author() / "other.json").write_text("{}")

    done = aigo("export", *arguments, "--out", "x/y")

    assert done.code == 2
    assert message in " ".join(done.err.split())
    assert [path.name for path in tmp_path.iterdir()] == ["author"]


def test_result_is_exported_as_an_engine_log(aigo: Run, author: Any, tmp_path: Path) -> None:
    """The log is plain or compressed. An existing log is replaced only with `--force`."""
    folder = author()
    (folder / "answers.jsonl").write_text('{"default": true, "reply": {"text": "2"}}\n')
    aigo("run", "author", "--model", "scripted/author/answers.jsonl", "--out", "out")
    plain = (tmp_path / "out" / "qa.tasklog.json").read_bytes()
    (tmp_path / "zipped.tasklog.json.gz").write_bytes(gzip.compress(plain))
    (tmp_path / "packed.json.zst").write_bytes(zstandard.compress(plain))

    first = aigo("export", "out/qa.tasklog.json", "--to", "inspect-log", "--out", "logs")
    again = aigo("export", "zipped.tasklog.json.gz", "--to", "inspect-log", "--out", "logs")
    forced = aigo("export", "packed.json.zst", "--to", "inspect-log", "--out", "logs", "--force", "--json")

    assert (first.code, again.code, forced.code) == (0, 2, 0)
    assert "already exists (replace it with --force)" in again.err
    (log,) = (tmp_path / "logs").iterdir()
    assert first.out == f"logs/{log.name}\n"
    assert forced.json["log"] == f"logs/{log.name}"
    from inspect_ai.log import read_eval_log

    samples = read_eval_log(str(log)).samples or []
    assert [sample.output.completion for sample in samples] == ["2", "2"]
    assert [(sample.scores or {})["string_equals"].value for sample in samples] == [1.0, 0.0]


def test_task_on_an_earlier_result_has_a_native_export_only(aigo: Run, author: Any, tmp_path: Path) -> None:
    """The rows come from a result log, which the task YAML cannot refer to."""
    folder = author()
    (folder / "answers.jsonl").write_text('{"default": true, "reply": {"text": "2"}}\n')
    aigo("run", "author", "--model", "scripted/author/answers.jsonl", "--out", "out")
    author("again", dataset={"source": "task_result", "key": "qa"})
    earlier = ("--dataset", "qa=out/qa.tasklog.json")

    hosted = aigo("export", "author", "--to", "inspect", "--out", "x", *earlier)
    native = aigo("export", "author", "--to", "inspect", "--native", "--out", "y", *earlier)

    assert hosted.code == 1
    assert "uses the earlier result 'qa', which cannot be exported (use --native" in hosted.err
    assert not (tmp_path / "x").exists()
    assert native.code == 0, native.err
    assert [
        json.loads(line)["target"]
        for line in (tmp_path / "y" / "again" / "samples.jsonl").read_text().splitlines()
    ] == ["2", "3"]


def test_two_exports_can_share_a_folder(aigo: Run, author: Any, tmp_path: Path) -> None:
    """Keys with the same module name get distinct names. README and requirements cover both tasks."""
    author("a-b", "one")
    author("a_b", "two", scorers=[])
    aigo("export", "one", "--to", "inspect", "--out", "x")

    done = aigo("export", "two", "--to", "inspect", "--native", "--out", "x", "--force")

    assert done.code == 0, done.err
    assert "inspect eval a_b_2.py" in done.out
    readme = (tmp_path / "x" / "README.md").read_text()
    assert "inspect eval a_b.py " in readme
    assert "inspect eval a_b_2.py " in readme
    needed = (tmp_path / "x" / "requirements.txt").read_text()
    assert "aigo-bridge==" in needed
    assert "inspect-ai==" in needed
    before = (tmp_path / "x" / "a_b_2" / "samples.jsonl").stat().st_mtime_ns
    assert aigo("export", "one", "--to", "inspect", "--out", "x", "--force", "-n", 1).code == 0
    assert (tmp_path / "x" / "a_b_2" / "samples.jsonl").stat().st_mtime_ns == before
    assert len((tmp_path / "x" / "a_b" / "samples.jsonl").read_text().splitlines()) == 1
    manifest = json.loads((tmp_path / "x" / "a_b" / "export.json").read_bytes())
    assert (manifest["key"], manifest["num_samples"]) == ("a-b", 1)


def test_packages_used_by_task_code_are_listed(aigo: Run, author: Any, tmp_path: Path) -> None:
    """Packages outside the standard library and aigo-bridge are found without executing the code."""
    snippet = (
        "import json, numpy, sacrebleu, rouge_score, pandas.api as la\nfrom latticeflow.core.dtypes import Trace\nraise SystemExit\n"
        "def compute_scores(sample, solver_output):\n    from spacy.lang import en\n    return {'s': 1}\n"
    )
    author(scorers=[{"type": "python", "compute_scores_snippet": snippet}])

    done = aigo("export", "author", "--to", "inspect", "--out", "x")

    assert "note: the author's code imports pandas, spacy, which requirements.txt does not name\n" in done.out
    assert (
        "also imports `pandas`, `spacy`: install these packages" in (tmp_path / "x" / "README.md").read_text()
    )


def test_help_names_the_options(aigo: Run) -> None:
    done = aigo("export", "--help")

    assert done.code == 0
    for word in (
        "--to",
        "--out",
        "--native",
        "--config",
        "--dataset",
        "--num-samples",
        "--root",
        "--force",
        "--json",
    ):
        assert word in done.out


def test_several_results_are_exported_as_one_log_each(aigo: Run, author: Any, tmp_path: Path) -> None:
    folder = author()
    (folder / "answers.jsonl").write_text('{"default": true, "reply": {"text": "2"}}\n')
    aigo("run", "author", "--model", "scripted/author/answers.jsonl", "--out", "a")
    later = json.loads((tmp_path / "a" / "qa.tasklog.json").read_text())
    later["execution"]["started_at"] += 1
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "qa.tasklog.json").write_text(json.dumps(later))

    done = aigo("export", "a", "b/*.tasklog.json", "--to", "inspect-log", "--out", "logs", "--json")

    assert done.code == 0, done.err
    told = [json.loads(line) for line in done.out.splitlines()]
    assert [each["result"] for each in told] == ["a/qa.tasklog.json", "b/qa.tasklog.json"]
    assert {Path(each["log"]).name for each in told} == {path.name for path in (tmp_path / "logs").iterdir()}
    assert len({each["log"] for each in told}) == 2
