"""Cost of recording a run: its share of the run's CPU time with a model that answers immediately, and memory.

    python benchmarks/cassettes.py [--samples 2000] [--calls 50000] [--repeat 3]

The share is the time inside the recorder divided by the CPU time of the rest of the run, measured in real
runs on each engine (50,000 calls: --samples 50000). A real model takes a thousand times as long as the
scripted one, so its share is even smaller. Calls to the recorder alone are compared with the floor: writing
the same lines into one zstd stream. The growth is the resident memory after all calls divided by the memory
after a tenth of them."""

from __future__ import annotations

import argparse
import json
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from overhead import prepare
from ratios import record

MOST = 0.03
"""Maximum share of a run for recording."""
LONGEST = 1e-3
"""Maximum number of seconds counted for one step of the recorder. In longer steps, another process was
running."""


def run_share(folder: Path, engine: str) -> tuple[float, float]:
    """Return the recorder's share of the CPU seconds of a run, and the CPU seconds."""
    import aigo_bridge
    import aigo_inspect.models.calls as calls
    from aigo_bridge.engine.recording import TrialRecording
    from aigo_trust.recording.recording import _RecordedCall

    spent = [0.0]
    num_kept = 0

    def timed(function: Callable[..., Any]) -> Callable[..., Any]:
        def timing(*args: Any, **kwargs: Any) -> Any:
            # The CPU clock of the thread costs more than the measured step.
            before = time.perf_counter()
            try:
                return function(*args, **kwargs)
            finally:
                spent[0] += min(time.perf_counter() - before, LONGEST)

        return timing

    def counted(keep: Callable[..., Any]) -> Callable[..., Any]:
        def counting(*args: Any, **kwargs: Any) -> Any:
            nonlocal num_kept
            num_kept += 1
            return keep(*args, **kwargs)

        return counting

    for owner, name in ((TrialRecording, "call"), (_RecordedCall, "keep"), (calls, "outcome_of")):
        setattr(owner, name, timed(getattr(owner, name)))
    _RecordedCall.keep = counted(_RecordedCall.keep)  # type: ignore[method-assign]  # counts its calls
    plan = aigo_bridge.plan_task(folder / "equals.yaml", datasets={"rows": folder / "rows.jsonl"})
    before = time.process_time()
    outcome = aigo_bridge.run(
        plan,
        f"scripted/{folder / 'model.jsonl'}",
        engine=engine,
        out=folder / engine,
        record=folder / f"{engine}.cassette",
    )
    whole = time.process_time() - before
    assert outcome.num_failed == 0
    assert num_kept == len(plan.samples)
    return spent[0] / (whole - spent[0]), whole


def recorder_alone(folder: Path, count: int) -> tuple[float, float]:
    """Return the ratio of the recorder's CPU seconds to the floor, and the growth of the memory."""
    import zstandard

    from aigo_bridge.dtypes import ChatCompletionInput
    from aigo_bridge.engine.model_calls import CallOutcome
    from aigo_bridge.engine.recording import TrialRecording
    from aigo_bridge.models.connections import Choice, Reply, Usage
    from aigo_bridge.models.protocol import ModelRequest
    from aigo_trust.recording.recording import Recorder, _TaskRecorder

    words = [f"word{number}" for number in range(5000)]
    texts = random.Random(1)

    def text(size: int) -> str:
        return " ".join(texts.choices(words, k=size))

    recorder = Recorder(folder / "alone.cassette")
    recording = _TaskRecorder(recorder, "task")
    spent = 0.0
    sizes: list[int] = []
    for number in range(count):
        message = {"role": "user", "content": text(100)}
        request = ModelRequest(
            ChatCompletionInput.model_validate({"messages": [message]}), {"temperature": 0.5}
        )
        reply = Reply((Choice(text(60), finish_reason="stop"),), usage=Usage(100, 60), model="m")
        before = time.thread_time()
        call = TrialRecording(recording, number, 0, "solver").call("", "m", request)
        call.keep(CallOutcome(reply), 1.0, 0.1)
        spent += time.thread_time() - before
        if number == count // 10:
            sizes.append(resident())
    sizes.append(resident())
    recorder.close()
    content = zstandard.ZstdDecompressor().stream_reader(
        (folder / "alone.cassette").open("rb"), read_across_frames=True
    )
    lines = content.read().splitlines(keepends=True)
    before = time.thread_time()
    floor = zstandard.ZstdCompressor().compressobj()
    for line in lines:
        floor.compress(line)
    floor.flush()
    return spent / (time.thread_time() - before), sizes[1] / sizes[0]


def resident() -> int:
    """Return the number of pages in memory."""
    return int(Path("/proc/self/statm").read_text().split()[1])


def child(what: str, size: int) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if what == "recorder":
            print(json.dumps(recorder_alone(folder, size)))
        else:
            prepare(folder, size)
            print(json.dumps(run_share(folder, what)))


def measure(what: str, size: int) -> tuple[float, float]:
    done = subprocess.run(
        [sys.executable, __file__, "--child", what, str(size)], check=False, capture_output=True, text=True
    )
    if done.returncode:
        sys.exit(done.stderr[-3000:])
    first, second = json.loads(done.stdout.splitlines()[-1])
    return first, second


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--samples", type=int, default=2000)
    parser.add_argument("--calls", type=int, default=50_000)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--child", nargs=2)
    options = parser.parse_args()
    if options.child:
        child(options.child[0], int(options.child[1]))
        return
    for engine in ("inspect", "lighteval"):
        runs = [measure(engine, options.samples) for _ in range(options.repeat)]
        share, seconds = statistics.median(run[0] for run in runs), statistics.median(run[1] for run in runs)
        print(f"{engine}: {share:.2%} of {seconds:.1f} CPU s for {options.samples} calls")
        record(f"share of a run, of {MOST:.0%}, {engine}", share / MOST)
    runs = [measure("recorder", options.calls) for _ in range(options.repeat)]
    ratio, growth = statistics.median(run[0] for run in runs), statistics.median(run[1] for run in runs)
    print(f"recorder: {ratio:.1f} times one zstd stream; memory {growth:.3f} times that after a tenth")
    record("recorder | one zstd stream", ratio)
    record("memory | after a tenth of the calls", growth)


if __name__ == "__main__":
    main()
