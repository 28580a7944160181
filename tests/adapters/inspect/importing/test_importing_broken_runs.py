"""Logs of killed runs and of retried samples."""

import os
import signal
import subprocess
import time
from pathlib import Path

from inspect_ai import Task
from inspect_ai import eval as run_eval
from inspect_ai.dataset import Sample
from inspect_ai.log import read_eval_log
from inspect_ai.model import get_model
from inspect_ai.scorer import includes
from inspect_ai.solver import Generate, Solver, TaskState, solver
from tests.support.forked import start
from tests.support.inspect_logs import scripted as scripted_logs

from aigo_bridge.dtypes import SolverTrace
from aigo_inspect.importing.api import import_log
from aigo_inspect.importing.importing import import_file

ENDLESS = """
import asyncio, sys
from inspect_ai import Task, eval
from inspect_ai.dataset import Sample
from inspect_ai.model import ModelOutput, ModelUsage, get_model
from inspect_ai.scorer import includes
from inspect_ai.solver import generate

async def answer(messages, tools, choice, config):
    if "6" in messages[-1].text:
        print("stuck", flush=True)
        await asyncio.sleep(600)
    output = ModelOutput.from_content("mockllm/model", "yes")
    output.usage = ModelUsage(input_tokens=1, output_tokens=1, total_tokens=2)
    return output

task = Task(name="endless", dataset=[Sample(input=f"question {i}", target="yes") for i in range(8)], solver=generate(), scorer=includes())
eval(task, model=get_model("mockllm/model", custom_outputs=answer), log_dir=sys.argv[1], display="none", log_buffer=2, max_samples=1, log_realtime=False)
"""


def test_flushed_samples_of_a_killed_run_are_imported(tmp_path: Path) -> None:
    environment = {**os.environ, "XDG_DATA_HOME": str(tmp_path / "data")}
    with start(["-c", ENDLESS, tmp_path / "logs"], stdout=subprocess.PIPE, env=environment) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "stuck\n"
        time.sleep(0.3)
        process.send_signal(signal.SIGKILL)
        process.wait()
    (path,) = (tmp_path / "logs").glob("*.eval")
    log = import_log(path)
    assert log.status == "failure"
    assert [error.error_type for error in log.errors] == ["EvaluationUnfinished"]
    assert log.evidence is not None
    assert log.evidence.metrics is None
    samples = log.evidence.samples or []
    assert len(samples) in (4, 6)
    assert all(sample.trials[0].scores for sample in samples)
    assert log.execution.model_usage is not None
    assert log.execution.model_usage.num_prompt_tokens == len(samples)
    result = import_file(path, tmp_path / "killed")
    # Nothing in the file is damaged: the run did not get further.
    assert (result.exit_code, result.status) == (0, "started")


@solver
def fails_once() -> Solver:
    tries = 0

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        nonlocal tries
        tries += 1
        state = await generate(state)
        if tries == 1:
            raise ConnectionError("the first attempt fails")
        return state

    return solve


def test_earlier_attempts_are_kept_next_to_the_last_one(tmp_path: Path) -> None:
    task = Task(name="retry", dataset=[Sample(input="q", target="q")], solver=fails_once(), scorer=includes())
    model = get_model("mockllm/model", custom_outputs=scripted_logs.counting_script, memoize=False)
    (native,) = run_eval(
        task, model=model, retry_on_error=1, log_dir=str(tmp_path), display="none", log_realtime=False
    )
    assert native.status == "success"
    log = import_log(native.location)
    assert log.evidence is not None
    assert log.evidence.samples is not None
    (trial,) = log.evidence.samples[0].trials
    assert trial.errors == []
    assert trial.solver is not None
    assert isinstance(trial.solver.output, SolverTrace)
    metadata = trial.solver.output.trace.metadata
    assert metadata is not None
    assert metadata.extra is not None
    (retry,) = metadata.extra["inspect"]["error_retries"]
    assert "the first attempt fails" in retry["message"]
    assert "traceback_ansi" not in retry


def test_a_failed_run_is_reported_as_failed(tmp_path: Path) -> None:
    native = scripted_logs.run("errors", tmp_path, fail_on_error=True)
    assert read_eval_log(native.location, header_only=True).status == "error"
    log = import_log(native.location)
    assert log.status == "failure"
    assert log.errors
    assert log.errors[0].error_type == "EvaluationError"
    assert log.evidence is not None
    stages = {
        e.stage.value for s in log.evidence.samples or [] for t in s.trials for e in t.errors if e.stage
    }
    assert stages <= {"solver", "score"}


def test_errors_name_their_stage_and_kind(logs: dict[str, Path]) -> None:
    log = import_log(logs["errors"])
    assert log.evidence is not None
    found = {
        s.sample_id: [(e.error_type, e.stage.value if e.stage else None) for e in s.trials[0].errors]
        for s in log.evidence.samples or []
    }
    assert found == {
        "fine": [],
        "solver fails": [("ValueError", "solver")],
        "scorer fails": [("RuntimeError", "score")],
    }
    assert log.evidence.failures is not None
    assert (log.evidence.failures.num_errors, log.evidence.failures.num_total) == (2, 3)
