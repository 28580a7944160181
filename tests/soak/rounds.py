"""Rounds of a soak test: each runs a task with injected faults and compares the result with the expected one."""

from __future__ import annotations

import contextlib
import json
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.soak.serving import BadDays, right_answer

TASK = """
key: t
display_name: T
description: ""
definition:
  dataset: {key: rows}
  solver:
    type: single_turn_solver
    input_builder: {type: chat_completion, input_messages: [{role: user, content: "{{ sample.q }}"}]}
  scorers:
    - {type: string_equals, key: same, ground_truth: "{{ sample.right }}"}
    - type: python
      key: own
      metrics: [{type: mean, field: rest}]
      compute_scores_snippet: |
        def compute_scores(sample, solver_output):
            return {"rest": int(sample["q"][1:]) % 7}
"""
CONNECTIONS = 16
QUICK = "import aigo_bridge.execution.progress as r; r.FIRST_WAIT = 0.05\n"
"""Waits between attempts that a soak has the time for."""
CLOCK = """
import random, time
wall, day = time.time, [0]
def jumping():
    if random.random() < 0.02: day[0] = random.choice([-86_400, 0, 3_600, 86_400])
    return wall() + day[0]
time.time = jumping
"""
MAIN = "from aigo_bridge.cli import main; main()"


class LossError(AssertionError):
    """A sample is lost or has a wrong value."""


@dataclass(frozen=True)
class Ground:
    """Folder and model server of the rounds."""

    folder: Path
    server: BadDays
    samples: int

    def prepare(self) -> None:
        """Write the task, its rows and the model."""
        rows = [{"q": f"q{n}", "right": "even" if n % 3 else "odd"} for n in range(self.samples)]
        (self.folder / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        (self.folder / "task.yaml").write_text(TASK)
        (self.folder / "model.yaml").write_text(
            "key: m\ndisplay_name: M\nconfig:\n"
            f"  url: {self.server.endpoint.url}/chat/completions\n  api_key: none\n  model_key: m\n"
            "  adapter: {key: latticeflow$openai}\n"
        )

    def words(self, engine: str, *more: str) -> list[str]:
        """Return the arguments of a run."""
        words = ["run", str(self.folder / "task.yaml"), "--model", str(self.folder / "model.yaml"), "--json"]
        limits = ["--max-connections", str(CONNECTIONS), "--max-samples", str(CONNECTIONS)]
        return [*words, *limits, "--engine", engine, "--out", str(self.folder / "out"), *more]

    def begin(self) -> None:
        """Begin a new round."""
        shutil.rmtree(self.folder / "out", ignore_errors=True)
        self.server.forget()

    def check(self) -> None:
        """Check that every sample is in the evidence once, with the expected scores.

        Raises:
            LossError: A sample is lost or wrong.
        """
        found = json.loads((self.folder / "out" / "t.tasklog.json").read_bytes())
        if found["status"] != "success":
            raise LossError(f"status {found['status']}: {found['errors']}")
        samples = {sample["sample_id"]: sample for sample in found["evidence"]["samples"]}
        if sorted(samples) != list(range(self.samples)) or len(found["evidence"]["samples"]) != self.samples:
            raise LossError(f"{len(found['evidence']['samples'])} samples, {len(samples)} different ones")
        for number, sample in samples.items():
            (trial,) = sample["trials"]
            scores = {score["scorer_key"]: score["values"] for score in trial["scores"]}
            right = right_answer(f"q{number}") == ("even" if number % 3 else "odd")
            if scores["same"].get("is_correct") != right or scores["own"].get("rest") != number % 7:
                raise LossError(f"sample {number}: {scores}")
            (io,) = trial["solver"]["output"]["direct_ios"]
            said = json.loads(io["direct_output"]["body"])["choices"][0]["message"]["content"]
            if said != right_answer(f"q{number}"):
                raise LossError(f"sample {number}: the raw body says {said!r}")
        hidden = [path.name for path in (self.folder / "out").iterdir() if path.name.startswith(".")]
        if hidden:
            raise LossError(f"left behind: {hidden}")


def here(ground: Ground, engine: str, chance: random.Random) -> None:
    """Run in this process while snippet workers are killed from time to time, and retry the failed samples."""
    from typer.testing import CliRunner

    from aigo_bridge.cli import app

    ground.begin()
    with killed_workers(chance):
        done = CliRunner().invoke(app, ground.words(engine))
    for _ in range(5):
        if done.exit_code == 0:
            break
        done = CliRunner().invoke(app, ground.words(engine, "--resume"))
    if done.exit_code != 0:
        raise LossError(f"exit code {done.exit_code}: {done.output[-2000:]}")
    ground.check()


def killed(ground: Ground, engine: str, chance: random.Random) -> None:
    """Run, kill and resume twice. Only calls in progress at a kill may be repeated."""
    ground.begin()
    for number in range(2):
        wanted = (number + 1) * ground.samples // 3 + chance.randrange(ground.samples // 6)
        process = _started(ground.words(engine, *(["--resume"] if number else [])), QUICK)
        while process.poll() is None and sum(ground.server.answered.values()) < wanted:
            time.sleep(0.01)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
    _finish(ground, engine)
    again = sum(count - 1 for count in ground.server.answered.values())
    if again > 2 * CONNECTIONS:
        raise LossError(f"{again} answers were asked for again")


def jumping(ground: Ground, engine: str, chance: random.Random) -> None:
    """Run while the clock is set back and forth."""
    ground.begin()
    process = _started(ground.words(engine), QUICK + CLOCK)
    out, _ = process.communicate(timeout=600)
    if "Traceback" in out:
        raise LossError(out[-2000:])
    _finish(ground, engine)


def full(ground: Ground, engine: str, chance: random.Random) -> None:
    """Run with a file size limit, as on a full disk. The run reports the error and is resumed without the limit."""
    ground.begin()
    most = chance.choice([20_000, 60_000])
    limit = f"import resource; resource.setrlimit(resource.RLIMIT_FSIZE, ({most}, {most}))\n"
    process = _started(ground.words(engine), QUICK + limit)
    process.communicate(timeout=600)
    if process.returncode == 0:
        raise LossError("a run that could not write its files says that all is well")
    _finish(ground, engine)


ROUNDS: tuple[Callable[[Ground, str, random.Random], None], ...] = (here, killed, here, jumping, here, full)
"""One after the other, again and again."""


def _started(words: list[str], before: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", before + MAIN, *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )


def _finish(ground: Ground, engine: str) -> None:
    for _ in range(5):
        process = _started(ground.words(engine, "--resume"), QUICK)
        out, _ = process.communicate(timeout=600)
        if process.returncode == 0:
            break
    else:
        raise LossError(f"exit code {process.returncode}: {out[-2000:]}")
    ground.check()


@contextmanager
def killed_workers(chance: random.Random) -> Iterator[None]:
    """Kill a snippet worker of this process from time to time."""
    ended = threading.Event()

    def kill() -> None:
        while not ended.wait(chance.uniform(0.3, 1.5)):
            workers = [number for number, command in children() if "snippets" in command]
            if workers:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(chance.choice(workers), signal.SIGKILL)

    thread = threading.Thread(target=kill)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


# Resource usage


def children() -> list[tuple[int, str]]:
    """Return the running child processes with their commands."""
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        with contextlib.suppress(OSError, IndexError):
            state, parent = (entry / "stat").read_text().rpartition(")")[2].split()[:2]
            if int(parent) == os.getpid() and state != "Z":
                found.append((int(entry.name), (entry / "cmdline").read_text().replace("\0", " ")))
    return found


@dataclass(frozen=True)
class Held:
    """Resource usage of this process at one moment."""

    mebibytes: float
    """Resident memory."""
    descriptors: int
    threads: int
    processes: int
    """Children."""
    temporary: int
    """Our files and folders among the temporary ones."""

    @staticmethod
    def now(place: Path) -> Held:
        """Return the current usage. `place` is the folder for temporary files."""
        import gc

        gc.collect()
        pages = int(Path("/proc/self/statm").read_text().split()[1])
        return Held(
            pages * resource.getpagesize() / 2**20,
            len(list(Path("/proc/self/fd").iterdir())),
            threading.active_count(),
            len(children()),
            sum(path.name.startswith("aigo-") for path in place.iterdir()),
        )

    def as_dict(self) -> dict[str, Any]:
        """Return the values for the report."""
        return {**vars(self), "mebibytes": round(self.mebibytes, 1)}
