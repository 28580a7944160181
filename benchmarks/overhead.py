"""Cost of an AI GO task, compared with the same task written by hand for Inspect: CPU seconds and peak
memory.

    python benchmarks/overhead.py [--samples 2000] [--repeat 3] [--grown 6000] [--only equals]

Each variant runs in a new process with the same scripted model and the same rows. `run` is the complete
`aigo-bridge run`, including evidence; `engine` is the part that Inspect runs. `hand` is the Inspect task,
whose log also contains every raw model call. CPU ratios compare the lowest CPU seconds of each variant.
Memory growth is the increase of the peak from `--samples` to `--grown` samples, per sample.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path

from ratios import record

TASK = """key: overhead
display_name: Overhead
description: ''
definition:
  dataset: {key: rows}
  solver:
    type: single_turn_solver
    input_builder: {type: chat_completion, input_messages: [{role: user, content: "{{ sample.question }}"}]}
  scorers:
"""
EQUALS = '    - {type: string_equals, ground_truth: "{{ sample.answer }}"}\n'
PYTHON = """    - type: python
      metrics: [{type: mean, field: same}]
      compute_scores_snippet: |
        def compute_scores(sample, solver_output):
            text = solver_output.output.choices[0].message.content
            return {"same": float(text == sample["answer"])}
"""


def prepare(folder: Path, samples: int) -> None:
    rows = [
        {"question": f"What is {number} plus {number}? " + "Think. " * 20, "answer": str(2 * number)}
        for number in range(samples)
    ]
    (folder / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (folder / "model.jsonl").write_text('{"default": true, "reply": "42"}\n')
    (folder / "equals.yaml").write_text(TASK + EQUALS)
    (folder / "python.yaml").write_text(TASK + PYTHON)


def hand_written(folder: Path, name: str) -> None:
    from inspect_ai import Task
    from inspect_ai import eval as inspect_eval
    from inspect_ai.dataset import FieldSpec, json_dataset
    from inspect_ai.scorer import Score, Target, accuracy, mean, scorer
    from inspect_ai.solver import TaskState, generate

    import aigo_inspect._registry  # noqa: F401  # the scripted model

    @scorer(metrics=[accuracy()])
    def equals():  # type: ignore[no-untyped-def]
        async def score(state: TaskState, target: Target) -> Score:
            return Score(
                value=1.0 if state.output.completion == target.text else 0.0, answer=state.output.completion
            )

        return score

    @scorer(metrics=[mean()])
    def same():  # type: ignore[no-untyped-def]
        async def score(state: TaskState, target: Target) -> Score:
            return Score(value=float(state.output.completion == target.text))

        return score

    dataset = json_dataset(str(folder / "rows.jsonl"), FieldSpec(input="question", target="answer"))
    (log,) = inspect_eval(
        Task(dataset=dataset, solver=generate(), scorer=equals() if name == "equals" else same()),
        model=f"scripted/{folder / 'model.jsonl'}",
        log_dir=str(folder / "hand"),
        log_model_api=True,
        display="none",
    )
    assert log.status == "success"


def aigo(folder: Path, name: str, *, evidence: bool) -> None:
    import aigo_bridge
    from aigo_bridge.engine.protocol import Job, RunSettings
    from aigo_bridge.engine.registry import load_engine

    task, model = str(folder / f"{name}.yaml"), f"scripted/{folder / 'model.jsonl'}"
    plan = aigo_bridge.plan_task(task, datasets={"rows": str(folder / "rows.jsonl")})
    if evidence:
        assert aigo_bridge.run(plan, model, out=folder / "aigo").num_failed == 0
    else:
        load_engine("inspect").run([Job(plan, model=model)], RunSettings(folder / "aigo"))


VARIANTS = {
    "hand": hand_written,
    "engine": lambda folder, name: aigo(folder, name, evidence=False),
    "run": lambda folder, name: aigo(folder, name, evidence=True),
}


def measure(variant: str, name: str, folder: Path) -> tuple[float, float]:
    """Return CPU seconds (including the snippet worker) and peak MB."""
    done = subprocess.run(
        [sys.executable, __file__, "--child", variant, name, str(folder)],
        check=False,
        capture_output=True,
        text=True,
    )
    if done.returncode:
        sys.exit(done.stderr[-3000:])
    cpu, peak = done.stdout.split()[-2:]
    return float(cpu), float(peak)


def child(variant: str, name: str, folder: Path) -> None:
    VARIANTS[variant](folder, name)
    own, children = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = own.ru_utime + own.ru_stime + children.ru_utime + children.ru_stime
    print(cpu, own.ru_maxrss / 1024)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--samples", type=int, default=2000)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--grown", type=int)
    parser.add_argument("--only", choices=("equals", "python"))
    parser.add_argument("--child", nargs=3)
    given = parser.parse_args()
    if given.child:
        child(given.child[0], given.child[1], Path(given.child[2]))
        return
    peaks: dict[str, float] = {}
    for name in ("python", "equals") if given.only is None else (given.only,):
        cheapest = _cheapest(name, given.samples, VARIANTS, given.repeat)
        for variant in ("engine", "run"):
            record(f"{name}, {variant}", cheapest[variant][0] / cheapest["hand"][0])
        peaks = {variant: peak for variant, (_, peak) in cheapest.items()}
    if given.grown:
        grown = _cheapest(name, given.grown, ("hand", "run"), 1)
        record("many samples, run", grown["run"][0] / grown["hand"][0])
        growth = {
            variant: max((peak - peaks[variant]) * 1024 / (given.grown - given.samples), 0.01)
            for variant, (_, peak) in grown.items()
        }
        print(f"memory growth: {growth['hand']:.1f} KiB a sample by hand, {growth['run']:.1f} in run")
        record("many samples, memory growth of run", growth["run"] / growth["hand"])


def _cheapest(
    name: str, samples: int, variants: Iterable[str], repeat: int
) -> dict[str, tuple[float, float]]:
    """Variant → lowest CPU seconds and lowest peak MB of several rounds."""
    runs: dict[str, list[tuple[float, float]]] = {variant: [] for variant in variants}
    for _ in range(repeat):
        for variant, measured in runs.items():
            with tempfile.TemporaryDirectory() as folder:
                prepare(Path(folder), samples)
                measured.append(measure(variant, name, Path(folder)))
    cheapest = {
        variant: (min(cpu for cpu, _ in m), min(peak for _, peak in m)) for variant, m in runs.items()
    }
    for variant, (cpu, peak) in cheapest.items():
        ratio, memory = cpu / cheapest["hand"][0], peak / cheapest["hand"][1]
        print(
            f"{name:8} {variant:8} {samples:6} samples {cpu:7.2f} s {peak:6.0f} MB"
            f"   CPU x{ratio:.2f}   memory x{memory:.2f}",
            flush=True,
        )
    return cheapest


if __name__ == "__main__":
    main()
