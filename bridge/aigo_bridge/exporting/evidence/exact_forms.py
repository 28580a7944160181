"""Forms of a task that only aigo-bridge takes, in the form of AI GO 3.17 that means the same."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

from aigo_bridge.dtypes import MetricData, TaskResultLog
from aigo_bridge.spec.base import mappings
from aigo_bridge.spec.scorer import SCORERS

Json = dict[str, Any]

_MEAN = "_mean"


def use_exact_forms(definition: Json, frame: TaskResultLog) -> None:
    """Replace forms that AI GO 3.17 refuses, if it has another one with the same meaning.

    * a list of `choices` or `function_calls` becomes JSON text;
    * one trial is the default;
    * a Python scorer without metrics gets the means that the result has of its scores.
    """
    trials = definition.get("trials")
    if isinstance(trials, dict) and trials.get("num_trials") == 1 and not trials.get("score_aggregators"):
        del definition["trials"]
    scorers = [scorer for _, scorer in mappings(definition.get("scorers"))]
    types = Counter(str(scorer.get("type")) for scorer in scorers)
    metrics = (frame.evidence.metrics if frame.evidence is not None else None) or []
    for scorer in scorers:
        for name in ("choices", "function_calls"):
            if isinstance(scorer.get(name), list):
                scorer[name] = json.dumps(scorer[name], ensure_ascii=False)
        kind = str(scorer.get("type"))
        spec = SCORERS.get(kind)
        if spec is None or spec.snippet is None or scorer.get("metrics") is not None:
            continue
        key = scorer.get("key") or (kind if types[kind] == 1 else None)
        means = [_mean_of(metric) for metric in metrics if metric.scorer_key == key]
        if key is not None and None not in means:
            scorer["metrics"] = means


def _mean_of(metric: MetricData) -> Json | None:
    """A usual metric as a task states it; `None`: it is another one."""
    if metric.metric_type != "mean" or len(metric.values) != 1:
        return None
    (name,) = metric.values
    if not name.endswith(_MEAN):
        return None
    return {"type": "mean", "key": metric.metric_key, "field": name.removesuffix(_MEAN), "name": name}
