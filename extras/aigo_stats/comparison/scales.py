"""Declared values of a score, from its scorer type, its value type, or another tool's record.

Observed values never declare a scale. A count that happens to be 0 or 1 in every sample is not a proportion.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from aigo_bridge.spec.scorer import default_keys
from aigo_bridge.spec.scorers import SCORERS
from aigo_stats.comparison.columns import GRADE, ResultColumns
from aigo_stats.statistics.ratios import FRACTION, RIGHT_OR_WRONG, UNDECLARED, Scale

_OF_RECORDS = {
    **dict.fromkeys(("exact_match", "accuracy"), RIGHT_OR_WRONG),
    **dict.fromkeys(("f1", "rouge_l", "bleu_4"), FRACTION),
}
"""Scores of task records (JSONL), which use built-in scorers."""

_VERDICTS = frozenset(
    {
        *("acc", "acc_norm", "acc_bytes", "acc_mutual_info", "loglikelihood_acc", "mc1"),
        *("em", "qem", "pem", "pqem", "exact_match", "quasi_exact_match", "prefix_exact_match"),
        *("prefix_quasi_exact_match", "extractive_match", "expr_gold_metric", "latex_gold_metric"),
        *("prompt_level_strict_acc", "prompt_level_loose_acc", "exact_match_mc", "accuracy"),
    }
)
"""Metrics of lighteval and lm-evaluation-harness whose value for a document is 0 or 1."""


def score_scale(columns: ResultColumns, scorer: str, field: str) -> Scale:
    """Return the declared values of a score.

    Args:
        columns: the result.
        scorer: key of the scorer.
        field: name of the score used by metrics. For several trials, the name of the aggregated score.
    """
    definition = _definition(columns, scorer)
    name, aggregated = _score_of_trials(columns, field)
    column = columns.scores.get((scorer, name))
    if column is not None and (column.types == {bool} or (columns.graded and column.types == {GRADE})):
        return RIGHT_OR_WRONG
    scale = _of_scorer(definition, name) or _of_tool(columns, definition, name)
    if aggregated and scale.right_or_wrong:
        return FRACTION
    return scale


def _definition(columns: ResultColumns, scorer: str) -> Mapping[str, Any]:
    scorers = [entry for entry in columns.definition.get("scorers") or () if isinstance(entry, dict)]
    keys = default_keys([(entry.get("key"), str(entry.get("type"))) for entry in scorers])
    return next((entry for entry, key in zip(scorers, keys, strict=True) if key == scorer), {})


def _score_of_trials(columns: ResultColumns, field: str) -> tuple[str, bool]:
    """Return the trial score from which a score is aggregated, and whether an aggregator is used."""
    trials = columns.definition.get("trials")
    written = (trials.get("score_aggregators") if isinstance(trials, dict) else None) or ()
    if not written:
        return field, False
    from aigo_bridge.metrics.trials import aggregated_name
    from aigo_bridge.spec.trials import ScoreOfTrials

    for entry in written:
        aggregator = ScoreOfTrials.model_validate(entry)
        if aggregated_name(aggregator) == field:
            return aggregator.score_name, True
    return field, False


def _of_scorer(definition: Mapping[str, Any], name: str) -> Scale | None:
    """Return the scale that a scorer type of AI GO declares; `None` if unknown."""
    spec = SCORERS.get(str(definition.get("type")))
    if spec is None:
        return None
    if spec.snippet is not None:
        from aigo_bridge.jsonl_spec.conversion import scorer_snippet

        if definition.get(spec.snippet) == scorer_snippet():
            return _OF_RECORDS.get(name)
    if name in spec.right_or_wrong:
        return RIGHT_OR_WRONG
    return Scale(spec.ranges[name]) if name in spec.ranges else None


def _of_tool(columns: ResultColumns, definition: Mapping[str, Any], name: str) -> Scale:
    config = columns.frame.specification.config
    if "lighteval" in config or "lm_eval" in config:
        metric = str(definition.get("type") or name).partition(",")[0].partition(":")[0]
        return RIGHT_OR_WRONG if metric in _VERDICTS else UNDECLARED
    options = definition.get("options") or {}
    if options.get("score_type") == "binary":
        return RIGHT_OR_WRONG
    ends = options.get("scale")
    return (
        Scale((float(ends[0]), float(ends[1]))) if isinstance(ends, list) and len(ends) == 2 else UNDECLARED
    )
