"""Errors in lighteval or in its input are corrected, reported or refused; a wrong number is never computed."""

from __future__ import annotations

import copy
import json
import re
import socket
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from tests.adapters.lighteval.benchmarks.conftest import Splits, alone, rows_of, run
from tests.support.commands import Run

from aigo_bridge.codes import Code
from aigo_bridge.errors import EngineError, UsageError

Scripted = Callable[[Mapping[str, str]], str]
DataDir = Callable[[Splits], Path]

CUSTOM = '''\
"""Tasks of somebody's own."""

import numpy as np
from lighteval.metrics.metrics import Metrics
from lighteval.metrics.metrics_sample import SampleLevelComputation
from lighteval.metrics.utils.metric_utils import SampleLevelMetric, SampleLevelMetricGrouping
from lighteval.tasks.lighteval_task import LightevalTaskConfig
from lighteval.tasks.requests import Doc, SamplingMethod


class Length(SampleLevelComputation):
    def compute(self, doc=None, model_response=None, responses=None, docs=None, **kwargs):
        if docs is not None:
            return [{"a": 1.0, "b": 2.0} for _ in docs]
        if "odd" in model_response.text[0]:
            raise ZeroDivisionError("an odd answer")
        if "silent" in model_response.text[0]:
            return None
        return float("nan") if "not a number" in model_response.text[0] else len(model_response.text[0])


class Pair(SampleLevelComputation):
    def compute(self, doc=None, model_response=None, **kwargs):
        return {"c": 1.0} if "partly" in model_response.text[0] else {"c": 1.0, "d": 2.0}


def prompt(row, task_name):
    if row["q"] == "left out":
        return None
    return Doc(query=row["q"], choices=[row["a"]], gold_index=0, specific={"kind": row.get("kind")})


def metric(name, batched=False):
    make = SampleLevelMetricGrouping if batched else SampleLevelMetric
    return make(
        metric_name=["a", "b"] if batched else name,
        higher_is_better={"a": True, "b": True} if batched else True,
        category=SamplingMethod.GENERATIVE,
        sample_level_fn=Length(),
        corpus_level_fn={"a": np.mean, "b": np.mean} if batched else np.mean,
        batched_compute=batched,
    )


def task(name, metrics, **rest):
    return LightevalTaskConfig(
        name=name,
        prompt_function=prompt,
        hf_repo="nowhere",
        hf_subset="default",
        metrics=metrics,
        **{"evaluation_splits": ["test"], "hf_avail_splits": ["test"], **rest},
    )


PAIR = SampleLevelMetricGrouping(
    metric_name=["c", "d"],
    higher_is_better={"c": True, "d": True},
    category=SamplingMethod.GENERATIVE,
    sample_level_fn=Pair(),
    corpus_level_fn={"c": np.mean, "d": np.mean},
    batched_compute=False,
)


TASKS_TABLE = [
    task("own:pair", [PAIR]),
    task("own:length", [metric("length"), Metrics.exact_match], evaluation_splits=["test", "more"]),
    task("own:grouped", [metric("x", batched=True)]),
    task("own:translated", [Metrics.chrf, Metrics.ter, Metrics.bleu]),
    task("own:few", [Metrics.exact_match], generation_size=-1),
]
'''


@pytest.fixture
def custom(tmp_path: Path) -> Path:
    """Write a file with custom tasks."""
    path = tmp_path / "own_tasks.py"
    path.write_text(CUSTOM)
    return path


def samples(outcome: Any) -> list[Any]:
    found: list[Any] = json.loads(outcome.result.read_text("utf-8"))["evidence"]["samples"]
    return found


def test_a_failed_call_or_metric_fails_only_its_document(
    custom: Path, tmp_path: Path, scripted: Scripted, data_dir: DataDir
) -> None:
    test = [{"q": f"q{n}", "a": "four", "kind": kind} for n, kind in enumerate([1, "text", None])]
    more = [{"q": "left out", "a": ""}, {"q": "unknown", "a": "x"}, {"q": "q4", "a": "x"}]
    model = scripted({"q0": "four", "q1": "fives", "q2": "odd", "q4": "x"})

    (outcome,) = run(f"{custom}@own:length", tmp_path / "out", model, data_dir({"test": test, "more": more}))

    assert (outcome.num_planned, outcome.num_failed) == (5, 2)
    assert [first.sample_id for first in outcome.first_errors] == ["2", "4"]
    assert outcome.first_errors[0].error.message == "length: an odd answer"
    values = {row.name: row.value for row in outcome.metrics}
    assert values["length"] == pytest.approx((4 + 5 + 1) / 3)
    assert values["em"] == pytest.approx(2 / 3)
    assert {row.num_scored for row in outcome.metrics} == {3}
    assert not outcome.passed(0)
    assert outcome.passed(2)
    found = samples(outcome)
    # Numbers continue across splits, and a row without a document skips its number.
    assert [sample["sample_id"] for sample in found] == ["0", "1", "2", "4", "5"]
    (failed,) = found[3]["trials"]
    assert [error["stage"] for error in failed["errors"]] == ["solver"]
    assert failed["scores"] == []
    (scored,) = found[2]["trials"]
    assert [error["error_type"] for error in scored["errors"]] == ["ZeroDivisionError"]
    assert [sample["trials"][0]["sample"]["data"].get("specific") for sample in found[:2]] == [
        {"kind": 1},
        {"kind": "text"},
    ]


def test_failures_are_recorded_in_the_run_files(
    custom: Path, tmp_path: Path, scripted: Scripted, data_dir: DataDir, aigo: Run
) -> None:
    test = [{"q": f"q{n}", "a": "four"} for n in range(3)]
    model = scripted({"q0": "four", "q2": "odd"})
    splits = {"test": test, "more": []}
    (outcome,) = run(f"{custom}@own:length", tmp_path / "out", model, data_dir(splits))

    done = aigo("import", outcome.native_log, "--out", tmp_path / "back")

    assert (done.code, outcome.num_failed) == (0, 2)
    assert "3 samples in 3 trials, 2 failed" in done.out
    (written,) = (tmp_path / "back").glob("*.tasklog.json")
    back = json.loads(written.read_text("utf-8"))["evidence"]
    assert back["failures"] == {"num_errors": 2, "num_total": 3}
    errors = [sample["trials"][0]["errors"] for sample in samples(outcome)]
    assert [len(found) for found in errors] == [0, 1, 1]
    assert [sample["trials"][0]["errors"] for sample in back["samples"]] == errors


def test_run_files_are_valid_lighteval_results(
    custom: Path, tmp_path: Path, aigo: Run, scripted: Scripted, data_dir: DataDir
) -> None:
    rows = [{"q": f"q{n}", "a": "x", "kind": kind} for n, kind in enumerate([1, "text", None])]
    model = scripted({"q0": "x", "q1": "", "q2": "x"})

    done = aigo(
        *("run", f"lighteval:{custom}@own:length", "--model", model, "--out", "out", "--json"),
        *("--data-dir", data_dir({"test": rows, "more": []})),
    )

    assert done.code == 0, done.err
    (summary,) = done.json
    assert {name: number for name, number in summary["samples"].items() if number} == {
        "planned": 3,
        "samples": 3,
        "scored": 3,
        "trials": 3,
        "scored_trials": 3,
    }
    assert aigo("validate", summary["result"]).code == 0
    again = aigo("import", summary["native_log"], "--out", "again")
    assert again.code == 0, again.out
    (imported,) = Path("again").glob("*.tasklog.json")
    own, other = (json.loads(Path(path).read_text("utf-8")) for path in (summary["result"], imported))
    assert own["evidence"]["metrics"] == other["evidence"]["metrics"]
    assert [[trial["scores"] for trial in sample["trials"]] for sample in own["evidence"]["samples"]] == [
        [trial["scores"] for trial in sample["trials"]] for sample in other["evidence"]["samples"]
    ]


def test_metric_names_are_the_same_in_every_process() -> None:
    from lighteval.tasks.tasks.math import TASKS_TABLE

    from aigo_lighteval.benchmarks.faults import mend_metrics

    config = copy.deepcopy(TASKS_TABLE[0])
    before = [metric.metric_name for metric in config.metrics]
    mend_metrics(config)

    assert any(" at 0x" in name for name in before)
    assert [name for metric in config.metrics if " at 0x" in (name := metric.metric_name)] == []


def test_translation_metrics_are_computed_over_all_documents(
    custom: Path, tmp_path: Path, scripted: Scripted, data_dir: DataDir
) -> None:
    import sacrebleu

    said = {"q0": "the cat sat down", "q1": "a dog", "q2": "rain fell over the sea"}
    golds = ["the cat sat", "some dogs ran away", "snow fell on the hill"]
    rows = [{"q": name, "a": gold} for name, gold in zip(said, golds, strict=True)]

    (outcome,) = run(f"{custom}@own:translated", tmp_path / "out", scripted(said), data_dir({"test": rows}))

    answers = list(said.values())
    assert {row.name: row.value for row in outcome.metrics} == pytest.approx(
        {
            "chrf": sacrebleu.corpus_chrf(answers, [golds]).score,
            "ter": sacrebleu.corpus_ter(answers, [golds]).score,
            "bleu": sacrebleu.corpus_bleu(answers, [golds]).score,
        }
    )


def test_a_document_is_not_its_own_few_shot_example(
    custom: Path, tmp_path: Path, scripted: Scripted, data_dir: DataDir
) -> None:
    rows = [{"q": f"q{n}", "a": f"a{n}"} for n in range(4)]

    (outcome,) = run(
        f"{custom}@own:few|3",
        tmp_path / "out",
        scripted({f"q{n}": f"a{n}" for n in range(4)}),
        data_dir({"test": rows}),
    )

    for sample in samples(outcome):
        (trial,) = sample["trials"]
        asked = [
            "".join(part["text"] for part in item["content"])
            for item in trial["solver"]["output"]["trace"]["items"]
        ]
        assert len(asked) == 8
        assert len(set(asked[::2])) == 4
        body = json.loads(trial["solver"]["output"]["direct_ios"][0]["direct_input"]["body"])
        # A length of -1 means no limit.
        assert "max_tokens" not in body["config"]


def questions(outcome: Any) -> list[list[str]]:
    """Return the texts of the user messages sent for each document."""
    trials = [sample["trials"][0]["solver"]["output"]["trace"]["items"] for sample in samples(outcome)]
    return [[item["content"][0]["text"] for item in items if item["role"] == "user"] for items in trials]


def test_examples_keep_questions_if_the_instruction_is_the_whole_question(
    tmp_path: Path, scripted: Scripted, data_dir: DataDir
) -> None:
    rows = rows_of("mmlu_pro")
    model = scripted({"never": "asked"}).removeprefix("scripted/")
    Path(model).write_text(json.dumps({"default": True, "reply": "Answer: A"}))

    (outcome,) = run("mmlu_pro|2", tmp_path / "out", f"scripted/{model}", data_dir(rows))

    asked = questions(outcome)
    assert len(asked) == 3
    for number, texts in enumerate(asked, 1):
        assert all(text.startswith("Answer the following multiple choice question.") for text in texts)
        assert len({*texts[:2]}) == 2
        assert f"What is {number}^2?" in texts[2]


def test_a_question_with_reordered_choices_is_not_its_own_example(
    tmp_path: Path, scripted: Scripted, data_dir: DataDir
) -> None:
    """The order of the gpqa choices is drawn each time a row is read."""
    names = ("Correct Answer", *(f"Incorrect Answer {number}" for number in (1, 2, 3)))
    rows = [{"Question": f"Spin of {n}?", **dict(zip(names, "rxyz", strict=True))} for n in range(8)]
    model = scripted({"never": "asked"}).removeprefix("scripted/")
    Path(model).write_text(json.dumps({"default": True, "reply": "Answer: A"}))

    (outcome,) = run("gpqa:diamond|6", tmp_path / "out", f"scripted/{model}", data_dir({"train": rows}))

    for texts in questions(outcome):
        assert len({re.search(r"Spin of \d", text)[0] for text in texts}) == 7  # type: ignore[index]


@pytest.mark.parametrize(
    ("selection", "spare"),
    [("random_sampling_from_train", ""), ("random_sampling", " and one spare example"), ("sequential", "")],
)
def test_too_many_few_shot_examples_are_reported_with_numbers(
    selection: str, spare: str, custom: Path, tmp_path: Path, scripted: Scripted, data_dir: DataDir
) -> None:
    few = f'few_shots_split="train", few_shots_select="{selection}", hf_avail_splits=["test", "train"]'
    custom.write_text(custom.read_text().replace("generation_size=-1", few))
    rows = [{"q": f"q{n}", "a": "x"} for n in range(3)]
    splits = {"test": rows, "train": rows}
    with pytest.raises(UsageError) as caught:
        run(f"{custom}@own:few|9", tmp_path / "out", scripted({"q": "a"}), data_dir(splits))
    assert str(caught.value) == f"task 'own:few' needs 9 examples{spare}, but its split 'train' has 3"
    assert caught.value.code == Code.UNFIT_BENCHMARK


def test_missing_few_shot_examples_are_refused(
    custom: Path, tmp_path: Path, scripted: Scripted, data_dir: DataDir
) -> None:
    rows = [{"q": f"q{n}", "a": "x"} for n in range(3)]
    with pytest.raises(UsageError, match=r"3 examples were requested, 3 documents have fewer \(down to 2\)"):
        run(f"{custom}@own:few|3", tmp_path / "out", scripted({"q": "a"}), data_dir({"test": rows}))


def test_metrics_that_lighteval_separates_incorrectly_are_refused(
    custom: Path, tmp_path: Path, scripted: Scripted, data_dir: DataDir
) -> None:
    with pytest.raises(UsageError, match="separates incorrectly"):
        run(f"{custom}@own:grouped", tmp_path / "out", scripted({"q": "a"}))


def test_model_generated_code_is_not_run_without_a_sandbox(tmp_path: Path, scripted: Scripted) -> None:
    from aigo_lighteval.benchmarks.tasks import built_in

    names = [name for name in built_in().configs if name.startswith(("lcb:", "slr_bench"))]
    assert len(names) > 20
    for name in names:
        with pytest.raises(UsageError, match="runs code that a model wrote"):
            run(name, tmp_path / "out", scripted({"q": "a"}))


def test_custom_tasks_are_found_together_with_built_in_ones(
    custom: Path, tmp_path: Path, scripted: Scripted, data_dir: DataDir
) -> None:
    folder = data_dir({})
    for name, splits in (("own_few", {"test": [{"q": "q", "a": "x"}]}), ("gsm8k", rows_of("gsm8k"))):
        (folder / name).mkdir()
        for split, rows in splits.items():
            lines = "".join(json.dumps(row) + "\n" for row in rows)
            (folder / name / f"{split}.jsonl").write_text(lines)
    answers = {"q": "x"} | {f"Question: {row['question']}\nAnswer:": "7" for row in rows_of("gsm8k")["test"]}

    outcomes = run(
        "own:few,gsm8k", tmp_path / "out", scripted(answers), folder, custom_tasks=custom, num_samples=2
    )

    assert [outcome.task for outcome in outcomes] == ["own:few|0", "gsm8k|0"]
    assert [outcome.num_samples for outcome in outcomes] == [1, 2]
    assert [outcome.result.name for outcome in outcomes if outcome.result] == [
        "own_few.tasklog.json",
        "gsm8k.tasklog.json",
    ]


@pytest.mark.parametrize(
    ("task", "message"),
    [
        ("gsm8", "no benchmark 'gsm8' found.*did you mean 'gsm8k'"),
        ("gsm8k|many", r"expected a task, or TASK\|SHOTS"),
        ("gsm8k@k=1", "no metric of task 'gsm8k' has a parameter 'k'"),
        ("gsm8k,gsm8k|0", "more than once"),
        ("nothing.py@x", "file 'nothing.py' does not exist"),
        ("tiny:gsm8k", "uses the network during import"),
    ],
)
def test_a_missing_task_is_reported(
    task: str, message: str, tmp_path: Path, scripted: Scripted, monkeypatch: pytest.MonkeyPatch
) -> None:
    import urllib.request

    def unreachable(*_: object, **__: object) -> None:
        raise OSError("no network")

    monkeypatch.setattr(urllib.request, "urlopen", unreachable)
    monkeypatch.setattr("requests.get", unreachable)
    with pytest.raises(UsageError, match=message):
        run(task, tmp_path / "out", scripted({"a": "b"}))


@pytest.mark.slow
def test_a_multilingual_task_is_found_by_name(tmp_path: Path, scripted: Scripted, data_dir: DataDir) -> None:
    """The task is one of 50,000 that lighteval only loads with an option."""
    rows = [{"enonce": "Soit x = 2.", "instruction": "Calculer x.", "choix": None, "reponse": "2"}]
    model = scripted({"never": "asked"}).removeprefix("scripted/")
    Path(model).write_text(json.dumps({"default": True, "reply": "2"}))
    notes: list[str] = []

    (outcome,) = run(
        *("bac-fr", tmp_path / "out", f"scripted/{model}"),
        data_dir({"train": rows}),
        max_samples=2,
        on_note=notes.append,
    )

    assert (outcome.num_samples, outcome.num_failed) == (1, 0)
    assert {metric.value for metric in outcome.metrics if not metric.name.endswith("_stderr")} == {1.0}
    assert [note.split(";")[1].strip()[:13] for note in notes] == ["for the first"]
    with pytest.raises(UsageError, match=r"its file cannot be imported \(mgsm: ImportError"):
        run("mgsm_deu", tmp_path / "out", scripted({"a": "b"}))


def test_invalid_rows_are_reported_with_their_number(
    tmp_path: Path, scripted: Scripted, data_dir: DataDir
) -> None:
    rows = [{"question": "1+1?", "answer": "2"}, {"query": "1+1?"}]
    with pytest.raises(UsageError, match=r"row 1 does not fit.*KeyError: 'question'.*columns: query"):
        run("gsm8k", tmp_path / "out", scripted({"a": "b"}), data_dir({"test": rows}))
    with pytest.raises(UsageError, match=r"needs its split 'test', expected '.*test\.jsonl'"):
        run("gsm8k", tmp_path / "out", scripted({"a": "b"}), data_dir({}) / "..")


def test_top_level_rows_are_refused_for_several_tasks(
    tmp_path: Path, scripted: Scripted, data_dir: DataDir
) -> None:
    with pytest.raises(UsageError, match="'mmlu:abstract_algebra' needs its split"):
        run("mmlu", tmp_path / "out", scripted({"a": "b"}), data_dir(rows_of("gsm8k")))


def test_a_metric_without_its_data_fails_every_document(
    tmp_path: Path, scripted: Scripted, data_dir: DataDir
) -> None:
    splits = rows_of("boolq")

    (outcome,) = run(alone("boolq"), tmp_path / "out", scripted({"never": "asked"}), data_dir(splits))

    assert outcome.num_failed == outcome.num_planned == 3
    assert outcome.metrics == ()
    assert not outcome.passed(0)


def test_meaningless_options_are_reported_together(tmp_path: Path, scripted: Scripted) -> None:
    with pytest.raises(UsageError, match=r"(?s)--model-map.*--num-trials.*--cost-limit"):
        run(
            *("gsm8k", tmp_path / "out", scripted({"a": "b"})),
            roles={"grader": "x"},
            num_trials=2,
            cost_limit=1.0,
        )


@pytest.mark.parametrize("answer", ["silent", "not a number"])
def test_metric_without_value_leaves_the_other_scores_of_the_document(
    answer: str, custom: Path, tmp_path: Path, scripted: Scripted, data_dir: DataDir, aigo: Run
) -> None:
    rows = {"test": [{"q": f"q{n}", "a": a} for n, a in enumerate(["four", answer, "x"])], "more": []}
    model = scripted({"q0": "four", "q1": answer, "q2": "six"})

    (outcome,) = run(f"{custom}@own:length", tmp_path / "out", model, data_dir(rows))

    assert (outcome.num_planned, outcome.num_failed, outcome.num_unscored) == (3, 0, 1)
    assert {row.name: (row.value, row.num_scored) for row in outcome.metrics if "stderr" not in row.name} == {
        "length": (3.5, 2),
        "em": (pytest.approx(2 / 3), 3),
    }
    assert outcome.doubts == ("scorer length: 1 sample was not scored, and left out of its metrics",)
    assert not outcome.passed(0)
    assert outcome.passed(1)
    assert aigo("import", outcome.native_log, "--out", tmp_path / "back").code == 0
    back = next((tmp_path / "back").glob("*.tasklog.json"))
    assert outcome.result is not None
    for file in (outcome.result, back):
        evidence = json.loads(file.read_text())["evidence"]
        assert evidence["failures"] == {"num_errors": 0, "num_total": 3}
        (trial,) = evidence["samples"][1]["trials"]
        assert trial["errors"] == []
        scores = {score["scorer_name"]: score for score in trial["scores"]}
        assert scores["em"]["values"] == {"em": 1.0}
        assert scores["length"]["values"] == {"length": None}
        assert scores["length"]["metadata"]["unscored"] is True


def test_metric_that_leaves_out_one_of_its_values_is_unscored(
    custom: Path, tmp_path: Path, scripted: Scripted, data_dir: DataDir
) -> None:
    rows = {"test": [{"q": f"q{n}", "a": "x"} for n in range(2)]}

    (outcome,) = run(
        f"{custom}@own:pair", tmp_path / "out", scripted({"q0": "x", "q1": "partly"}), data_dir(rows)
    )

    assert (outcome.num_failed, outcome.num_unscored) == (0, 1)
    assert {row.name: (row.value, row.num_scored) for row in outcome.metrics if "stderr" not in row.name} == {
        "c": (1.0, 2),
        "d": (2.0, 1),
    }


def test_tasks_are_listed_without_a_network(aigo: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """No socket is opened, so a network without answers cannot block the list."""

    def refused(*_: object, **__: object) -> None:
        raise AssertionError("a socket was opened")

    monkeypatch.setattr(socket.socket, "connect", refused)
    monkeypatch.setattr(socket, "create_connection", refused)
    monkeypatch.setattr(socket, "getaddrinfo", refused)
    done = aigo("list", "lighteval", "--json")
    assert done.code == 0, done.err
    found = {row["name"]: row for row in done.json}
    assert len(found) > 600
    assert found["lighteval:mmlu"]["description"].startswith("57 tasks")
    assert "parameters" in found["lighteval:aime24"]
    assert "socket was opened" not in done.err


def test_lighteval_options_are_refused_for_other_engines(aigo: Run, custom: Path) -> None:
    done = aigo("run", "inspect:anything", "--data-dir", custom.parent, "--out", "out")
    assert done.code == 2
    assert "--data-dir, --custom-tasks: not for benchmarks of inspect" in done.err


def test_an_error_in_one_task_does_not_stop_the_others(
    custom: Path, tmp_path: Path, scripted: Scripted, data_dir: DataDir, monkeypatch: pytest.MonkeyPatch
) -> None:
    from aigo_lighteval.benchmarks import run as benchmarks
    from aigo_lighteval.benchmarks.outcomes import finish

    def failing(pipeline: Any, selected: Any, out: Path) -> Any:
        if selected.config.name == "own:few":
            raise EngineError("it broke")
        return finish(pipeline, selected, out)

    monkeypatch.setattr(benchmarks, "finish", failing)
    folder = data_dir({})
    for name in ("own_few", "own_translated"):
        (folder / name).mkdir()
        (folder / name / "test.jsonl").write_text('{"q": "q", "a": "x"}\n')
    broken, sound = run(
        f"{custom}@own:few,{custom}@own:translated", tmp_path / "out", scripted({"q": "x"}), folder
    )
    assert (broken.status, broken.error, broken.passed(0)) == ("error", "it broke", False)
    assert sound.status == "success"


def test_rows_are_read_from_every_file_format_and_from_several_files(
    custom: Path, tmp_path: Path, scripted: Scripted
) -> None:
    import gzip

    import pyarrow as pa  # type: ignore[import-untyped]  # ships none
    import pyarrow.parquet as pq  # type: ignore[import-untyped]  # ships none

    folder = tmp_path / "rows"
    folder.mkdir()
    (folder / "test-00000-of-00002.jsonl.gz").write_bytes(gzip.compress('{"q": "ä", "a": "x"}\n'.encode()))
    pq.write_table(pa.table({"q": ["q1"], "a": ["x"]}), folder / "test-00001-of-00002.parquet")
    (folder / "more.csv").write_text('q,a\nq2,x\n"q3",\n')
    (folder / "testing.jsonl").write_text("another split\n")

    (outcome,) = run(
        f"{custom}@own:length",
        tmp_path / "out",
        scripted(dict.fromkeys(("ä", "q1", "q2", "q3"), "x")),
        folder,
    )

    assert outcome.num_failed == 0
    queries = [sample["trials"][0]["sample"]["data"]["query"] for sample in samples(outcome)]
    assert queries == ["ä", "q1", "q2", "q3"]


def test_metric_parameters_are_applied_and_shown_in_names(
    tmp_path: Path, scripted: Scripted, data_dir: DataDir
) -> None:
    from aigo_lighteval.benchmarks.tasks import built_in

    before = [metric.metric_name for metric in built_in().configs["aime24"].metrics]
    splits = rows_of("aime24")
    prompt = built_in().configs["aime24"].prompt_function
    asked = {prompt(dict(row), "").query: "The answer is 4." for row in splits["train"]}

    (outcome,) = run("aime24@n=3", tmp_path / "out", scripted(asked), data_dir(splits))

    assert [row.name for row in outcome.metrics if "stderr" not in row.name] == [
        "pass@k:k=1&n=3",
        "avg@n:n=3",
    ]
    for sample in samples(outcome):
        assert len(sample["trials"]) == 3
        for trial in sample["trials"]:
            (exchange,) = trial["solver"]["output"]["direct_ios"]
            assert json.loads(exchange["direct_output"]["body"])["text"] == "The answer is 4."
    assert [metric.metric_name for metric in built_in().configs["aime24"].metrics] == before


def test_importing_tasks_keeps_the_integer_digit_limit() -> None:
    """A file of lighteval raises the limit for the whole process."""
    program = (
        "import sys; before = sys.get_int_max_str_digits()\n"
        "from aigo_lighteval.benchmarks.tasks import built_in\n"
        "assert 'lighteval.tasks.tasks.lcb.main' in {m.__name__ for m in built_in().modules.values()}\n"
        "assert sys.get_int_max_str_digits() == before\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
