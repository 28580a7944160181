"""The metric `code_exec` in a sandbox that Inspect manages."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Collection
from pathlib import Path

import inspect_ai
import pytest
from inspect_ai import Task
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.log import EvalSample
from inspect_ai.model import get_model
from inspect_ai.scorer import Score, Scorer, Target, accuracy, scorer
from inspect_ai.solver import Generate, Solver, TaskState, solver
from inspect_ai.util import ComposeConfig, SandboxEnvironment, SandboxEnvironmentSpec, sandboxenv

import aigo_inspect.sandbox.environment  # noqa: F401  # registers it
from aigo_bridge.codes import Code
from aigo_bridge.errors import SampleError
from aigo_bridge.evaluation.task import plan
from aigo_bridge.plan.plan import PlanOrigin
from aigo_bridge.scoring.code_exec import check_tests, code_exec
from aigo_inspect.sandbox.environment import JUDGE, LocalSandbox, SandboxCodeRunner, sandbox_of

TESTS = ["assert double(2) == 4", "assert double(0) == 0\nassert double(-1) == -2"]

CODES = {
    "right": ("def double(x):\n    return 2 * x", 1.0, None),
    "unicode": ("def double(x):\n    'Grüße'\n    print('noise 😀')\n    return 2 * x", 1.0, None),
    "wrong": ("def double(x):\n    return x", 0.0, "AssertionError"),
    "half": ("def double(x):\n    return abs(x) * 2", 0.0, "AssertionError"),
    "syntax": ("def double(x:", 0.0, "SyntaxError"),
    "empty": ("", 0.0, "NameError"),
    "quits": ("import os\nos._exit(0)", 0.0, "ended before all tests had run"),
    "leaves": ("raise SystemExit(0)", 0.0, "ended before all tests had run"),
    "network": ("import socket\nsocket.create_connection(('192.0.2.1', 80), 1)", 0.0, "PermissionError"),
    "flood": ("while True: print('x' * 100000)", 0.0, "wrote more than it may"),
    "memory": ("x = []\nwhile True: x.append(bytearray(1 << 26))", 0.0, ""),
    "crash": ("import ctypes\nctypes.string_at(0)", 0.0, "exit code 139"),
    "reads": ("double = lambda x: input()", 0.0, "EOFError"),
}


@scorer(metrics=[accuracy()])
def executed() -> Scorer:
    async def score(state: TaskState, target: Target) -> Score:
        outcome = await code_exec(state.metadata["code"], TESTS, SandboxCodeRunner())
        return Score(value=outcome.values["code_exec"], metadata=dict(outcome.metadata))

    return score


@solver
def no_question() -> Solver:
    async def solve(state: TaskState, generate: Generate) -> TaskState:
        return state

    return solve


def samples_of(tmp_path: Path, sandbox: str | None, names: Collection[str] = CODES) -> dict[str, EvalSample]:
    rows = [Sample(id=name, input="?", metadata={"code": CODES[name][0]}) for name in names]
    task = Task(
        dataset=MemoryDataset(rows),
        solver=no_question(),
        scorer=executed(),
        sandbox=sandbox,
        fail_on_error=False,
    )
    (log,) = inspect_ai.eval(task, model=get_model("mockllm/model"), log_dir=str(tmp_path), display="none")
    return {str(sample.id): sample for sample in log.samples or []}


def test_every_kind_of_code_is_scored(tmp_path: Path) -> None:
    found = samples_of(tmp_path, "aigo_local")
    for name, (_, value, failure) in CODES.items():
        sample = found[name]
        assert sample.error is None, (name, sample.error)
        assert sample.scores is not None
        score = sample.scores["executed"]
        assert score.value == value, (name, score)
        said = (score.metadata or {}).get("failure")
        assert said is None if failure is None else failure in str(said), (name, said)


def test_a_single_string_is_one_test() -> None:
    assert check_tests("assert True") == ["assert True"]


def test_without_a_sandbox_the_sample_is_not_scored(tmp_path: Path) -> None:
    found = samples_of(tmp_path, None)
    assert all(sample.error is not None and "sandbox" in sample.error.message for sample in found.values())
    with pytest.raises(SampleError, match="the sandbox failed: ") as caught:
        asyncio.run(code_exec("", TESTS, SandboxCodeRunner()))
    assert caught.value.code == Code.FAILED_SANDBOX


@pytest.mark.parametrize("tests", [None, [], 1, [1], {}])
def test_invalid_tests_fail_the_sample(tests: object) -> None:
    with pytest.raises(SampleError, match="expected a list of texts"):
        check_tests(tests)


AGENT = {
    "type": "agent_solver",
    "input_builder": {"type": "chat_completion", "input_messages": [{"role": "user", "content": "x"}]},
}
CODE = {"type": "code_exec", "tests": "tests"}


@pytest.mark.parametrize(
    ("solver", "scorers", "num_containers"),
    [(AGENT, [CODE], 2), (AGENT, [], None), (AGENT["input_builder"], [CODE], None)],
)
def test_an_agent_and_its_judge_run_in_separate_containers(
    solver: dict[str, object], scorers: list[object], num_containers: int | None, tmp_path: Path
) -> None:
    """In a shared docker container, an agent could change the Python that judges it."""
    if solver is not AGENT:
        solver = {"type": "single_turn_solver", "input_builder": solver}
    definition = {"dataset": {"key": "rows"}, "solver": solver, "scorers": scorers}
    document = {"key": "t", "display_name": "T", "description": "", "definition": definition}
    (tmp_path / "task.yaml").write_text(json.dumps(document))
    (tmp_path / "rows.jsonl").write_text('{"tests": ["assert True"]}\n')
    task = plan(PlanOrigin(str(tmp_path / "task.yaml")))

    assert sandbox_of("aigo_local", task) == "aigo_local"
    chosen = sandbox_of("docker", task)
    if num_containers is None:
        assert chosen == "docker"
        return
    assert isinstance(chosen, SandboxEnvironmentSpec)
    assert isinstance(chosen.config, ComposeConfig)
    services = chosen.config.services
    assert list(services) == ["default", JUDGE]
    assert all(service.network_mode == "none" for service in services.values())


def test_code_runs_in_the_sandbox_of_the_judge(tmp_path: Path) -> None:
    """The sample has two sandboxes, and that of the agent is broken."""

    @sandboxenv(name="two_boxes")
    class TwoBoxes(LocalSandbox):
        @classmethod
        async def sample_init(
            cls, task_name: str, config: object, metadata: dict[str, str]
        ) -> dict[str, SandboxEnvironment]:
            broken = cls()
            broken.remove()
            return {"default": broken, JUDGE: cls()}

    found = samples_of(tmp_path, "two_boxes", ["right"])
    assert found["right"].scores is not None
    assert found["right"].scores["executed"].value == 1.0
