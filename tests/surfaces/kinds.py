"""Results of every origin with the facts that every surface must show.

A kind consists of a function that creates a result in a folder, and of `Facts` counted by hand. To add a
kind, add a row to `KINDS`.
"""

from __future__ import annotations

import json
import shutil
import zipfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.support.commands import REPOSITORY, Finished, Run
from tests.support.forked import finished

GOLDEN = REPOSITORY / "tests" / "golden"
CAPITALS = REPOSITORY / "examples" / "capitals"

TASK = """key: capitals
display_name: Capitals
description: ""
definition:
  dataset: {key: rows}
  SETTINGS
  solver:
    type: single_turn_solver
    input_builder: {type: chat_completion, input_messages: [{role: user, content: "Capital of {{ sample.country }}?"}]}
  scorers:
    - type: string_equals
      ground_truth: "{{ sample.capital }}"
      metrics: [{type: mean, field: is_correct, name: Accuracy}]
"""
ROWS = (("Norway", "Oslo"), ("Peru", "Lima"), ("Australia", "Canberra"), ("Japan", "Tokyo"))
RIGHT: dict[str, Any] = {"default": True, "reply": "Oslo"}
FAILS: dict[str, Any] = {"error": "no access", "status": 401}


@dataclass(frozen=True)
class Facts:
    """Counts of a result. The metrics are those in its evidence."""

    samples: int
    scored: int
    failed: int = 0
    unscored: int = 0
    """Samples without an error and without a value from the scorer of the first metric."""
    excluded: int = 0
    unfinished: int = 0
    trials: int | None = None
    """Number of trials [default: one for each sample]."""
    failed_trials: int | None = None
    """Number of failed trials [default: number of failed samples]."""
    is_complete: bool = True
    """Whether all planned samples were run."""
    metrics: dict[str, float] = field(default_factory=dict)
    """Displayed name → value, rounded to four digits, for kinds with values computed by hand."""


@dataclass(frozen=True)
class Kind:
    """A kind of result."""

    name: str
    make: Callable[[Path, Run], Path]
    """Function that creates the result in an empty folder and returns its file."""
    facts: Facts
    is_run: bool = False
    """Whether `run` created the result. Its summary is then one of the surfaces."""


def _task(
    folder: Path, rules: list[dict[str, Any]], settings: str = "", rows: Any = ROWS, text: str = TASK
) -> Path:
    """Write a task with rows and a scripted model to a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "task.yaml").write_text(text.replace("  SETTINGS\n", f"  {settings}\n" if settings else ""))
    (folder / "rows.jsonl").write_text(
        "".join(json.dumps({"country": one, "capital": two}) + "\n" for one, two in rows)
    )
    (folder / "answers.jsonl").write_text("".join(json.dumps(rule) + "\n" for rule in rules))
    return folder


def _run(folder: Path, aigo: Run, *options: str) -> Path:
    """Return the result of a task. The output of `run` is stored next to it."""
    done = aigo(
        "run",
        folder / "task.yaml",
        "--model",
        f"scripted/{folder / 'answers.jsonl'}",
        "--out",
        folder / "out",
        *options,
    )
    (folder / "summary.txt").write_text(done.out)
    (folder / "code.txt").write_text(str(done.code))
    (result,) = (folder / "out").glob("*.tasklog.json")
    return result


def _forked(*words: object) -> Finished:
    """Run `aigo-bridge` in a process that has loaded lighteval, which takes longer than all else here."""
    done = finished(["aigo-bridge", *words])
    return Finished(done.returncode, done.stdout, done.stderr)


def one_trial(folder: Path, aigo: Run) -> Path:
    return _run(
        _task(
            folder, [{"match": {"contains": "Norway"}, "reply": "Oslo"}, {"default": True, "reply": "Rome"}]
        ),
        aigo,
    )


def on_lighteval(folder: Path, aigo: Run) -> Path:
    task = _task(
        folder, [{"match": {"contains": "Norway"}, "reply": "Oslo"}, {"default": True, "reply": "Rome"}]
    )
    return _run(task, _forked, "--engine", "lighteval")


def failed_samples(folder: Path, aigo: Run) -> Path:
    return _run(_task(folder, [{"match": {"contains": "Peru"}, "reply": FAILS}, RIGHT]), aigo)


def failed_trials(folder: Path, aigo: Run) -> Path:
    """Two of three answers fail for Norway, one for Peru, all for Australia, and none for Japan."""
    rules: list[dict[str, Any]] = [
        {"match": {"contains": "Norway"}, "times": 1, "reply": "Oslo"},
        {"match": {"contains": "Peru"}, "times": 2, "reply": "Rome"},
        {"match": {"contains": "Japan"}, "reply": "Tokyo"},
        {"default": True, "reply": FAILS},
    ]
    return _run(_task(folder, rules, "trials: {num_trials: 3}"), aigo)


def some_trials_of_all(folder: Path, aigo: Run) -> Path:
    """Seven of twelve calls fail, but every sample has an answer."""
    rules: list[dict[str, Any]] = [
        {"match": {"contains": "Norway"}, "times": 2, "reply": "Oslo"},
        *(
            {"match": {"contains": country}, "times": 1, "reply": "Rome"}
            for country in ("Peru", "Australia", "Japan")
        ),
        {"default": True, "reply": FAILS},
    ]
    return _run(_task(folder, rules, "trials: {num_trials: 3}"), aigo)


def excluded(folder: Path, aigo: Run) -> Path:
    rule = "{key: no_peru, action: exclude_from_metrics, filter: {op: equals, expression: '{{ sample.country }}', value: Peru}}"
    text = TASK + f"  actions: [{rule}]\n"
    return _run(_task(folder, [RIGHT], text=text), aigo)


def one_sample(folder: Path, aigo: Run) -> Path:
    return _run(_task(folder, [RIGHT], rows=ROWS[:1]), aigo)


# Inspect logs


def _evaluated(folder: Path, **task: Any) -> Path:
    """Return the log of a real evaluation with Inspect's own mock model."""
    from inspect_ai import Task
    from inspect_ai import eval as run_eval
    from inspect_ai.dataset import Sample
    from inspect_ai.model import get_model
    from tests.support.inspect_logs.scripted import answer

    epochs = task.pop("epochs", None)
    samples = [Sample(input=f"Question {number}", target="right", id=number) for number in range(1, 5)]
    (log,) = run_eval(
        Task(name="asked", dataset=samples, epochs=epochs, **task),
        model=get_model("mockllm/model", custom_outputs=lambda *_: answer("right"), memoize=False),
        log_dir=str(folder / "logs"),
        display="none",
        fail_on_error=False,
    )
    return Path(log.location)


def _imported(log: Path, folder: Path, aigo: Run) -> Path:
    done = aigo("import", log, "--out", folder / "evidence")
    assert done.code in (0, 3), done.err
    return min((folder / "evidence").rglob("*.tasklog.json"))


def letters(folder: Path, aigo: Run) -> Path:
    """The grades C, P, I and N, one each."""
    from inspect_ai.scorer import Score, Scorer, Target, accuracy, scorer, stderr
    from inspect_ai.solver import TaskState

    @scorer(metrics=[accuracy(), stderr()])
    def graded() -> Scorer:
        async def score(state: TaskState, target: Target) -> Score:
            return Score(value="CPIN"[int(state.sample_id) - 1])

        return score

    return _imported(_evaluated(folder, scorer=graded()), folder, aigo)


def dictionaries(folder: Path, aigo: Run) -> Path:
    """Two scores of one scorer, each with its own mean."""
    from inspect_ai.scorer import Score, Scorer, Target, mean, scorer, stderr
    from inspect_ai.solver import TaskState

    @scorer(metrics={"style": [mean(), stderr()], "length": [mean()]})
    def marked() -> Scorer:
        async def score(state: TaskState, target: Target) -> Score:
            return Score(value={"style": 0.25 * int(state.sample_id), "length": float(state.sample_id)})

        return score

    return _imported(_evaluated(folder, scorer=marked()), folder, aigo)


def scorers_and_reducers(folder: Path, aigo: Run) -> Path:
    """Two scorers with a metric of the same name, over three epochs with two reducers."""
    from inspect_ai import Epochs
    from inspect_ai.scorer import Score, Scorer, Target, accuracy, scorer
    from inspect_ai.solver import TaskState

    @scorer(metrics=[accuracy()])
    def lenient() -> Scorer:
        async def score(state: TaskState, target: Target) -> Score:
            return Score(value="C" if (int(state.sample_id) + state.epoch) % 2 else "I")

        return score

    @scorer(metrics=[accuracy()])
    def strict() -> Scorer:
        async def score(state: TaskState, target: Target) -> Score:
            return Score(value="C" if int(state.sample_id) + state.epoch > 6 else "I")

        return score

    log = _evaluated(folder, scorer=[lenient(), strict()], epochs=Epochs(3, ["mean", "max"]))
    return _imported(log, folder, aigo)


def unscored(folder: Path, aigo: Run) -> Path:
    """One score is NaN, and one is missing."""
    from inspect_ai.scorer import Score, Scorer, Target, mean, scorer
    from inspect_ai.solver import TaskState

    @scorer(metrics=[mean()])
    def partial() -> Scorer:
        async def score(state: TaskState, target: Target) -> Score | None:
            number = int(state.sample_id)
            return None if number == 4 else Score(value=float("nan") if number == 3 else float(number))

        return score

    return _imported(_evaluated(folder, scorer=partial()), folder, aigo)


def failed_in_inspect(folder: Path, aigo: Run) -> Path:
    """The solver fails on one sample in one of two epochs, and on another sample in both."""
    from inspect_ai.scorer import match
    from inspect_ai.solver import Generate, Solver, TaskState, solver

    @solver
    def fragile() -> Solver:
        async def solve(state: TaskState, generate: Generate) -> TaskState:
            number = int(state.sample_id)
            if number == 3 or (number == 2 and state.epoch == 1):
                raise RuntimeError("it broke")
            return await generate(state)

        return solve

    return _imported(_evaluated(folder, solver=fragile(), scorer=match(), epochs=2), folder, aigo)


def of_2024(folder: Path, aigo: Run) -> Path:
    return _imported(GOLDEN / "inspect" / "0.3.50.eval", folder, aigo)


def of_today(folder: Path, aigo: Run) -> Path:
    from inspect_ai.scorer import match

    return _imported(_evaluated(folder, scorer=match()), folder, aigo)


def salvaged(folder: Path, aigo: Run) -> Path:
    """A log that is truncated in its zip directory."""
    from inspect_ai.scorer import match

    log = _evaluated(folder, scorer=match())
    data = log.read_bytes()
    log.write_bytes(data[: data.rindex(b"PK\x01\x02")])
    return _imported(log, folder, aigo)


def killed(folder: Path, aigo: Run) -> Path:
    """An Inspect log of a killed process, which lacks its end. Two of four samples are written."""
    from inspect_ai.scorer import match

    log = _evaluated(folder, scorer=match())
    cut = log.with_name("killed.eval")
    with zipfile.ZipFile(log) as source, zipfile.ZipFile(cut, "w") as target:
        for name in source.namelist():
            if name == "_journal/start.json" or name in ("samples/1_epoch_1.json", "samples/2_epoch_1.json"):
                target.writestr(name, source.read(name))
    log.unlink()
    return _imported(cut, folder, aigo)


def still_running(folder: Path, aigo: Run) -> Path:
    """Like `killed`, with one more sample of which only the event journal exists."""
    from inspect_ai.scorer import match

    log = _evaluated(folder, scorer=match(), epochs=2)
    cut = log.with_name("running.eval")
    kept = (
        "_journal/start.json",
        *(f"samples/{number}_epoch_{epoch}.json" for number in (1, 2) for epoch in (1, 2)),
        "samples/3_epoch_1.json",
    )
    with zipfile.ZipFile(log) as source, zipfile.ZipFile(cut, "w") as target:
        for name in kept:
            target.writestr(name, source.read(name))
    log.unlink()
    return _imported(cut, folder, aigo)


# Results of other tools


def _unpacked(archive: Path, folder: Path) -> Path:
    with zipfile.ZipFile(archive) as file:
        file.extractall(folder / "log")
    return folder / "log"


def of_lighteval(folder: Path, aigo: Run) -> Path:
    return _imported(_unpacked(GOLDEN / "lighteval" / "0.13.0.zip", folder), folder, aigo)


def of_lm_eval(folder: Path, aigo: Run) -> Path:
    return _imported(_unpacked(GOLDEN / "lm_eval" / "0.4.13.zip", folder), folder, aigo)


def of_every_eval_ever(folder: Path, aigo: Run) -> Path:
    log = folder / "log"
    shutil.copytree(GOLDEN / "every_eval_ever" / "records", log)
    return _imported(log, folder, aigo)


KINDS = (
    Kind("one-trial", one_trial, Facts(4, 4, metrics={"Accuracy": 0.25}), is_run=True),
    Kind("one-sample", one_sample, Facts(1, 1, metrics={"Accuracy": 1.0}), is_run=True),
    Kind("lighteval-run", on_lighteval, Facts(4, 4, metrics={"Accuracy": 0.25}), is_run=True),
    Kind("failed-samples", failed_samples, Facts(4, 3, failed=1, metrics={"Accuracy": 0.3333}), is_run=True),
    Kind(
        "failed-trials",
        failed_trials,
        Facts(4, 3, failed=1, trials=12, failed_trials=6, metrics={"Accuracy": 0.6667}),
        is_run=True,
    ),
    Kind(
        "some-trials-of-all",
        some_trials_of_all,
        Facts(4, 4, trials=12, failed_trials=7, metrics={"Accuracy": 0.25}),
        is_run=True,
    ),
    Kind("excluded", excluded, Facts(4, 3, excluded=1, metrics={"Accuracy": 0.3333}), is_run=True),
    Kind("letters", letters, Facts(4, 4, metrics={"accuracy": 0.375})),
    Kind("dictionaries", dictionaries, Facts(4, 4, metrics={"mean (style)": 0.625, "mean (length)": 2.5})),
    Kind(
        "scorers-and-reducers",
        scorers_and_reducers,
        Facts(
            4,
            4,
            trials=12,
            metrics={
                "accuracy (lenient, mean)": 0.5,
                "accuracy (lenient, max)": 1.0,
                "accuracy (strict, mean)": 0.0833,
                "accuracy (strict, max)": 0.25,
            },
        ),
    ),
    Kind("unscored", unscored, Facts(4, 2, unscored=2, metrics={"mean": 1.5})),
    Kind(
        "failed-in-inspect",
        failed_in_inspect,
        Facts(4, 3, failed=1, trials=8, failed_trials=3, metrics={"accuracy": 1.0}),
    ),
    Kind("inspect-of-2024", of_2024, Facts(2, 2, metrics={"accuracy": 0.5})),
    Kind("inspect-of-today", of_today, Facts(4, 4, metrics={"accuracy": 1.0})),
    Kind("salvaged", salvaged, Facts(4, 4, metrics={"accuracy": 1.0})),
    Kind("killed", killed, Facts(2, 2)),
    Kind("killed-in-an-epoch", still_running, Facts(3, 3, trials=5)),
    Kind("lighteval", of_lighteval, Facts(5, 5)),
    Kind("lm-eval", of_lm_eval, Facts(4, 4)),
    Kind("every-eval-ever", of_every_eval_ever, Facts(0, 0, trials=0)),
)
