"""Import of one large Inspect log, compared with the floor and with Inspect's own reader.

    python benchmarks/import_inspect.py [--share 1.0] [--rounds 2] [--logs FOLDER]

The floor is unzip and orjson of all samples: no importer can do less. Each measurement is a command of its
own with all its processes; the rounds alternate, and the best one counts. Start-up is the same command on a
log of four short samples. It is subtracted from the CPU time for the comparison with the floor, and included
in the other figures. `--logs` keeps the logs in a folder for the next time.
"""

import argparse
import ctypes
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ratios import record

DISTINCT = 10
"""Number of samples that Inspect runs; a log repeats them under other ids."""


@dataclass(frozen=True)
class Shape:
    """Samples of a log."""

    samples: int
    calls: int = 0
    """Model calls of the main agent in each sample; 0: a question and its answer, without an agent."""
    helpers: int = 0
    """Calls of a second agent in each sample, with two model calls each."""
    words: int = 450
    """Length of a tool's answer."""


START_UP = "start-up"
SHAPES = {
    "150 agents": Shape(150, 40, 5),
    "4 long agents": Shape(4, 250),
    "2,000 samples": Shape(2_000, 4, words=100),
    "20,000 samples": Shape(20_000),
}


def run_samples(shape: Shape, samples: int, folder: str) -> Path:
    """Run agents with tools, helpers and a scripted model, and return the log."""
    from inspect_ai import Task
    from inspect_ai import eval as run_eval
    from inspect_ai.agent import Agent, AgentState, agent, as_tool, react
    from inspect_ai.dataset import Sample
    from inspect_ai.log import transcript
    from inspect_ai.model import ChatMessage, ModelOutput, ModelUsage, get_model
    from inspect_ai.scorer import includes
    from inspect_ai.solver import generate
    from inspect_ai.tool import ToolCall, tool
    from inspect_ai.util import sandbox, store

    random_words = random.Random(7)

    def text(words: int) -> str:
        nouns = ("alpha", "delta", "file", "grep", "index", "list", "state", "table", "value")
        return " ".join(f"{random_words.choice(nouns)}{random_words.randrange(10**6)}" for _ in range(words))

    @tool
    def bash():  # type: ignore[no-untyped-def]  # as tools are written
        async def execute(cmd: str) -> str:
            """Run a command.

            Args:
                cmd: the command
            """
            await sandbox().write_file("out.txt", text(120))
            await sandbox().exec(["true", cmd])
            transcript().info({"cmd": cmd})
            store().set("last", cmd)
            return text(shape.words)

        return execute

    @agent
    def helper() -> Agent:
        async def execute(state: AgentState) -> AgentState:
            """Look something up."""
            for _ in range(2):
                state.output = await get_model().generate(state.messages)
                state.messages.append(state.output.message)
            return state

        return execute

    def answer(messages: list[ChatMessage], tools: list[Any], choice: object, config: object) -> ModelOutput:
        turn = sum(message.role == "assistant" for message in messages)
        output = ModelOutput.from_content("mockllm/model", text(90 if shape.calls else 20))
        output.usage = ModelUsage(input_tokens=1000 + turn, output_tokens=90, total_tokens=1090 + turn)
        if not any(tool.name == "submit" for tool in tools):
            return output
        if turn >= shape.calls - 1:
            call = ToolCall(id=f"c{turn}", function="submit", arguments={"answer": "42"})
        elif shape.helpers and turn % (shape.calls // shape.helpers) == 1:
            call = ToolCall(id=f"c{turn}", function="helper", arguments={"input": text(16)})
        else:
            call = ToolCall(id=f"c{turn}", function="bash", arguments={"cmd": text(12)})
        output.choices[0].message.tool_calls = [call]
        output.choices[0].stop_reason = "tool_calls"
        return output

    task = Task(
        dataset=[Sample(input=text(20), target="42", id=number + 1) for number in range(samples)],
        solver=react(tools=[bash(), as_tool(helper(), description="look up")]) if shape.calls else generate(),
        scorer=includes(),
        sandbox="local" if shape.calls else None,
    )
    model = get_model("mockllm/model", custom_outputs=answer, memoize=False)
    options: dict[str, Any] = {"display": "none", "log_realtime": False, "log_model_api": False}
    (log,) = run_eval(task, model=model, log_dir=folder, **options)
    assert log.status == "success", log.error
    return Path(log.location.removeprefix("file://"))


def make_logs(folder: Path, share: float) -> None:
    for name, shape in {START_UP: Shape(4), **SHAPES}.items():
        samples = shape.samples if name == START_UP else max(1, round(shape.samples * share))
        with tempfile.TemporaryDirectory() as runs:
            log = run_samples(shape, min(DISTINCT, samples), runs)
            path = log_of(folder, name)
            path.parent.mkdir(parents=True)
            repeat(log, path, samples)


def log_of(folder: Path, name: str) -> Path:
    """Return the path of a log, which is alone in its folder: an import looks for later attempts."""
    return folder / name / "log.eval"


def repeat(log: Path, path: Path, samples: int) -> None:
    """Write a log with so many samples."""
    import zipfile

    import orjson
    import zipfile_zstd  # noqa: F401  # teaches zipfile zstd

    with (
        zipfile.ZipFile(log) as source,
        zipfile.ZipFile(path, "w", source.infolist()[0].compress_type) as out,
    ):
        header, (reduction,) = (
            orjson.loads(source.read(f"{name}.json")) for name in ("header", "reductions")
        )
        # Texts that are repeated so often would be refused as a zip bomb.
        summaries = [one | {"input": "", "scores": {}} for one in orjson.loads(source.read("summaries.json"))]
        members = [orjson.loads(source.read(f"samples/{one['id']}_epoch_1.json")) for one in summaries]

        def copies(of: list[dict[str, Any]], key: str = "id") -> Iterator[dict[str, Any]]:
            for number in range(samples):
                one = of[number % len(of)]
                yield one | {key: number + 1} | ({"uuid": f"s{number}"} if "uuid" in one else {})

        header["eval"]["dataset"] |= {"samples": samples, "sample_ids": list(range(1, samples + 1))}
        header["results"] |= {"total_samples": samples, "completed_samples": samples}
        out.writestr("_journal/start.json", source.read("_journal/start.json"))
        for one in copies(members):
            out.writestr(f"samples/{one['id']}_epoch_1.json", orjson.dumps(one))
        reduction["samples"] = list(copies(reduction["samples"], "sample_id"))
        out.writestr("summaries.json", orjson.dumps(list(copies(summaries))))
        out.writestr("reductions.json", orjson.dumps([reduction]))
        out.writestr("header.json", orjson.dumps(header))


def floor(path: str) -> None:
    """Unzip and parse all samples."""
    import zipfile

    import orjson
    import zipfile_zstd  # noqa: F401  # teaches zipfile zstd

    with zipfile.ZipFile(path) as archive:
        for name in archive.namelist():
            if name.startswith("samples/"):
                orjson.loads(archive.read(name))


OURS, FLOOR, PEER = "import", "floor", "read_eval_log"


def command(name: str, log: Path, out: str) -> list[str]:
    if name == FLOOR:
        return [sys.executable, __file__, "--floor", str(log)]
    if name == PEER:
        code = f"from inspect_ai.log import read_eval_log; read_eval_log({str(log)!r})"
        return [sys.executable, "-c", code]
    return [str(Path(sys.executable).parent / "aigo-bridge"), "import", str(log), "--out", out]


@dataclass(frozen=True)
class Measure:
    """CPU seconds of all processes, seconds of the clock, and peak memory of the largest process in MB."""

    cpu: float
    wall: float
    memory: float

    def best(self, other: "Measure") -> "Measure":
        return Measure(*map(min, zip(vars(self).values(), vars(other).values(), strict=True)))


def measured(name: str, log: Path, environment: dict[str, str]) -> Measure:
    with tempfile.TemporaryDirectory() as out:
        began = time.perf_counter()
        process = subprocess.Popen(command(name, log, out), stdout=subprocess.DEVNULL, env=environment)
        _, status, usage = os.wait4(process.pid, 0)
        wall = time.perf_counter() - began
        process.returncode = os.waitstatus_to_exitcode(status)
        assert process.returncode == 0, (name, log)
        usages = [usage]
        with suppress(ChildProcessError):
            while True:  # until the servers that forked its pool have ended
                usages.append(os.wait4(-1, 0)[2])
    cpu = sum(each.ru_utime + each.ru_stime for each in usages)
    return Measure(cpu, wall, max(each.ru_maxrss for each in usages) / 1024)


def measured_in_turns(log: Path, environment: dict[str, str], rounds: int) -> dict[str, Measure]:
    best: dict[str, Measure] = {}
    for turn in range(rounds):
        for name in (OURS, FLOOR, PEER) if not turn else (OURS, FLOOR):
            measure = measured(name, log, environment)
            best[name] = best.get(name, measure).best(measure)
    return best


def report(name: str, best: dict[str, Measure], start_up: dict[str, Measure]) -> None:
    """Print the figures of a log, and record the ratios."""
    beyond = {one: max(measure.cpu - start_up[one].cpu, 0.001) for one, measure in best.items()}
    for one, whole in best.items():
        print(
            f"  {one:14} {whole.cpu:6.2f} s CPU, {beyond[one] / beyond[FLOOR]:5.2f} x the floor without"
            f" {start_up[one].cpu:.2f} s of start-up; {whole.wall:6.2f} s wall, {whole.memory:4.0f} MB",
            flush=True,
        )
    ours, peer = best[OURS], best[PEER]
    record(f"{name}, CPU without start-up", beyond[OURS] / beyond[FLOOR])
    record(f"{name}, CPU | read_eval_log", ours.cpu / peer.cpu)
    record(f"{name}, wall | read_eval_log", ours.wall / peer.wall)
    record(f"{name}, memory | read_eval_log", ours.memory / peer.memory)


def adopt_orphans() -> None:
    """Make this process the parent of processes that outlive theirs, so that their CPU time counts."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)  # PR_SET_CHILD_SUBREAPER


def compare(folder: Path, share: float, rounds: int) -> None:
    if not log_of(folder, START_UP).exists():
        # In another process, because a process starts with the peak memory of its parent.
        make = [sys.executable, __file__, "--make", "--logs", str(folder), "--share", str(share)]
        subprocess.run(make, check=True)
    adopt_orphans()
    # An installed package has its bytecode, a working tree may not.
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
    start_up = measured_in_turns(log_of(folder, START_UP), environment, rounds)
    for name in SHAPES:
        log = log_of(folder, name)
        print(f"{name}: {log.stat().st_size / 1e6:.1f} MB")
        report(name, measured_in_turns(log, environment, rounds), start_up)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--share", type=float, default=1.0, help="share of the samples")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--logs", type=Path)
    parser.add_argument("--floor", help=argparse.SUPPRESS)
    parser.add_argument("--make", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.floor:
        floor(options.floor)
    elif options.make:
        make_logs(options.logs, options.share)
    else:
        with tempfile.TemporaryDirectory() as temporary:
            compare(options.logs or Path(temporary), options.share, options.rounds)


if __name__ == "__main__":
    main()
