"""Scorers, metrics and trials of a task as plain Inspect code."""

from __future__ import annotations

from textwrap import dedent, indent
from typing import Any

from aigo_bridge.exporting.answer_templates import answer_methods
from aigo_bridge.exporting.comparisons import SCORES, has_own_value, metrics_of, value_name
from aigo_bridge.exporting.python_code import call, docstring, one_line, text_literal, with_text
from aigo_bridge.metrics.trials import aggregated_name
from aigo_bridge.plan import TaskPlan


def _block(text: str) -> str:
    return dedent(text).strip("\n")


def scorer_code(
    key: str, name: str, metrics_name: str, scorer: Any, *, is_first: bool, asks: bool
) -> list[str]:
    """The functions of one scorer: its metrics, and the scorer itself.

    Args:
        key: its key in the task.
        name: of its function.
        metrics_name: of the function of its metrics.
        scorer: as specified, config bound.
        is_first: whether the sample's target is its ground truth.
        asks: whether a model is asked, so that a limit can end the sample before there is an answer.
    """
    has_value = has_own_value(scorer)
    is_choice = scorer.type == "string_equals_mcqa"
    lines = []
    if asks:
        lines += ['        if not state.store.get("solved"):', "            return unsolved()"]
    if has_value or is_choice or not is_first:
        lines += with_text('expected = state.metadata["expected"][{}]', key, indent=8)
    lines.append("        truth = target.text" if is_first else '        truth = expected["ground_truth"]')
    answer = 'expected["value"]' if has_value else "state.output.choices[0].message.text"
    lines.append(f"        answer = {answer}")
    if not has_value:
        methods = answer_methods(getattr(scorer, "value", None)) or ()
        lines += [f"        answer = answer.{method}" for method in methods]
    doc, body = _SCORERS[scorer.type]
    lines += indent(body, "        ").splitlines()
    naming = [] if name == key else [f"name={text_literal(key)}"]
    text = "\n".join(
        [
            *call("@scorer(", [f"metrics=[{metrics_name}()]", *naming]),
            f"def {name}() -> Scorer:",
            *docstring(doc, indent=4),
            "",
            "    async def score(state: TaskState, target: Target) -> Score:",
            *lines,
            "",
            "    return score",
        ]
    )
    return [_metrics(key, metrics_name, scorer), text]


_EQUALS = """return Score(
    value={"is_correct": 1.0 if answer == truth else 0.0},
    answer=answer,
    metadata={"answer_gt": truth, "answer_pred": answer},
)"""

_MCQA = """choices = expected["choices"]
predicted = answer[:1]
metadata = {
    "ground_truth_choices": choices,
    "ground_truth_correct_choice": truth,
    "predicted_choice": predicted,
    "completion_validity": "valid" if predicted in choices else "invalid",
}
value = {"is_correct": 1.0 if predicted == truth else 0.0}
return Score(value=value, answer=answer, metadata=metadata)"""

_BLEU = """bleu = BLEU(
    effective_order=True,
    tokenize="13a",
    smooth_method="exp",
    max_ngram_order=4,
)
percent = bleu.sentence_score(answer, [truth]).score
return Score(
    value={"bleu_score": min(percent / 100, 1.0)},
    answer=answer,
    metadata={
        "answer_gt": truth,
        "answer_pred": answer,
        "signature": str(bleu.get_signature()),
    },
)"""


_SCORERS = {
    "string_equals": ("1.0 if the answer equals the truth, character for character.", _EQUALS),
    "string_equals_mcqa": ("1.0 if the answer's first character is the right choice's letter.", _MCQA),
    "bleu": ("Sentence BLEU of the answer, from 0 to 1.", _BLEU),
}
"""Type of the scorer → what its function says and does."""

NUMBERS = _block(
    '''
    def numbers_of(scores: list[SampleScore], name: str) -> list[Any]:
        """The scores of that name; samples that failed have none and are in no metric."""
        return [each.score.as_dict()[name] for each in scores]
    '''
)

INCLUDED_NUMBERS = _block(
    '''
    def numbers_of(scores: list[SampleScore], name: str) -> list[Any]:
        """The scores of that name, without the samples that the task's rules leave out."""
        included = [each for each in scores if not each.sample_metadata["excluded"]]
        return [each.score.as_dict()[name] for each in included]
    '''
)

UNSOLVED = _block(
    '''
    def unsolved() -> Score:
        """A limit has ended the sample: there is nothing to score, and it is in no metric."""
        return Score(value=math.nan, reason="the solver did not finish")
    '''
)


def _metrics(key: str, name: str, scorer: Any) -> str:
    metrics = metrics_of(scorer)
    lines = [
        *call("@metric(", [f"name={text_literal(key)}"]),
        f"def {name}() -> Metric:",
        *docstring(f"Metrics of {one_line(key)[:60]}.", indent=4),
        "",
        "    def compute(scores: list[SampleScore]) -> Value:",
    ]
    if metrics:
        lines.append("        found: dict[str, float] = {}")
        lines += [line for metric in metrics for line in _metric(metric)]
        lines.append("        return found")
    else:
        lines.append("        return {}")
    return "\n".join([*lines, "", "    return compute"])


_FORMULAS = {
    "mean": "float(statistics.mean(numbers))",
    "min": "min(numbers)",
    "max": "max(numbers)",
    "std_dev": "deviation",
}


def _metric(metric: Any) -> list[str]:
    arguments = ["scores", text_literal(metric.field)]
    if metric.type == "frequency":
        return [
            *call("numbers = numbers_of(", arguments, indent=8),
            "        for text, count in Counter(map(str, numbers)).items():",
            *with_text("found[{} + text] = count / len(numbers)", f"{metric.field}_", indent=12),
        ]
    lines = call("if numbers := numbers_of(", arguments, "):", indent=8)
    if metric.type == "std_dev":
        lines.append("            deviation = statistics.stdev(numbers) if len(numbers) > 1 else 0.0")
    return [
        *lines,
        *with_text(f"found[{{}}] = {_FORMULAS[metric.type]}", value_name(metric) or "", indent=12),
    ]


def trials_code(plan: TaskPlan) -> str:
    """The reducer of several trials."""
    own = plan.benchmark.trials
    entries = (own.score_aggregators or ()) if own is not None else ()
    lines = [
        "@score_reducer",
        "def trials() -> ScoreReducer:",
        '    """The scores of a sample over its trials; those that failed are left out."""',
        "",
        "    def reduce(scores: list[Score]) -> Score:",
        "        scored = [each.as_dict() for each in scores if isinstance(each.value, dict)]",
        "        if not scored:",
        "            return scores[0]",
        "        found: dict[str, Any] = {}",
        "        for name in scored[0]:",
        "            numbers: list[Any] = [each[name] for each in scored]",
        "            found[name] = float(statistics.mean(numbers))",
    ]
    given = {SCORES[scorer.type] for scorer in plan.benchmark.scorers}
    for score_name in dict.fromkeys(entry.score_name for entry in entries if entry.score_name in given):
        of_score = [entry for entry in entries if entry.score_name == score_name]
        lines += [f"            if name == {text_literal(score_name)}:"]
        if any(entry.aggregator.function in ("pass@k", "pass^k") for entry in of_score):
            lines += ["                share = sum(numbers) / len(numbers)"]
        for entry in of_score:
            lines += with_text(f"found[{{}}] = {_aggregate(entry)}", aggregated_name(entry), indent=16)
    return "\n".join([*lines, "        return Score(value=found)", "", "    return reduce"])


def _aggregate(entry: Any) -> str:
    match entry.aggregator.function:
        case "mean":
            return "float(statistics.mean(numbers))"
        case "pass@k":
            return f"1.0 - (1.0 - share) ** {entry.aggregator.k}"
        case "pass^k":
            return f"share**{entry.aggregator.k}"
        case function:
            return f"{function}(numbers)"
