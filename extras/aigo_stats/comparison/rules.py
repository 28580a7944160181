"""Rules for a result, decided with intervals: passed, failed, or undecided with this number of samples."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any, TypeVar

from aigo_bridge.codes import Code
from aigo_bridge.errors import UsageError
from aigo_stats.comparison.columns import ResultColumns
from aigo_stats.comparison.comparing import Comparison, MetricComparison
from aigo_stats.comparison.estimates import MetricEstimate, estimates, outcome_text
from aigo_stats.statistics.intervals import WILSON, Estimate, Interval, NoInterval, wilson
from aigo_stats.statistics.paired_differences import PairedDifference
from aigo_stats.statistics.quantiles import LEVEL, two_sided
from aigo_stats.statistics.ratios import Ratio, ratio_interval

_NUMBER = r"(?P<number>[-+]?\d+(?:\.\d+)?|[-+]?\.\d+)\s*(?P<percent>%?)"
_AT = r"(?:\s+at\s+(?P<level>\d+(?:\.\d+)?)\s*%)?"
_THRESHOLD = re.compile(rf"(?P<name>.+?)\s*(?P<operator>>=|<=|>|<)\s*{_NUMBER}{_AT}")
_REGRESSION = re.compile(rf"no regression(?:\s+of\s+(?P<name>.+?))?\s+beyond\s+{_NUMBER}{_AT}")
_COUNTS = {
    **{name: name for name in ("scored_samples", "unscored_samples", "failed_samples", "unfinished_samples")},
    **{name: name for name in ("scored_trials", "unscored_trials", "failed_trials", "unfinished_trials")},
    **{name: f"{name}_trials" for name in ("scored", "unscored", "failed", "unfinished")},
    "excluded_samples": "excluded_samples",
    "excluded": "excluded_samples",
}
"""Sample and trial counts by their name in rules. A name without a suffix counts trials if samples have
several.
"""

FORMS = (
    "`accuracy >= 0.8`, `accuracy >= 0.8 at 95%`, `failed <= 1%`, "
    "`no regression of accuracy beyond 0.02 at 95%`"
)


Number = TypeVar("Number", MetricEstimate, MetricComparison)


class Decision(Enum):
    """Outcome of a rule, as in JSON."""

    HELD = "held"
    NOT_HELD = "not held"
    UNDECIDED = "undecided"
    """Undecided, because the interval contains the limit. More samples are needed."""

    @property
    def word(self) -> str:
        """Display name of the outcome."""
        return {Decision.HELD: "passed", Decision.NOT_HELD: "failed"}.get(self, self.value)


@dataclass(frozen=True)
class CheckRule:
    """One rule."""

    text: str
    """Original text of the rule."""
    name: str | None
    """Metric, or a proportion of trials or samples such as `failed`, `failed_samples` and `excluded`; `None`
    for every metric.
    """
    operator: str
    """Operator: `>=`, `<=`, `>`, `<`, or `no regression`."""
    limit: float
    """Limit, or the positive margin for `no regression`."""
    level: float | None
    """Confidence level with which the rule must hold; `None` to compare the value itself."""
    is_whole: bool = False
    """Whether the limit is an integer. For samples and trials, it is then a count."""


@dataclass(frozen=True)
class RuleResult:
    """Outcome of a rule for one metric."""

    rule: CheckRule
    subject: str
    """Metric with its scorer."""
    decision: Decision
    reason: str
    samples_needed: int | None = None
    """Approximate number of samples for a decision if the metric stays the same; `None` if decided or
    unknown.
    """

    def to_json(self) -> dict[str, Any]:
        """Return a JSON-serializable dictionary."""
        return {
            "rule": self.rule.text,
            "number": self.subject,
            "decision": self.decision.value,
            "reason": self.reason,
            "samples_needed": self.samples_needed,
        }


def parse_rule(text: str) -> CheckRule:
    """Parse a rule.

    Raises:
        UsageError: the text does not have the syntax of a rule.
    """
    content = " ".join(text.split())
    match = _REGRESSION.fullmatch(content)
    if match is not None:
        level = _level(match, text) or LEVEL
        return CheckRule(text, match["name"], "no regression", abs(_number(match)), level)
    if content.startswith("no regression"):
        raise UsageError(
            f"the rule {text!r} does not have a margin, so it can never be decided; expected for "
            "example `no regression beyond 0.02`",
            code=Code.WRONG_RULE,
        )
    match = _THRESHOLD.fullmatch(content)
    if match is None:
        raise UsageError(f"cannot read the rule {text!r}; expected one like {FORMS}", code=Code.WRONG_RULE)
    is_whole = match["number"].isdecimal() and not match["percent"]
    return CheckRule(text, match["name"], match["operator"], _number(match), _level(match, text), is_whole)


def _number(match: re.Match[str]) -> float:
    return float(match["number"]) / (100 if match["percent"] else 1)


def _level(match: re.Match[str], text: str) -> float | None:
    if match["level"] is None:
        return None
    level = float(match["level"]) / 100
    if not 0.5 <= level < 1:
        raise UsageError(
            f"the rule {text!r} asks for {match['level']} % confidence, expected 50 to 99.9",
            code=Code.WRONG_RULE,
        )
    return level


def check_rule(
    rule: CheckRule, columns: ResultColumns, comparison: Comparison | None, cluster: str | None = None
) -> list[RuleResult]:
    """Return the outcomes of a rule for a result.

    Args:
        rule: the rule.
        columns: the result.
        comparison: comparison with the baseline at the rule's level; `None` without a baseline.
        cluster: grouping column, as in `estimates`.

    Raises:
        UsageError: the result does not contain the metric, or the rule needs a baseline.
    """
    if rule.operator == "no regression":
        if comparison is None:
            raise UsageError(
                f"the rule {rule.text!r} needs an earlier result; pass it with --baseline",
                code=Code.WRONG_RULE,
            )
        if not comparison.metrics:
            reason = f"neither result has a metric: {outcome_text(columns)}"
            return [RuleResult(rule, rule.name or "all numbers", Decision.UNDECIDED, reason)]
        results = f"both {comparison.base.label} and {comparison.new.label}"
        return [_regression(rule, metric, comparison) for metric in _named(rule, comparison.metrics, results)]
    name = (rule.name or "").casefold()
    if name in _COUNTS and not any(_is(rule.name, stored) for stored in _stored(columns)):
        return [_of_counts(rule, _COUNTS[name], columns)]
    metrics = estimates(columns, cluster=cluster, level=rule.level or LEVEL)
    if not metrics:
        reason = f"the result does not contain a metric: {outcome_text(columns)}"
        return [RuleResult(rule, str(rule.name), Decision.UNDECIDED, reason)]
    return [_threshold(rule, metric) for metric in _named(rule, metrics, columns.label)]


def _stored(columns: ResultColumns) -> list[str]:
    evidence = columns.frame.evidence
    return [name for metric in (evidence and evidence.metrics) or () for name in metric.values]


def _is(name: str | None, shown: str) -> bool:
    return name is not None and name.casefold() == shown.casefold()


def _named(rule: CheckRule, numbers: Sequence[Number], result: str) -> list[Number]:
    """Return the metrics that a rule names by label, name or `scorer.name`. Case only matters between labels.

    Args:
        rule: the rule.
        numbers: metrics of the result or of a comparison.
        result: name of the result in error messages.

    Raises:
        UsageError: the result does not contain this metric, or contains several with this name.
    """
    if rule.name is None:
        return list(numbers)
    exact = [number for number in numbers if number.label == rule.name]
    matches = exact or [number for number in numbers if _is(rule.name, number.label)]
    matches = matches or [
        number
        for number in numbers
        if _is(rule.name, number.name) or _is(rule.name, f"{number.scorer}.{number.name}")
    ]
    if len(matches) == 1:
        return matches
    if matches:
        names = ", ".join(repr(number.label) for number in matches)
        raise UsageError(
            f"the rule {rule.text!r} reads {rule.name!r}, but {result} has {len(matches)} metrics with"
            f" this name; expected one of: {names}",
            code=Code.WRONG_RULE,
        )
    names = ", ".join(dict.fromkeys(number.label for number in numbers)) or "none"
    raise UsageError(
        f"the rule {rule.text!r} reads {rule.name!r}, which is not a metric of {result}; expected one of:"
        f" {names}",
        code=Code.WRONG_RULE,
    )


def _of_counts(rule: CheckRule, name: str, columns: ResultColumns) -> RuleResult:
    """Check a count or a proportion of all samples, or of all trials if samples have several trials."""
    counts, subject = columns.counts, str(rule.name)
    state, _, unit = name.rpartition("_")
    over_trials = unit == "trials" and counts.has_trials
    total = counts.trials if over_trials else counts.samples
    if not total:
        return RuleResult(rule, subject, Decision.UNDECIDED, "the result does not contain samples")
    count: int = getattr(counts, f"{state}_trials" if over_trials else state)
    shown = f"{count} of {total} {'trials' if over_trials else 'samples'} ({100 * count / total:.4g} %)"
    if rule.is_whole:
        rule = replace(rule, limit=rule.limit / total)
    if rule.level is None:
        decision = Decision.HELD if _holds(rule, count / total) else Decision.NOT_HELD
        return RuleResult(rule, subject, decision, shown)
    estimate = _interval_of_count(count, total, rule.level, columns, over_trials=over_trials, state=state)
    verdict = _decided(rule, subject, count / total, estimate, total)
    return replace(verdict, reason=f"{shown}; {verdict.reason}")


def _interval_of_count(
    count: int, total: int, level: float, columns: ResultColumns, *, over_trials: bool, state: str
) -> Estimate:
    """Return the interval of a proportion. Trials of one sample form a group."""
    if not over_trials:
        return wilson(count, total, level)
    number = {"failed": columns.failed_trials, "unfinished": columns.unfinished_trials}.get(state)
    if number is None or len(columns) == 0:
        return NoInterval("it is only known for failed and unfinished trials")
    return ratio_interval(Ratio(number.astype(float), columns.trials.astype(float)), level=level)


def _threshold(rule: CheckRule, metric: MetricEstimate) -> RuleResult:
    scored = None if metric.denominator is None else metric.denominator.scored
    return _decided(rule, metric.label, metric.value, metric.estimate, scored)


def _decided(
    rule: CheckRule, subject: str, value: float, estimate: Estimate, samples: int | None
) -> RuleResult:
    if rule.level is None:
        decision = Decision.HELD if _holds(rule, value) else Decision.NOT_HELD
        return RuleResult(rule, subject, decision, f"it is {value:.6g}")
    if isinstance(estimate, NoInterval):
        return RuleResult(
            rule, subject, Decision.UNDECIDED, f"it is {value:.6g}, no interval: {estimate.reason}"
        )
    reason = f"it is {value:.6g}, {_percent(rule)} interval {estimate.low:.6g} to {estimate.high:.6g}"
    ends = _holds(rule, estimate.low), _holds(rule, estimate.high)
    if all(ends):
        return RuleResult(rule, subject, Decision.HELD, reason)
    if not any(ends):
        return RuleResult(rule, subject, Decision.NOT_HELD, reason)
    return RuleResult(
        rule, subject, Decision.UNDECIDED, reason, _needed(rule, value, rule.limit, estimate, samples)
    )


def _percent(rule: CheckRule) -> str:
    return f"{(rule.level or LEVEL) * 100:.4g} %"


def _holds(rule: CheckRule, value: float) -> bool:
    comparisons: Mapping[str, bool] = {
        ">=": value >= rule.limit,
        "<=": value <= rule.limit,
        ">": value > rule.limit,
        "<": value < rule.limit,
    }
    return comparisons[rule.operator]


def _needed(
    rule: CheckRule, value: float, limit: float, estimate: Interval, samples: int | None
) -> int | None:
    """Return the number of samples for which the interval would end at the limit.

    The width of an interval is inversely proportional to the square root of the number of samples. Wilson's
    interval is computed from the standard error at the limit. For other intervals, the larger of two
    estimates is used.
    """
    distance, z = abs(value - limit), two_sided(rule.level or LEVEL)
    if samples is None or not distance:
        return None
    if estimate.method == WILSON and 0 < limit < 1:
        return max(samples + 1, math.ceil(z**2 * limit * (1 - limit) / distance**2))
    reach = max((estimate.high - estimate.low) / 2, z * estimate.standard_error)
    return max(samples + 1, math.ceil(samples * (reach / distance) ** 2))


def _regression(rule: CheckRule, metric: MetricComparison, comparison: Comparison) -> RuleResult:
    """Check that a metric decreased by at most the margin (non-inferiority). Higher values are assumed to be
    better.
    """
    subject, difference = metric.label, metric.difference
    sides = zip((comparison.base, comparison.new), metric.values, strict=True)
    if (lacking := next((side.label for side, value in sides if value is None), None)) is not None:
        return RuleResult(rule, subject, Decision.UNDECIDED, f"{lacking} does not have this metric")
    if not isinstance(difference, PairedDifference):
        return RuleResult(rule, subject, Decision.UNDECIDED, f"not compared: {difference.reason}")
    if isinstance(difference.estimate, NoInterval):
        if difference.p_value == 1.0 and difference.value == 0:
            return RuleResult(rule, subject, Decision.HELD, "no sample has another score")
        return RuleResult(rule, subject, Decision.UNDECIDED, f"no interval: {difference.estimate.reason}")
    estimate = difference.estimate
    ends = f"{estimate.low:+.6g} to {estimate.high:+.6g}"
    reason = f"it moved by {difference.value:+.6g}, {_percent(rule)} interval {ends}"
    if estimate.low >= -rule.limit:
        return RuleResult(rule, subject, Decision.HELD, reason)
    if estimate.high < -rule.limit:
        return RuleResult(rule, subject, Decision.NOT_HELD, reason)
    needed = _needed(rule, difference.value, -rule.limit, estimate, difference.num_pairs)
    return RuleResult(rule, subject, Decision.UNDECIDED, reason, needed)
