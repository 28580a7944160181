"""The local sandbox as an Inspect sandbox environment named `aigo_local`.

Each command runs in a new jail. Files in `/work` are kept between the commands of a sample.
"""

from __future__ import annotations

import math
from typing import Literal, cast, overload

from inspect_ai.util import (
    ComposeConfig,
    ComposeService,
    ExecResult,
    OutputLimitExceededError,
    SandboxEnvironment,
    SandboxEnvironmentConfigType,
    SandboxEnvironmentSpec,
    sandbox,
    sandboxenv,
)

from aigo_bridge.errors import SampleError, UnsupportedPlanError
from aigo_bridge.plan.plan import TaskPlan
from aigo_bridge.sandbox.jailing import JailLimits, run_jailed
from aigo_bridge.sandbox.judging import JudgingProgram
from aigo_bridge.sandbox.workspace import Workspace
from aigo_bridge.scoring.scorer import TIME_LIMIT, CodeResult

NAME = "aigo_local"


@sandboxenv(name=NAME)
class LocalSandbox(SandboxEnvironment):
    """Sandbox of Linux namespaces with a read-only root, private `/tmp` and `/work`, resource limits and
    without a network.
    """

    def __init__(self) -> None:
        self._workspace = Workspace()

    @classmethod
    async def sample_init(
        cls, task_name: str, config: SandboxEnvironmentConfigType | None, metadata: dict[str, str]
    ) -> dict[str, SandboxEnvironment]:
        """Create one sandbox for a sample."""
        return {"default": cls()}

    @classmethod
    async def sample_cleanup(
        cls,
        task_name: str,
        config: SandboxEnvironmentConfigType | None,
        environments: dict[str, SandboxEnvironment],
        interrupted: bool,
    ) -> None:
        """Remove the files of a sample."""
        for environment in environments.values():
            environment.as_type(cls).remove()

    async def exec(
        self,
        cmd: list[str],
        input: str | bytes | None = None,  # noqa: A002  # Inspect's parameter name
        cwd: str | None = None,
        env: dict[str, str] | None = None,
        user: str | None = None,
        timeout: int | None = None,
        timeout_retry: bool = True,
        concurrency: bool = True,
    ) -> ExecResult[str]:
        """Run a command in `/work` for at most `timeout` seconds [default: 30].

        Later commands see the files that it writes, unless a limit ended it.

        Raises:
            TimeoutError: the command took longer.
            OutputLimitExceededError: the command wrote more than a megabyte.
            PermissionError: another user was requested. The sandbox has only one user.
            JailRefusedError: this machine cannot run the sandbox.
        """
        if user is not None:
            raise PermissionError(f"found the user {user!r}, expected none: the sandbox has only one user")
        limits = JailLimits() if timeout is None else JailLimits(seconds=timeout)
        result = await self._workspace.run(
            cmd,
            stdin=input.encode() if isinstance(input, str) else input or b"",
            cwd=cwd or ".",
            environment=env,
            limits=limits,
        )
        stdout, stderr = (text.decode(errors="replace") for text in (result.stdout, result.stderr))
        if result.ended == "time":
            raise TimeoutError(f"took longer than {limits.seconds:g} s")
        if result.ended == "output":
            raise OutputLimitExceededError(f"{limits.output_bytes:,} bytes", stdout or stderr)
        if result.ended == "memory":
            return ExecResult(False, 137, stdout, f"{stderr}\nused more than {limits.memory_bytes:,} bytes")
        code = result.code if result.code is not None else 1
        return ExecResult(code == 0, code if code >= 0 else 128 - code, stdout, stderr)

    async def judge(self, program: JudgingProgram, seconds: float) -> CodeResult:
        """Run code and its tests in a new jail with the sample's own files, without files of an agent.

        Raises:
            JailRefusedError: this machine cannot run the sandbox.
        """
        result = await run_jailed(
            program.command,
            stdin=program.stdin.encode(),
            folder=self._workspace.folder,
            limits=JailLimits(seconds=seconds),
        )
        stdout, stderr = (text.decode(errors="replace") for text in (result.stdout, result.stderr))
        ended = cast("Literal['exit', 'time', 'memory', 'output']", result.ended)
        code = result.code if result.code is None or result.code >= 0 else 128 - result.code
        return CodeResult(ended, code, stdout, stderr)

    def remove(self) -> None:
        """Remove the sandbox files."""
        self._workspace.remove()

    async def write_file(self, file: str, contents: str | bytes) -> None:
        """Write a file below `/work`, where commands find it."""
        await self._workspace.write(file, contents.encode() if isinstance(contents, str) else contents)

    @overload
    async def read_file(self, file: str, text: Literal[True] = True) -> str: ...

    @overload
    async def read_file(self, file: str, text: Literal[False]) -> bytes: ...

    async def read_file(self, file: str, text: bool = True) -> str | bytes:
        """Return the content of a file below `/work`, including changes by earlier commands."""
        content = await self._workspace.read(file)
        return content.decode() if text else content


JUDGE = "judge"
"""Name of the separate container that tests the answer of an agent with its own container."""


def sandbox_of(name: str | None, plan: TaskPlan) -> SandboxEnvironmentSpec | str | None:
    """Return the sandbox specification for the samples of a plan.

    With docker, an agent's answer is tested in a second container, because the agent may have changed
    everything in the first one. The local sandbox needs only one environment, since its programs are isolated
    from each other.
    """
    is_judged = any(scorer.runs_answers for scorer in plan.benchmark.scorers)
    if name != "docker" or not (plan.runs_tools and is_judged):
        return name
    # Same settings as Inspect's default container.
    service = ComposeService(
        image="aisiuk/inspect-tool-support",
        command="tail -f /dev/null",
        init=True,
        network_mode="none",
        stop_grace_period="1s",
    )
    return SandboxEnvironmentSpec(name, ComposeConfig(services={"default": service, JUDGE: service}))


def _judging_box() -> SandboxEnvironment:
    try:
        return sandbox(JUDGE)
    except ValueError:  # there is only one container
        return sandbox()


class SandboxCodeRunner:
    """Implementation of the core's `CodeRunner` in the sandbox of the running task, docker or local."""

    async def run(self, program: JudgingProgram, *, time_limit: float = TIME_LIMIT) -> CodeResult:
        """Run the program with the sandbox's `python3`.

        Raises:
            SampleError: the sandbox is missing or failed.
        """
        try:
            box = _judging_box()
            try:
                local = box.as_type(LocalSandbox)
            except TypeError:
                return await _run_elsewhere(box, program, time_limit)
            return await local.judge(program, time_limit)
        except TimeoutError:
            return CodeResult("time", None, "", "")
        except OutputLimitExceededError:
            return CodeResult("output", None, "", "")
        except (OSError, LookupError, RuntimeError, UnsupportedPlanError) as error:
            raise SampleError(f"the sandbox failed: {error}", stage="score", kind="SandboxError") from error


async def _run_elsewhere(box: SandboxEnvironment, program: JudgingProgram, time_limit: float) -> CodeResult:
    """Run the program in a sandbox of Inspect."""
    result = await box.exec(
        list(program.command), input=program.stdin, timeout=math.ceil(time_limit), timeout_retry=False
    )
    if result.returncode in (126, 127) and "python3" in result.stderr:
        raise SampleError(
            f"python3 is missing from the sandbox: {result.stderr.strip()[:200]}",
            stage="score",
            kind="SandboxError",
        )
    return CodeResult("exit", result.returncode, result.stdout, result.stderr)
