"""The Python API writes the files of the command line on both engines and never prints or exits."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.golden.outputs.steady import Steady
from tests.support.commands import REPOSITORY, Run

import aigo_bridge
from aigo_bridge.engine.protocol import Progress
from aigo_bridge.errors import EvidenceError, UnsupportedPlanError, UsageError

CAPITALS = "examples/capitals"
ANSWERS = f"scripted/{CAPITALS}/answers.jsonl"
TASK = f"{CAPITALS}/task.yaml"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    shutil.copytree(REPOSITORY / "examples", tmp_path / "examples")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def evidence(path: Path | None) -> str:
    """Return a result log without random values."""
    assert path is not None
    return Steady({}).text("result.tasklog.json", path.read_text(encoding="utf-8"))


def rows() -> list[dict[str, Any]]:
    return [dict(sample.data) for sample in aigo_bridge.plan_task(CAPITALS).samples]


@pytest.mark.parametrize("engine", ["inspect", "lighteval"])
def test_evidence_equals_evidence_of_the_command_line(
    aigo: Run, folder: Path, engine: str, capfd: pytest.CaptureFixture[str]
) -> None:
    """From the file, and from its text with given rows in a thread with a running event loop."""
    done = aigo("run", CAPITALS, "--model", ANSWERS, "--engine", engine, "--out", "typed")
    assert done.code == 0, done.err
    capfd.readouterr()

    async def within() -> list[aigo_bridge.Outcome]:
        plans = {
            "file": aigo_bridge.plan_task(CAPITALS),
            "text": aigo_bridge.plan_task(text=Path(TASK).read_text(), datasets={"capitals": rows()}),
        }
        return [aigo_bridge.run(plan, ANSWERS, engine=engine, out=out) for out, plan in plans.items()]

    of_file, of_text = asyncio.run(within())

    assert capfd.readouterr() == ("", "")
    typed = evidence(folder / "typed" / "capitals.tasklog.json")
    assert evidence(of_file.result) == typed
    assert evidence(of_text.result) == typed
    assert (of_file.num_samples, of_file.num_failed, of_file.num_missing) == (4, 0, 0)
    (report,) = aigo_bridge.import_logs("text", "again")
    assert evidence(report.output) == typed


def test_interrupted_and_earlier_runs_are_used_without_files(folder: Path) -> None:
    text, table = Path(TASK).read_text(), rows()

    def run(**options: Any) -> aigo_bridge.Outcome:
        plan = aigo_bridge.plan_task(text=text, datasets={"capitals": table})
        return aigo_bridge.run(plan, ANSWERS, **options)

    first = run()
    again = run(cache="reuse")
    assert len(list(Path("out").glob("*.eval"))) == 1
    assert again.result == first.result
    table = table[:2]
    assert run().result != first.result


def test_progress_is_reported(folder: Path) -> None:
    told: list[Progress] = []
    aigo_bridge.run(aigo_bridge.plan_task(CAPITALS), ANSWERS, on_progress=told.append)

    assert [(progress.done, progress.total) for progress in told] == [(n, 4) for n in range(5)]


def test_plan_is_translated_to_an_inspect_task(folder: Path) -> None:
    """A run by Inspect's own function is read back as evidence of the plan."""
    import inspect_ai

    plan = aigo_bridge.plan_task(text=Path(TASK).read_text(), datasets={"capitals": rows()})
    task = aigo_bridge.translate(plan)
    first = task.dataset[0]
    asked = "What is the capital of Norway? Answer with its name only."
    assert (first.input, first.target) == (asked, "Oslo")

    inspect_ai.eval(task, model=ANSWERS, log_dir="logs", display="none")
    (report,) = aigo_bridge.import_logs("logs", "evidence")

    ran = aigo_bridge.run(plan, ANSWERS)
    assert report.output is not None
    assert report.exit_code == 0
    assert ran.result is not None
    read_back, written = (aigo_bridge.read_log(path) for path in (report.output, ran.result))
    assert metrics_of(read_back) == metrics_of(written)
    scores = [[sample.trials[0].scores for sample in log] for log in (read_back, written)]
    assert scores[0] == scores[1]


def metrics_of(log: aigo_bridge.LogReader) -> object:
    evidence = log.frame().evidence
    assert evidence is not None
    return evidence.metrics


def test_inspect_does_not_retry_a_log_of_an_in_memory_plan(folder: Path) -> None:
    from aigo_inspect.running.translate import aigo_task

    origin = aigo_bridge.plan_task(text=Path(TASK).read_text(), datasets={"capitals": rows()}).origin
    assert origin is not None

    with pytest.raises(UsageError, match=r"<text> and <rows \w{12}> of the run were set in Python"):
        aigo_task(origin.task, dataset=dict(origin.datasets))


def test_plan_is_translated_to_lighteval_documents(folder: Path) -> None:
    plan = aigo_bridge.plan_task(CAPITALS)

    docs = aigo_bridge.translate(plan, "lighteval")
    assert [doc.choices[doc.gold_index] for doc in docs] == ["Oslo", "Lima", "Canberra", "Tokyo"]
    instructed = (
        Path(TASK)
        .read_text()
        .replace("        - role: user", "        - {role: system, content: Be brief.}\n        - role: user")
    )
    plan = aigo_bridge.plan_task(CAPITALS, text=instructed)
    with pytest.raises(UnsupportedPlanError, match="writes an instruction before the question"):
        aigo_bridge.translate(plan, "lighteval")
    assert len(aigo_bridge.translate(plan, "lighteval", allow_approximate=True)) == 4


def test_result_is_written_unchanged_after_reading(folder: Path) -> None:
    outcome = aigo_bridge.run(aigo_bridge.plan_task(CAPITALS), ANSWERS)
    assert outcome.result is not None
    log = aigo_bridge.read_log(outcome.result)

    aigo_bridge.write_log("copy.tasklog.jsonl.gz", log, finish=log.frame())

    copy = aigo_bridge.read_log("copy.tasklog.jsonl.gz").load()
    assert copy == log.load()
    (report,) = aigo_bridge.validate("copy.tasklog.jsonl.gz")
    assert (report.kind, report.issues) == ("tasklog", ())


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (aigo_bridge.run, UsageError, "the task evaluates a model"),
        (lambda plan: aigo_bridge.run(plan, ANSWERS, engine="none"), UsageError, "unknown engine 'none'"),
        (lambda plan: aigo_bridge.run(plan, ANSWERS, cache="never"), UsageError, "cache: found 'never'"),  # type: ignore[arg-type]
        (lambda plan: aigo_bridge.run(plan, ANSWERS, max_samples=0), UsageError, "max_samples: found 0"),
        (lambda plan: aigo_bridge.run(plan, ANSWERS, fail_on_error=-1), UsageError, "found '-1'"),
        (lambda plan: aigo_bridge.run(plan, "nobody/x"), UsageError, "nobody"),
        (lambda plan: aigo_bridge.gaps(plan, "none"), UsageError, "unknown engine 'none'"),
        (lambda _: aigo_bridge.import_logs("nowhere"), UsageError, "no logs at 'nowhere'"),
        (
            lambda _: aigo_bridge.import_logs(".", options=aigo_bridge.ImportOptions(events="some")),  # type: ignore[arg-type]
            UsageError,
            "events: found 'some'",
        ),
        (lambda _: aigo_bridge.validate("nowhere"), UsageError, "file or folder 'nowhere' does not exist"),
        (lambda _: aigo_bridge.validate(dialect="x"), UsageError, "dialect: found 'x'"),  # type: ignore[arg-type]
        (lambda _: aigo_bridge.read_log("nowhere.json").load(), EvidenceError, "nowhere.json"),
    ],
)
def test_errors_are_classes_of_aigo_bridge(
    folder: Path,
    call: Callable[[aigo_bridge.TaskPlan], object],
    error: type[Exception],
    message: str,
    capfd: pytest.CaptureFixture[str],
) -> None:
    plan = aigo_bridge.plan_task(CAPITALS)

    with pytest.raises(error, match=re.escape(message)) as raised:
        call(plan)

    assert isinstance(raised.value, aigo_bridge.BridgeError)
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("engine", ["inspect", "lighteval"])
def test_run_is_recorded_and_replayed(folder: Path, engine: str) -> None:
    plan = aigo_bridge.plan_task(CAPITALS)
    recorded = aigo_bridge.run(plan, ANSWERS, engine=engine, out="a", record="c")
    with pytest.raises(UsageError, match="'c' already exists"):
        aigo_bridge.run(plan, ANSWERS, engine=engine, out="a", record="c")

    played = aigo_bridge.run(plan, engine=engine, out="b", replay="c")

    assert (played.num_samples, played.num_failed) == (4, 0)
    assert [row.value for row in played.metrics] == [row.value for row in recorded.metrics]
    assert played.models[""] == f"cassette/{recorded.models['']}"
    checked = aigo_bridge.verify(played.result or "", task=CAPITALS, rerun_scorers=True, replay="c")
    verdicts = {level.name: level.verdict for level in checked.levels}
    assert verdicts["scores"] == verdicts["digests"] == "proved"
    assert aigo_bridge.verify(recorded.result or "", replay="c").levels[3].verdict == "proved"


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"record": "a", "replay": "b"}, "record, replay: calls that are answered"),
        ({"replay": "b", "resume": True}, "replay: always runs all samples"),
        ({"replay": "b", "cache": "reuse"}, "replay: always runs all samples"),
    ],
)
def test_invalid_record_and_replay_options_are_refused(
    folder: Path, options: dict[str, Any], problem: str
) -> None:
    with pytest.raises(UsageError, match=problem):
        aigo_bridge.run(aigo_bridge.plan_task(CAPITALS), ANSWERS, **options)
    with pytest.raises(EvidenceError, match="the file does not exist"):
        aigo_bridge.run(aigo_bridge.plan_task(CAPITALS), replay="none")


def test_a_cassette_with_missing_calls_is_reported(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from aigo_trust.recording.tail import TailWriter

    def full(self: TailWriter, text: bytes) -> None:
        if self.num_bytes:
            raise OSError(28, "No space left on device")
        self.num_bytes += os.write(self._file, text)

    monkeypatch.setattr(TailWriter, "put", full)
    with pytest.raises(EvidenceError, match="cannot write the cassette") as caught:
        aigo_bridge.run(aigo_bridge.plan_task(CAPITALS), ANSWERS, out="a", record="c")
    (issue,) = caught.value.issues
    assert issue.hint == f"the evidence is complete: {Path('a/capitals.tasklog.json')}"
