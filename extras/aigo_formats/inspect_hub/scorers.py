"""Scorers of an `eval.yaml` as AI GO scorers that call Inspect's own.

The code of each scorer contains the whole entry, so that an export can restore it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

from aigo_formats.definitions import ConvertedParts, KeyPath
from aigo_formats.inspect_hub.entries import SCORERS

Json = dict[str, Any]

JUDGES = frozenset({"model_graded_qa", "model_graded_fact"})
MEAN_NAMES = {"exact": "mean", "f1": "mean"}
"""Names of Inspect's mean metric by scorer, if not `accuracy`."""

_CODE = """\
# Scores an answer with Inspect's own scorer, as set in `eval.yaml`; needs the package inspect-ai.
import asyncio
import json
from string import ascii_uppercase

from inspect_ai._util.registry import registry_create
from inspect_ai.model import ChatMessageUser, ModelName, ModelOutput
from inspect_ai.scorer import Target, value_to_float
from inspect_ai.solver import TaskState

TASK = json.loads({task!r})
SCORER = {number}


def target_of(sample):
    columns = TASK["field_spec"]
    name = columns["target"]
    if name.startswith("literal:"):
        return name.removeprefix("literal:")
    value = sample[name]
    if isinstance(value, int) and "choices" in columns:
        value = ascii_uppercase[value]
    return str(value)


def choices_of(sample):
    choices = TASK["field_spec"].get("choices")
    if isinstance(choices, list):
        return [sample[name] for name in choices]
    return sample[choices] if choices else None


async def _score(sample, answer):
    question = sample[TASK["field_spec"]["input"]]
    output = ModelOutput.from_content("model", answer)
    target = Target(target_of(sample))
    state = TaskState(
        model=ModelName("none/none"),
        sample_id=1,
        epoch=1,
        input=question,
        messages=[ChatMessageUser(content=question)],
        target=target,
        choices=choices_of(sample) or None,
        output=output,
    )

    async def generate(state, *args, **kwargs):
        state.output = output
        return state

    last = TASK["solvers"][-1]
    if last["name"] == "multiple_choice":  # it reads the chosen letters from the answer
        several = bool(last["args"].get("multiple_correct"))
        solver = registry_create("solver", "inspect_ai/multiple_choice", multiple_correct=several)
        state = await solver(state, generate)
    scorer = TASK["scorers"][SCORER]
    return await registry_create("scorer", "inspect_ai/" + scorer["name"], **scorer["args"])(state, target)


def compute_scores(sample, solver_output):
    score = asyncio.run(_score(sample, solver_output.output.choices[0].message.content or ""))
    if score is None:
        raise ValueError("the scorer gave no score")
    metadata = {{"value": score.value, "answer": score.answer, "target": target_of(sample)}}
    return {{"scores": {{"score": value_to_float()(score.value)}}, "metadata": metadata}}
"""

_STDERR = """\
# The standard error of the mean, as Inspect computes it.
import statistics


def compute_metrics(scores):
    values = [score.values["score"] for score in scores]
    error = statistics.stdev(values) / len(values) ** 0.5 if len(values) > 1 else 0.0
    return {"stderr": error}
"""

_CARRIED = re.compile(r"^TASK = json\.loads\((?P<task>.*)\)$", re.MULTILINE)


def scorers_of(parts: ConvertedParts, task: Json, path: KeyPath) -> list[Json]:
    """Return the scorers of an entry. Scorers that cannot be expressed are recorded."""
    scorers: list[Json] = []
    names = [scorer["name"] for scorer in task["scorers"]]
    for number, scorer in enumerate(task["scorers"]):
        name, at = scorer["name"], (*path, "scorers", number)
        if name in JUDGES:
            reason = "calls a judge with Inspect's own prompts and grades, which differ from AI GO's judges"
            parts.lose(at, f"scorer {name!r} {reason}; its metric is left out")
            continue
        if not _takes(parts, task, scorer, at):
            continue
        key = name if names.count(name) == 1 else f"{name}-{names[: number + 1].count(name)}"
        mean = {"type": "mean", "key": "mean", "field": "score", "name": MEAN_NAMES.get(name, "accuracy")}
        stderr = {"type": "python", "key": f"{key}-stderr", "compute_metrics_snippet": _STDERR}
        code = snippet(task, number)
        scorers.append(
            {"type": "python", "key": key, "compute_scores_snippet": code, "metrics": [mean, stderr]}
        )
    if not scorers and not parts.fatal:
        parts.refuse(
            (*path, "scorers"), "nothing would be scored: no scorer of the task has an equivalent in AI GO"
        )
    return scorers


def _takes(parts: ConvertedParts, task: Json, scorer: Json, at: KeyPath) -> bool:
    name, arguments = scorer["name"], scorer["args"]
    if unknown := sorted(map(str, arguments.keys() - set(SCORERS[name]))):
        parts.refuse(
            (*at, "args", unknown[0]), f"Inspect's {name!r} does not have the argument {unknown[0]!r}"
        )
        return False
    if name == "choice" and task["solvers"] and task["solvers"][-1]["name"] != "multiple_choice":
        parts.refuse(at, "'choice' reads what 'multiple_choice' has marked, which does not run")
        return False
    choices = {
        ("match", "location"): ("begin", "end", "any", "exact"),
        ("answer", "pattern"): ("letter", "word", "line"),
    }
    for (of, argument), values in choices.items():
        if name == of and (argument in arguments or of == "answer") and arguments.get(argument) not in values:
            message = f"{argument!r}: found {arguments.get(argument)!r}, expected one of {', '.join(values)}"
            parts.refuse((*at, "args", argument), message)
            return False
    if name == "pattern":
        try:
            re.compile(arguments.get("pattern"))
        except (re.error, TypeError, RecursionError, OverflowError) as error:
            message = f"'pattern': found {arguments.get('pattern')!r}, expected a regular expression: {error}"
            parts.refuse((*at, "args", "pattern"), message)
            return False
    return True


def snippet(task: Json, number: int) -> str:
    """Return the code of a scorer."""
    return _CODE.format(task=json.dumps(task, ensure_ascii=False), number=number)


def carried_entry(codes: Sequence[str]) -> Json | None:
    """Return the entry in the code of a task's scorers; `None` if the code is modified or from another
    source.
    """
    import ast

    if not codes or (match := _CARRIED.search(codes[0])) is None:
        return None
    try:
        task = json.loads(ast.literal_eval(match["task"]))
        made = [snippet(task, number) for number in range(len(task["scorers"]))]
    except (ValueError, SyntaxError, TypeError, KeyError, RecursionError, MemoryError):
        return None
    return task if all(code in made for code in codes) else None
