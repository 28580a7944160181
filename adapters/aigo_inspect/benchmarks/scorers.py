"""Conversion of an Inspect task's scorers to Python scorers, and of its metrics to means or Python
metrics.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from inspect_ai import Task
from inspect_ai._util.registry import is_registry_object, registry_info, registry_lookup, registry_params
from inspect_ai.scorer._reducer.registry import create_reducers, reducer_log_names
from inspect_ai.solver import Solver

from aigo_bridge.engine.protocol import Fidelity, Gap
from aigo_bridge.exporting.carried_code import module_of, with_code
from aigo_inspect.benchmarks.references import (
    NotFoundAgainError,
    OwnCode,
    captured,
    name_of,
    reaching,
    reference,
)
from aigo_inspect.benchmarks.snippets import ANSWERED, METRICS, SOLVED, WRITTEN_OUT
from aigo_inspect.benchmarks.solvers import are_known, solvers_of

SCORERS = frozenset(
    f"inspect_ai/{name}" for name in ("match", "includes", "exact", "f1", "pattern", "answer", "choice")
)
"""Scorers that read only the answer, target and choices."""

JUDGES = frozenset(f"inspect_ai/{name}" for name in ("model_graded_qa", "model_graded_fact"))
"""Scorers that call a model, which Python scorers cannot do."""

MEANS = frozenset({"inspect_ai/accuracy", "inspect_ai/mean"})
"""Metrics that compute the mean over samples."""


def metrics_of(scorer: object, task: Task) -> Any:
    """Return the metrics of a scorer. Metrics of the task override them."""
    if task.metrics is not None:
        return task.metrics
    return registry_info(scorer).metadata.get("metrics") or []


def is_written_out(scorer: object) -> bool:
    """Return whether a scorer is one of Inspect's with parameters that are not code."""
    if name_of(scorer) not in SCORERS:
        return False
    try:
        return bool(reference(scorer)["params"] == dict(registry_params(scorer)))
    except NotFoundAgainError:
        return False


def needs_state(task: Task) -> bool:
    """Return whether a solver or scorer of the benchmark reads the whole sample."""
    return not (are_known(solvers_of(task)) and all(map(is_written_out, task.scorer or [])))


def needs_metadata(task: Task) -> bool:
    """Return whether a solver, scorer or metric may read the sample metadata."""
    scorers = task.scorer or []
    if needs_state(task):
        return True
    return any(
        _sees_metadata(metric)
        for scorer in scorers
        for metric in _single(metrics_of(scorer, task))
        if is_registry_object(metric)
    )


def _sees_metadata(metric: Any) -> bool:
    """Return whether a metric may read more than scores."""
    return bool(registry_params(metric)) or not name_of(metric).startswith("inspect_ai/")


def scorer_gaps(task: Task) -> list[Gap]:
    """Return the features of a task's scorers that an AI GO task cannot express."""
    scorers = task.scorer or []
    gaps = [] if scorers else [_no("scorer", "the task does not define a scorer")]
    for number, scorer in enumerate(scorers):
        name = name_of(scorer)
        part = f"scorer[{number}] ({name})"
        if name in JUDGES:
            reason = (
                "AI GO's judges add their own instruction and expect a JSON reply; the prompt"
                " and grades of this judge are different"
            )
            hint = "run it with `aigo-bridge run inspect:… --model-map grader=MODEL`, which keeps the judge"
            gaps.append(_no(part, reason, hint))
            continue
        names = reaching(scorer)
        if not are_known(solvers_of(task)):  # values that these solvers store are available
            names = [each for each in names if each not in ("store", "store_as")]
        if names:
            reason = f"needs more than question, answer and target: its code uses {', '.join(names)}"
            gaps.append(_no(part, reason))
            continue
        try:
            reference(scorer)
        except NotFoundAgainError as error:
            gaps.append(_no(part, f"cannot be copied: {error}"))
            continue
        gaps += _metric_gaps(part, metrics_of(scorer, task), task)
    return gaps


def _metric_gaps(part: str, metrics: Any, task: Task) -> list[Gap]:
    try:
        _described(metrics, OwnCode())
        if has_rows_for_epochs(task):
            _reducers(task)
    except NotFoundAgainError as error:
        return [_no(part, f"its metrics cannot be copied: {error}")]
    return []


def has_rows_for_epochs(task: Task) -> bool:
    """Return whether each epoch becomes a separate row.

    AI GO averages the trials of a sample before computing metrics. Any other reduction needs separate rows.
    """
    if (task.epochs or 1) == 1:
        return False
    names = reducer_log_names(task.epochs_reducer)
    means = all(
        not isinstance(metrics, Mapping) and all(map(_is_mean, _single(metrics)))
        for metrics in (metrics_of(scorer, task) for scorer in task.scorer or [])
    )
    return not (means and names in (None, ["mean"]))


def _reducers(task: Task) -> list[str]:
    """Return the names of the reducers that combine the epochs of a sample. Inspect can create them again by
    name.

    Raises:
        NotFoundAgainError: a reducer is not one of Inspect's.
    """
    names = reducer_log_names(task.epochs_reducer)
    if names is None:
        return ["mean"]
    if not names:
        raise NotFoundAgainError("its epochs are not combined by a reducer")
    for name, reducer in zip(names, create_reducers(task.epochs_reducer) or [], strict=True):
        factory = captured(registry_lookup("score_reducer", registry_info(reducer).name)).get("reducer_type")
        known = str(getattr(factory, "__module__", "")).startswith("inspect_ai.")
        if not known or set(registry_params(reducer)) - {"k"}:
            raise NotFoundAgainError(f"the reducer {name!r} is not an unmodified reducer of Inspect")
    return names


def _no(part: str, reason: str, hint: str | None = None) -> Gap:
    return Gap(part, reason, Fidelity.UNSUPPORTED, hint)


def _single(metrics: Any) -> list[Any]:
    if isinstance(metrics, Mapping):
        return [single for values in metrics.values() for single in _single(values)]
    if isinstance(metrics, Sequence):
        return [single for metric in metrics for single in _single(metric)]
    return [metrics]


def _is_mean(metric: Any) -> bool:
    return name_of(metric) in MEANS and not (is_registry_object(metric) and registry_params(metric))


def _described(metrics: Any, code: OwnCode) -> Any:
    if isinstance(metrics, Mapping):
        return {"by_key": {key: _described(values, code) for key, values in metrics.items()}}
    if isinstance(metrics, Sequence):
        return [_described(metric, code) for metric in metrics]
    return reference(metrics, code)


def scorer_of(scorer: object, task: Task) -> dict[str, Any]:
    """Return the AI GO scorer for a scorer that can be converted."""
    name = name_of(scorer)
    key = name.rpartition("/")[2]
    same = [candidate for candidate in task.scorer or [] if name_of(candidate) == name]
    if len(same) > 1:
        key = f"{key}-{next(number for number, candidate in enumerate(same, start=1) if candidate is scorer)}"
    code = OwnCode()
    snippet = _snippet(scorer, solvers_of(task), code)
    reducers = None
    if has_rows_for_epochs(task):
        snippet = snippet.replace('sample["sample_id"]', 'sample["native_id"]')
        snippet = snippet.replace("epoch=1,", 'epoch=sample["epoch"],')
        reducers = _reducers(task)
    return {
        "type": "python",
        "key": key,
        "compute_scores_snippet": with_code(snippet, code.texts()),
        "metrics": _metrics(key, metrics_of(scorer, task), reducers),
    }


def _snippet(scorer: object, solvers: Sequence[Solver], code: OwnCode) -> str:
    if not are_known(solvers):
        parts = [reference(part, code) for part in (scorer, *solvers)]
        solving = json.dumps(parts[1:])
        return SOLVED.format(packages=_packages(parts, code), scorer=json.dumps(parts[0]), solvers=solving)
    if not is_written_out(scorer):
        made = reference(scorer, code)
        return ANSWERED.format(packages=_packages([made], code), scorer=json.dumps(made))
    solver = solvers[-1]
    choosing = name_of(solver) == "inspect_ai/multiple_choice"
    params = registry_params(solver) if choosing else {}
    settings = {key: params[key] for key in ("cot", "multiple_correct") if params.get(key)}
    return WRITTEN_OUT.format(
        scorer=name_of(scorer),
        scorer_params=json.dumps(registry_params(scorer)),
        solver=name_of(solver) if choosing else None,
        solver_params=json.dumps(settings),
    )


def _packages(references: Sequence[Mapping[str, Any]], code: OwnCode) -> str:
    carried_modules = set(map(module_of, code.texts()))
    modules = [part["module"] for part in references if part["module"] not in carried_modules]
    names = dict.fromkeys(["inspect-ai", *(name.partition(".")[0] for name in modules)])
    packages = [name for name in names if name != "inspect_ai"]
    return f"package{'s' * (len(packages) > 1)} {' and '.join(packages)}"


def _metrics(key: str, metrics: Any, reducers: list[str] | None) -> list[dict[str, Any]]:
    """Return the metrics of a scorer. `reducers` combine the epochs if they are separate rows."""
    plain = metrics if isinstance(metrics, Sequence) else []
    means = [metric for metric in plain if not isinstance(metric, Mapping) and _is_mean(metric)]
    means = means if reducers is None else []
    entries: list[dict[str, Any]] = [
        {"type": "mean", "key": short, "field": "score", "name": short}
        for short in (name_of(metric).rpartition("/")[2] for metric in means)
    ]
    remaining = [metric for metric in plain if metric not in means] if plain else metrics
    if not remaining:
        return entries
    imports = "\nfrom inspect_ai.scorer._reducer.registry import create_reducers"
    code = OwnCode()
    snippet = METRICS.format(
        name=key,
        metrics=json.dumps(_described(remaining, code)),
        scores_only=not any(map(_sees_metadata, _single(remaining))),
        imports="" if reducers is None else imports,
        reducers=None if reducers is None else f"create_reducers({json.dumps(reducers)})",
        named=_NAMED if reducers is None or len(reducers) == 1 else _NAMED_BY_REDUCER,
    )
    snippet = with_code(snippet, code.texts())
    return [*entries, {"type": "python", "key": f"{key}-metrics", "compute_metrics_snippet": snippet}]


_NAMED = 'values[name if part.name == NAME else part.name + "_" + name] = metric.value'
_NAMED_BY_REDUCER = """\
name = name if part.name == NAME else part.name + "_" + name
            values[name if part.reducer is None else name + "_" + part.reducer] = metric.value"""
"""Name of a metric value. With several reducers, the name includes the reducer."""
