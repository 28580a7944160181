"""Cost of an AI GO task, compared with the same task written by hand for Inspect: CPU seconds and peak
memory.

    python benchmarks/overhead.py [--samples 2000] [--repeat 3]

Each variant runs in a new process with the same scripted model and the same rows. `run` is the complete
`aigo-bridge run`, including evidence; `engine` is the part that Inspect runs. Compare ratios, because other
users of the machine change the seconds."""

from __future__ import annotations

import argparse
import json
import resource
import statistics
import subprocess
import sys
import tempfile
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
        display="none",
    )
    assert log.status == "success"


def aigo(folder: Path, name: str, *, evidence: bool) -> None:
    from aigo_bridge.engine.protocol import Job, RunSettings
    from aigo_bridge.engine.registry import load_engine
    from aigo_bridge.evaluation.task import plan, run
    from aigo_bridge.plan.plan import PlanOrigin

    made = plan(PlanOrigin(task=str(folder / f"{name}.yaml"), datasets={"rows": str(folder / "rows.jsonl")}))
    settings = RunSettings(out=folder / "aigo")
    job = Job(made, model=f"scripted/{folder / 'model.jsonl'}")
    engine = load_engine("inspect")
    if evidence:
        assert run(job, engine, settings).num_failed == 0
    else:
        engine.run([job], settings)


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
    parser.add_argument("--child", nargs=3)
    given = parser.parse_args()
    if given.child:
        child(given.child[0], given.child[1], Path(given.child[2]))
        return
    for name in ("equals", "python"):
        found: dict[str, list[tuple[float, float]]] = {variant: [] for variant in VARIANTS}
        for _ in range(given.repeat):
            for variant in VARIANTS:
                with tempfile.TemporaryDirectory() as folder:
                    prepare(Path(folder), given.samples)
                    found[variant].append(measure(variant, name, Path(folder)))
        hand = found["hand"]
        for variant, runs in found.items():
            ratio = statistics.median(mine[0] / theirs[0] for mine, theirs in zip(runs, hand, strict=True))
            memory = statistics.median(mine[1] / theirs[1] for mine, theirs in zip(runs, hand, strict=True))
            cpu, peak = statistics.median(r[0] for r in runs), statistics.median(r[1] for r in runs)
            print(
                f"{name:8} {variant:8} {cpu:7.2f} s {peak:6.0f} MB   CPU x{ratio:.2f}   memory x{memory:.2f}",
                flush=True,
            )
            if variant != "hand":
                record(f"{name}, {variant}", ratio)


if __name__ == "__main__":
    main()
