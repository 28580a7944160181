"""Speed, memory and scaling of importing Inspect logs, against the floor and against Inspect's own readers.

    python benchmarks/import_inspect.py make FOLDER [--scale 1.0]             write the logs (minutes)
    python benchmarks/import_inspect.py ratios [--scale 0.2]                  small logs, measured and deleted
    python benchmarks/import_inspect.py run FOLDER [--peers] [--scout PYTHON] measure, one new process each

The floor is unzip and orjson of every sample, which every importer needs. The result is the CPU time of the
whole process, because wall time depends on other users of the machine. inspect_scout needs its own
environment; pass its Python."""

import argparse
import json
import os
import random
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Literal

from ratios import record

Measured = Callable[[str, str], None]
"""Function over a log that writes its output into a folder."""

SETS = {"big": (300, 40, 5), "long": (20, 250, 0), "small": (3000, 2, 0)}
"""Name → samples, model calls of the main agent, calls of sub-agents (two model calls each)."""


# Making logs


def make(folder: Path, scale: float, share: float, names: list[str]) -> None:
    from inspect_ai import Task
    from inspect_ai import eval as run_eval
    from inspect_ai.agent import Agent, AgentState, agent, as_tool, react
    from inspect_ai.dataset import Sample
    from inspect_ai.log import transcript
    from inspect_ai.model import ChatMessage, ModelOutput, ModelUsage, get_model
    from inspect_ai.scorer import includes
    from inspect_ai.tool import ToolCall, tool
    from inspect_ai.util import sandbox, store

    words = [
        w.strip()
        for w in [
            "alpha",
            "beta",
            "gamma",
            "delta",
            "run",
            "list",
            "file",
            "grep",
            "error",
            "value",
            "index",
            "table",
            "state",
            "merge",
        ]
    ]
    rng = random.Random(7)

    def text(length: int) -> str:
        return " ".join(f"{rng.choice(words)}{rng.randrange(10**6)}" for _ in range(length // 12))

    @tool
    def bash():  # type: ignore[no-untyped-def]
        async def execute(cmd: str) -> str:
            """Run a command.

            Args:
                cmd: the command
            """
            await sandbox().write_file("out.txt", text(1500))
            await sandbox().exec(["true", cmd])
            transcript().info({"cmd": cmd})
            store().set("last", cmd)
            return text(5400)

        return execute

    @agent
    def helper() -> Agent:
        async def execute(state: AgentState) -> AgentState:
            """Look something up."""
            for _ in range(2):
                output = await get_model().generate(state.messages)
                state.messages.append(output.message)
            state.output = output
            return state

        return execute

    def answers(calls: int, helpers: int) -> Callable[..., ModelOutput]:
        def answer(messages: list[ChatMessage], tools: list, choice: object, config: object) -> ModelOutput:
            turn = sum(message.role == "assistant" for message in messages)
            output = ModelOutput.from_content("mockllm/model", text(1100))
            output.usage = ModelUsage(input_tokens=1000 + turn, output_tokens=90, total_tokens=1090 + turn)
            if not any(t.name == "submit" for t in tools):
                return output
            if turn >= calls - 1:
                call = ToolCall(id=f"c{turn}", function="submit", arguments={"answer": "42"})
            elif helpers and turn % (calls // helpers) == 1:
                call = ToolCall(id=f"c{turn}", function="helper", arguments={"input": text(200)})
            else:
                call = ToolCall(id=f"c{turn}", function="bash", arguments={"cmd": text(150)})
            output.choices[0].message.tool_calls = [call]
            output.choices[0].stop_reason = "tool_calls"
            return output

        return answer

    for name in names:
        samples, calls, helpers = SETS[name]
        calls, helpers = max(2, int(calls * share)), min(helpers, max(1, int(helpers * share)))
        task = Task(
            name=name,
            dataset=[
                Sample(input=text(600), target="42", id=i + 1) for i in range(max(1, int(samples * scale)))
            ],
            solver=react(tools=[bash(), as_tool(helper(), description="look up")]),
            scorer=includes(),
            sandbox="local",
        )
        model = get_model("mockllm/model", custom_outputs=answers(calls, helpers), memoize=False)
        with tempfile.TemporaryDirectory() as logs:
            (log,) = run_eval(
                task, model=model, log_dir=logs, display="none", log_realtime=False, log_model_api=False
            )
            assert log.status == "success", log.error
            shutil.copy(log.location, folder / f"{name}.eval")
        print(name, (folder / f"{name}.eval").stat().st_size)


# Every function runs in its own process and writes into a folder that is deleted after the measurement:
# deleting gigabytes is not part of an import.


def floor(path: str, out: str) -> None:
    import zipfile

    import orjson
    import zipfile_zstd  # noqa: F401  # teaches zipfile zstd

    with zipfile.ZipFile(path) as archive:
        for name in archive.namelist():
            if name.startswith("samples/"):
                orjson.loads(archive.read(name))


def import_as(context: Literal["full", "delta", "none"], jobs: int = 1, logs: int = 1) -> Measured:
    def run(path: str, out: str) -> None:
        from aigo_inspect.importing.importing import import_logs

        copies = [Path(f"{out}-{number}.eval") for number in range(1, logs)]
        for copy in copies:
            shutil.copyfile(path, copy)
        result, *_ = import_logs([path, *copies], out, context=context, jobs=jobs)
        assert result.exit_code == 0, result.reason
        assert result.output is not None
        print(json.dumps({"bytes": result.output.stat().st_size, "samples": result.samples}))

    return run


def read_eval_log(path: str, out: str) -> None:
    from inspect_ai.log import read_eval_log as read

    read(path)


def read_eval_log_samples(path: str, out: str) -> None:
    from inspect_ai.log import read_eval_log_samples as read

    for _ in read(path, all_samples_required=False):
        pass


def scout(path: str, out: str) -> None:
    import asyncio

    from inspect_scout import transcripts_db, transcripts_from

    async def insert(logs: str, folder: str) -> None:
        async with transcripts_db(folder) as db:
            await db.insert(transcripts_from(logs))

    with tempfile.TemporaryDirectory() as logs:
        shutil.copy(path, logs)
        asyncio.run(insert(logs, out))


IMPORTS: dict[str, Measured] = {
    "import full": import_as("full"),
    "import delta": import_as("delta"),
    "import none": import_as("none"),
}
MEASURED: dict[str, Measured] = {"floor": floor, **IMPORTS}
SEVERAL: dict[str, Measured] = {
    f"import {context}, 2 logs, {jobs} processes": import_as(context, jobs, 2)
    for context in ("full", "delta")
    for jobs in (1, 2)
}
PEERS: dict[str, Measured] = {
    "read_eval_log": read_eval_log,
    "read_eval_log_samples": read_eval_log_samples,
}
SCOUT = "inspect_scout"


def as_installed(bytecode: str) -> dict[str, str]:
    """Return the environment of measured processes. An installed package contains bytecode; a working tree
    may not."""
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return {**kept, "PYTHONPYCACHEPREFIX": bytecode}


def measured(
    name: str, path: Path, environment: dict[str, str], python: str = sys.executable
) -> tuple[float, float, float, str]:
    """Return CPU seconds, wall seconds, peak MB (largest process) and output of a new process."""
    with tempfile.TemporaryDirectory() as out:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        start = time.perf_counter()
        done = subprocess.run(
            [python, __file__, "one", name, str(path), out],
            capture_output=True,
            text=True,
            check=False,
            env=environment,
        )
        wall = time.perf_counter() - start
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    if done.returncode:
        return cpu, wall, 0.0, (done.stderr.strip().splitlines() or ["failed"])[-1][:80]
    lines = done.stdout.splitlines()
    return cpu, wall, float(lines[-1]), lines[0] if len(lines) > 1 else ""


def at_once(name: str, path: Path, environment: dict[str, str], processes: int) -> float:
    """Return the wall seconds of independent processes that start together."""
    command = [sys.executable, __file__, "one", name, str(path)]
    with tempfile.TemporaryDirectory() as folder:
        outs = [str(Path(folder, str(number))) for number in range(processes)]
        start = time.perf_counter()
        started = [
            subprocess.Popen([*command, out], stdout=subprocess.DEVNULL, env=environment) for out in outs
        ]
        for process in started:
            process.wait()
        return time.perf_counter() - start


def scaling(context: str, path: Path, environment: dict[str, str], repeat: int) -> None:
    """Return the speed-up of two processes over one, next to the speed-up of two independent processes."""
    alone, shared, both = (
        min(at_once(name, path, environment, processes) for _ in range(repeat))
        for name, processes in (
            (f"import {context}, 2 logs, 1 processes", 1),
            (f"import {context}, 2 logs, 2 processes", 1),
            (f"import {context}", 2),
        )
    )
    print(
        f"  {context}: two logs by two processes {alone / shared:.2f} x as fast;"
        f" by two imports at once {alone / both:.2f} x"
    )


def run(folder: Path, peers: bool, scout_python: str | None, repeat: int, *, scale: bool = True) -> None:
    with tempfile.TemporaryDirectory() as bytecode:
        run_in(as_installed(bytecode), folder, peers, scout_python, repeat, scale=scale)


def run_in(
    environment: dict[str, str],
    folder: Path,
    peers: bool,
    scout_python: str | None,
    repeat: int,
    *,
    scale: bool,
) -> None:
    names = [*MEASURED, *(PEERS if peers else {}), *([SCOUT] if scout_python else [])]
    for path in sorted(folder.glob("*.eval")):
        base = 0.0
        print(f"\n{path.name}: {path.stat().st_size / 1e6:.1f} MB")
        for name in names:
            cpu, wall, peak, note = min(
                measured(
                    name,
                    path,
                    environment,
                    scout_python if name == SCOUT and scout_python else sys.executable,
                )
                for _ in range(repeat if name in MEASURED else 1)
            )
            base = base or cpu
            if name in IMPORTS:
                record(f"{path.stem}, {name}", cpu / base)
            print(
                f"  {name:28} {cpu:7.2f} s CPU {cpu / base:6.2f} x floor {wall:7.2f} s wall"
                f" {peak:6.0f} MB  {note}"
            )
        if scale:
            for context in ("full", "delta"):
                scaling(context, path, environment, repeat)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("verb", choices=["make", "ratios", "run", "one"])
    parser.add_argument("arguments", nargs="*")
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--calls", type=float, default=1.0, help="share of the calls of each sample")
    parser.add_argument("--sets", nargs="*", default=list(SETS))
    parser.add_argument("--peers", action="store_true")
    parser.add_argument("--scout", metavar="PYTHON", help="python of an environment with inspect_scout")
    parser.add_argument("--repeat", type=int, default=2)
    options = parser.parse_args()
    if options.verb == "one":
        name, path, out = options.arguments
        ({**MEASURED, **SEVERAL, **PEERS, SCOUT: scout})[name](path, out)
        own = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        children = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
        print(max(own, children) / 1024)
        return
    if options.verb == "ratios":
        with tempfile.TemporaryDirectory() as temporary:
            make(Path(temporary), options.scale, options.calls, options.sets)
            run(Path(temporary), peers=False, scout_python=None, repeat=options.repeat, scale=False)
        return
    folder = Path(options.arguments[0])
    folder.mkdir(parents=True, exist_ok=True)
    if options.verb == "make":
        make(folder, options.scale, options.calls, options.sets)
    else:
        run(folder, options.peers, options.scout, options.repeat)


if __name__ == "__main__":
    main()
