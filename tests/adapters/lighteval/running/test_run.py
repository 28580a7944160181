"""Runs on the real lighteval: the silent changes of its pipeline to a task do not happen."""

from __future__ import annotations

import errno
import json
import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.support.commands import Run
from tests.support.endpoint import Endpoint, completion
from tests.support.jobs import run_job

from aigo_bridge.codes import Code
from aigo_bridge.datasets.spill_files import SpillFile
from aigo_bridge.engine.protocol import Job, LogRef, Progress, RunSettings
from aigo_bridge.errors import EngineError, EvidenceError, UsageError
from aigo_bridge.execution.checkpoint import Checkpoint
from aigo_bridge.plan.plan import TaskPlan
from aigo_bridge.results.records import TrialRecord
from aigo_lighteval.engine import LightevalEngine
from aigo_lighteval.running.evidence import block_of

pytestmark = pytest.mark.xdist_group("lighteval")

ASK = """
  solver:
    type: single_turn_solver
    input_builder: {type: chat_completion, input_messages: [{role: user, content: "{{ sample.q }}"}]}
"""
MakePlan = Callable[..., TaskPlan]
Script = Callable[..., str]
ECHO = {"match": {"regex": "."}, "reply": "yes"}


def ran(made: TaskPlan, out: Path, **settings: Any) -> list[TrialRecord]:
    engine = LightevalEngine()
    return list(engine.read(run_job(engine, made, out, **settings).path).trials())


def scores(records: list[TrialRecord]) -> dict[Any, Any]:
    return {record.sample_id: dict(record.scores[0].values) if record.scores else None for record in records}


def test_rows_keep_order_and_types(make_plan: MakePlan, script: Script, tmp_path: Path) -> None:
    """lighteval shuffles documents, its loader guesses types, and Arrow refuses columns of mixed types."""
    rows: list[dict[str, Any]] = [
        {"q": f"question {number}", "a": "yes", "mixed": value}
        for number, value in enumerate(
            [1, "one", None, {"x": 1}, {}, [1, "a"], "2024-01-01", True, float("nan"), "é😀"]
        )
    ]
    records = ran(make_plan(rows), tmp_path / "out", model=script(ECHO))
    assert [record.sample_id for record in records] == list(range(10))
    kept = [record.data["mixed"] for record in records]
    assert kept[8] != kept[8]  # NaN is kept
    assert kept[:8] + kept[9:] == [row["mixed"] for row in rows[:8] + rows[9:]]


def test_details_written_in_parts_equal_details_written_at_once(
    make_plan: MakePlan, script: Script, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """This includes a part with only failed samples, in which a column has no value to infer its type."""
    import pyarrow.parquet as pq  # type: ignore[import-untyped]  # ships none

    from aigo_lighteval.running import pipeline

    made = make_plan(
        [{"q": f"{'bad' if number < 4 else 'good'} {number}", "a": "yes"} for number in range(9)]
    )
    model = script({"match": {"contains": "bad"}, "reply": {"error": "no"}}, ECHO)
    records = ran(made, tmp_path / "at once", model=model)
    monkeypatch.setattr(pipeline, "BATCH_ROWS", 2)

    in_parts = ran(made, tmp_path / "in parts", model=model)

    assert scores(in_parts) == scores(records)
    assert [record.sample_id for record in in_parts] == list(range(9))
    (once,), (parts,) = ((tmp_path / name / "details").rglob("*.parquet") for name in ("at once", "in parts"))
    assert pq.read_schema(parts).equals(pq.read_schema(once), check_metadata=True)
    assert pq.read_table(parts, columns=["doc"]) == pq.read_table(once, columns=["doc"])


def test_details_are_those_that_lighteval_would_write(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Other programs read them with the `datasets` library."""
    from datasets import Dataset, load_dataset  # type: ignore[import-untyped]  # ships none

    from aigo_lighteval.running import pipeline

    messages = [{"role": "user", "content": "é 空"}]
    rows = [
        {
            "doc": {
                "query": f"q{number}",
                "instruction": None if number < 5 else "Be brief.",
                "images": None,
            },
            "model_response": {
                "input": messages if number in (3, 8) else [],
                "logprobs": [-1.5] * (number > 6),
            },
            "metric": {"aigo": "[]"},
        }
        for number in range(9)
    ]
    monkeypatch.setattr(pipeline, "BATCH_ROWS", 2)
    with (tmp_path / "ours.parquet").open("wb") as file:
        pipeline.TaskDetails(rows).to_parquet(file)
    with (tmp_path / "lighteval.parquet").open("wb") as file:
        Dataset.from_list(rows).to_parquet(file)

    ours, lightevals = (
        load_dataset(
            "parquet", data_files=str(tmp_path / f"{name}.parquet"), split="train", cache_dir=str(tmp_path)
        )
        for name in ("ours", "lighteval")
    )

    assert ours.features == lightevals.features
    assert ours.to_list() == lightevals.to_list() == rows


def test_outcomes_on_a_full_disk_have_the_same_records(
    make_plan: MakePlan, script: Script, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from aigo_lighteval.running import evidence

    made = make_plan(
        [{"q": ("bad" if number % 3 else "göod 空 ") + str(number), "a": "yes"} for number in range(9)]
    )
    model = script({"match": {"contains": "bad"}, "reply": {"error": "no"}}, ECHO)
    on_disk = ran(made, tmp_path / "on disk", model=model)

    class FullDisk(SpillFile):
        def append(self, value: Any) -> None:
            if len(self) == 3:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            super().append(value)

    monkeypatch.setattr(evidence, "SpillFile", FullDisk)
    in_memory = ran(made, tmp_path / "in memory", model=model)

    assert scores(in_memory) == scores(on_disk)
    for one, other in zip(on_disk, in_memory, strict=True):
        assert (other.sample_id, other.data) == (one.sample_id, one.data)
        assert [(error.error_type, error.message) for error in other.errors] == [
            (error.error_type, error.message) for error in one.errors
        ]
        assert (other.solver is None) == (one.solver is None)


def test_scores_come_from_aigo_bridge_not_from_lighteval(
    make_plan: MakePlan, script: Script, tmp_path: Path
) -> None:
    """The exact match of lighteval strips both sides, scores empty answers 0 and removes reasoning tags
    first."""
    rows = [{"q": "padded", "a": "a"}, {"q": "empty", "a": ""}, {"q": "tags", "a": "<think>b</think>a"}]
    model = script(
        {"match": {"exact": "padded"}, "reply": " a\n"},
        {"match": {"exact": "empty"}, "reply": ""},
        {"match": {"exact": "tags"}, "reply": "<think>b</think>a"},
    )
    assert scores(ran(make_plan(rows), tmp_path / "out", model=model)) == {
        0: {"is_correct": 0.0}, 1: {"is_correct": 1.0}, 2: {"is_correct": 1.0},
    }  # fmt: skip


def test_a_failed_sample_does_not_end_the_run(make_plan: MakePlan, script: Script, tmp_path: Path) -> None:
    """One exception in a model or a metric ends a lighteval run."""
    rows = [{"q": "good", "n": 1}, {"q": "bad", "n": 1}, {"q": "unscorable", "n": 0}]
    model = script({"match": {"exact": "bad"}, "reply": {"error": "no"}}, ECHO)
    equals = '\n  scorers: [{type: string_equals, ground_truth: "{{ sample.n // sample.n }}"}]\n'
    records = ran(make_plan(rows, ASK + equals), tmp_path / "out", model=model)
    assert scores(records) == {0: {"is_correct": 0.0}, 1: None, 2: None}
    assert [(error.error_type, error.stage and error.stage.value) for error in records[1].errors] == [
        ("RuntimeError", "solver")
    ]
    assert [error.stage and error.stage.value for error in records[2].errors] == ["score"]


def test_changed_answers_are_not_read_from_a_cache(
    make_plan: MakePlan, script: Script, tmp_path: Path
) -> None:
    made = make_plan([{"q": "same", "a": "yes"}])
    assert scores(ran(made, tmp_path / "out", model=script(ECHO))) == {0: {"is_correct": 1.0}}
    changed = script({"default": True, "reply": "no"})
    assert scores(ran(made, tmp_path / "out", model=changed)) == {0: {"is_correct": 0.0}}


def test_an_empty_dataset_is_not_an_error(make_plan: MakePlan, script: Script, tmp_path: Path) -> None:
    """A filter can remove all rows, and lighteval refuses a task without documents."""
    made = make_plan([{"q": "one", "a": "yes"}])
    assert ran(replace(made, samples=()), tmp_path / "out", model=script(ECHO)) == []


def test_long_task_keys_and_relative_model_paths_are_accepted(
    make_plan: MakePlan, script: Script, tmp_path: Path
) -> None:
    made = make_plan([{"q": "one", "a": "yes"}], key="a-" + "b" * 200)
    folder = tmp_path / "x" / ".." / "deep"
    (tmp_path / "x").mkdir()
    folder.mkdir()
    (folder / "m.jsonl").write_text(json.dumps(ECHO))
    records = ran(made, tmp_path / "out", model=f"scripted/{folder}/m.jsonl")
    assert len(records) == 1
    assert {path.name for path in tmp_path.iterdir()} == {"task", "x", "deep", "out"}


def test_trials_are_stored_in_one_document(make_plan: MakePlan, script: Script, tmp_path: Path) -> None:
    made = replace(make_plan([{"q": "one", "a": "yes"}, {"q": "two", "a": "no"}]), num_trials=3)
    records = ran(made, tmp_path / "out", model=script(ECHO))
    assert [(record.sample_id, record.index) for record in records] == [
        (n, t) for n in (0, 1) for t in range(3)
    ]


def test_progress_counts_every_trial(make_plan: MakePlan, script: Script, tmp_path: Path) -> None:
    seen: list[Progress] = []
    made = make_plan([{"q": "good", "a": "yes"}, {"q": "bad", "a": "yes"}])
    model = script({"match": {"exact": "bad"}, "reply": {"error": "no"}}, ECHO)
    ran(made, tmp_path / "out", model=model, on_progress=seen.append)
    assert [(each.done, each.total) for each in seen] == [(0, 2), (1, 2), (2, 2)]
    assert seen[-1].failed == 1


def test_lighteval_results_contain_aigo_bridge_metrics(
    make_plan: MakePlan, script: Script, tmp_path: Path
) -> None:
    engine = LightevalEngine()
    made = make_plan([{"q": "good", "a": "yes"}, {"q": "also", "a": "no"}])
    log = run_job(engine, made, tmp_path / "out", model=script(ECHO))
    found = json.loads(log.path.read_bytes())
    assert found["results"]["aigo-t|0"] == {"string_equals.accuracy": 0.5}
    assert "0x" not in json.dumps(found["config_tasks"])


def test_conversation_details_contain_the_first_question(
    make_plan: MakePlan, script: Script, tmp_path: Path
) -> None:
    import pyarrow.parquet as pq

    turns = '[{type: chat_message, role: user, content: "{{ sample.q }}"}, {type: generate}, {type: chat_message, role: user, content: Sure?}, {type: generate}]'
    task = f"""
  solver: {{type: multi_turn_solver, message_builders: {turns}}}
  scorers: [{{type: string_equals, ground_truth: "yes"}}]
"""
    made = make_plan([{"q": "one"}, {"q": "two"}], task)

    records = ran(made, tmp_path / "out", model=script(ECHO))

    assert scores(records) == {0: {"is_correct": 1.0}, 1: {"is_correct": 1.0}}
    (file,) = (tmp_path / "out" / "details").rglob("*.parquet")
    docs = [row["doc"] for row in pq.read_table(file).to_pylist()]
    assert [doc["query"] for doc in docs] == ["one", "two"]
    assert [(doc["use_logits"], doc["original_query"]) for doc in docs] == [(False, None)] * 2


def test_limits_stop_a_sample(make_plan: MakePlan, script: Script, tmp_path: Path) -> None:
    made = make_plan([{"q": "slow", "a": "yes"}, {"q": "fast", "a": "yes"}])
    slow = script({"match": {"exact": "slow"}, "reply": {"text": "yes", "delay": 30}}, ECHO)
    records = ran(made, tmp_path / "out", model=slow, time_limit=1)
    assert [[error.error_type for error in record.errors] for record in records] == [["LimitExceeded"], []]
    greedy = script(
        {"default": True, "reply": {"text": "yes", "usage": {"input_tokens": 50, "output_tokens": 1}}}
    )
    records = ran(made, tmp_path / "out", model=greedy, token_limit=50)
    assert [[error.error_type for error in record.errors] for record in records] == [["LimitExceeded"]] * 2


def test_a_cost_limit_is_refused_without_known_prices(
    make_plan: MakePlan, script: Script, tmp_path: Path
) -> None:
    with pytest.raises(UsageError, match="does not know prices"):
        ran(make_plan([{"q": "a", "a": "b"}]), tmp_path / "out", model=script(ECHO), cost_limit=1.0)


def test_requests_are_retried_after_transient_failures(
    make_plan: MakePlan, endpoint: Endpoint, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("aigo_bridge.execution.progress.FIRST_WAIT", 0.01)
    answers = iter(
        [(503, {"error": "busy"}), (200, completion("yes")), (400, {"error": {"message": "too long"}})]
    )
    endpoint.answer = lambda _: next(answers)
    made = make_plan([{"q": "one", "a": "yes"}, {"q": "two", "a": "yes"}])
    monkeypatch.setenv("OPENAI_BASE_URL", endpoint.url)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-a-secret-key")
    records = ran(made, tmp_path / "out", model="openai/gpt-x", max_samples=1)
    assert scores(records) == {0: {"is_correct": 1.0}, 1: None}
    assert [error.error_type for error in records[1].errors] == ["ModelError"]
    assert "too long" in records[1].errors[0].message
    assert endpoint.requests[0]["model"] == "gpt-x"
    assert endpoint.headers[0]["authorization"] == "Bearer sk-a-secret-key"
    output: Any = records[0].solver
    assert [io.direct_output.status_code for io in output.direct_ios] == [200]
    written = b"".join(path.read_bytes() for path in (tmp_path / "out").rglob("*") if path.is_file())
    assert b"sk-a-secret-key" not in written


def test_concurrent_connections_are_limited(
    make_plan: MakePlan, endpoint: Endpoint, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def answer(_: Any) -> tuple[int, dict[str, Any]]:
        time.sleep(0.02)
        return 200, completion("yes")

    endpoint.answer = answer
    made = make_plan([{"q": str(number), "a": "yes"} for number in range(12)])
    monkeypatch.setenv("OPENAI_BASE_URL", endpoint.url)
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    ran(made, tmp_path / "out", model="openai/gpt-x", max_connections=3)
    assert endpoint.most_in_flight == 3


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (None, "choose one with --model"),
        ("gpt-4", "is not available on the lighteval engine"),
        ("anthropic/claude", "--engine inspect"),
        ("vllm/x", "VLLM_BASE_URL"),
        ("openai/x", "OPENAI_API_KEY"),
    ],
)
def test_invalid_models_are_refused_before_the_run(
    model: str | None, message: str, make_plan: MakePlan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("VLLM_BASE_URL", "OPENAI_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(UsageError, match=message):
        ran(make_plan([{"q": "a", "a": "b"}]), tmp_path / "out", model=model)
    assert not (tmp_path / "out").exists()


def test_a_finished_run_is_not_run_again(make_plan: MakePlan, script: Script, tmp_path: Path) -> None:
    engine, out = LightevalEngine(), tmp_path / "out"
    made = make_plan([{"q": "one", "a": "yes"}, {"q": "two", "a": "yes"}])
    model = script(
        {"match": {"exact": "one"}, "reply": "yes"},
        {"match": {"exact": "two"}, "times": 1, "reply": {"error": "x"}},
        ECHO,
    )
    first = run_job(engine, made, out, model=model)
    # Only the failed trial is run again. The rules restart, so its call fails once more before it succeeds.
    model = script(ECHO)
    second = run_job(engine, made, out, model=model, earlier="resume")
    assert (second.reused, second.earlier) == (1, first.path)
    assert scores(list(engine.read(second.path).trials())) == {0: {"is_correct": 1.0}, 1: {"is_correct": 1.0}}
    third = run_job(engine, made, out, model=model, earlier="resume")
    assert (third.path, third.reused) == (second.path, 2)


def test_outputs_are_rescored_without_the_model(make_plan: MakePlan, script: Script, tmp_path: Path) -> None:
    engine, out = LightevalEngine(), tmp_path / "out"
    rows = [{"q": "one", "a": "yes"}]
    run_job(engine, make_plan(rows), out, model=script(ECHO))
    silent = script({"default": True, "reply": {"error": "must not be asked"}})
    scored_otherwise = make_plan(rows, f"{ASK}  scorers: [{{type: string_equals, ground_truth: never}}]\n")
    again = run_job(engine, scored_otherwise, out, model=silent, earlier="reuse")
    assert again.replayed
    assert scores(list(engine.read(again.path).trials())) == {0: {"is_correct": 0.0}}


def test_missing_details_are_reported_as_an_error(
    make_plan: MakePlan, script: Script, tmp_path: Path
) -> None:
    engine = LightevalEngine()
    log = run_job(engine, make_plan([{"q": "one", "a": "yes"}]), tmp_path / "out", model=script(ECHO))
    (details,) = (tmp_path / "out" / "details").rglob("*.parquet")
    details.write_bytes(details.read_bytes()[:-20])
    with pytest.raises(EvidenceError, match="details cannot be read"):
        list(engine.read(log.path).trials())
    details.unlink()
    with pytest.raises(EvidenceError, match="details cannot be read"):
        list(engine.read(log.path).trials())


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"aigo_bridge": 3}', '{"aigo_bridge": {"format": 99, "plan": {}}}']
)
def test_invalid_results_files_are_refused(text: str, tmp_path: Path) -> None:
    (tmp_path / "results_x.json").write_text(text)
    with pytest.raises(EvidenceError):
        block_of(tmp_path / "results_x.json")


def test_the_command_line_prints_the_same_tables(
    aigo: Run, make_plan: MakePlan, script: Script, tmp_path: Path
) -> None:
    make_plan([{"q": "good", "a": "yes"}, {"q": "also", "a": "no"}])
    args = ("run", tmp_path / "task" / "t.yaml", "--model", script(ECHO), "--out", "out")
    done = aigo(*args, "--engine", "lighteval", "--json")
    assert done.code == 0, done.err
    other = aigo("run", *args[1:4], "--out", "other", "--json")
    assert (
        [metric["value"] for metric in done.json["metrics"]]
        == [metric["value"] for metric in other.json["metrics"]]
        == [0.5]
    )


OFFLINE = """
    import socket, sys
    whole = socket.socket.connect
    def connect(self, address):
        if self.family != socket.AF_UNIX and address[0] not in ("127.0.0.1", "::1"):
            print("CONNECTED", address); raise OSError("offline")
        return whole(self, address)
    socket.socket.connect = connect
    def lookup(host, *a, **k):
        print("LOOKED UP", host); raise OSError("offline")
    socket.getaddrinfo = lookup
    from aigo_bridge.cli import main
    sys.argv = ["aigo-bridge", "run", *sys.argv[1:], "--engine", "lighteval"]
    main()
"""


def test_a_run_opens_no_network_connection(make_plan: MakePlan, script: Script, tmp_path: Path) -> None:
    """The registry of lighteval would download a file, and its caches would contact the hub."""
    make_plan([{"q": "good", "a": "yes"}])
    environment = {key: value for key, value in os.environ.items() if not key.startswith("HF_")}
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(OFFLINE), str(tmp_path / "task" / "t.yaml"), "--model", script(ECHO), "-o", "out"],
        cwd=tmp_path, env={**environment, "HF_HOME": str(tmp_path / "hf")}, capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "CONNECTED" not in done.stdout
    assert "LOOKED UP" not in done.stdout
    assert "1 of 1 sample scored" in done.stdout


def test_an_interrupted_run_keeps_its_samples_and_is_resumed(
    make_plan: MakePlan, script: Script, tmp_path: Path
) -> None:
    made = make_plan([{"q": "fast", "a": "yes"}, {"q": "slow", "a": "yes"}])
    model = script({"match": {"exact": "slow"}, "reply": {"text": "yes", "delay": 60}}, ECHO)
    engine, out = LightevalEngine(), tmp_path / "out"

    def interrupt(progress: Progress) -> None:
        if progress.done:
            signal.raise_signal(signal.SIGINT)  # in another thread, so that it does not wake the main thread

    log = run_job(engine, made, out, model=model, on_progress=interrupt)
    evidence = engine.read(log.path)
    assert evidence.execution.status == "cancelled"
    assert scores(list(evidence.trials())) == {0: {"is_correct": 1.0}}
    model = script(ECHO)
    finished = run_job(engine, made, out, model=model, earlier="resume")
    assert scores(list(engine.read(finished.path).trials())) == {
        0: {"is_correct": 1.0},
        1: {"is_correct": 1.0},
    }


def test_interrupt_between_two_tasks_keeps_the_first(
    make_plan: MakePlan, script: Script, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = make_plan([{"q": "a", "a": "yes"}])
    job = Job(made, model=script(ECHO))
    remove = Checkpoint.remove

    def interrupted(self: Checkpoint) -> None:
        remove(self)
        signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(Checkpoint, "remove", interrupted)
    engine = LightevalEngine()
    first, second = engine.run([job, replace(job, plan=replace(made, num_trials=2))], RunSettings(tmp_path))
    assert isinstance(first, LogRef)
    assert engine.read(first.path).execution.status == "success"
    assert isinstance(second, EngineError)
    assert second.code == Code.NEVER_BEGUN
