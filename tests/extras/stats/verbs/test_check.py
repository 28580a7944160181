"""`aigo-bridge check`: rules, exit codes, JUnit and annotations."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import numpy as np
import pytest
from tests.extras.stats.comparison.logs import MEAN, log, sample
from tests.support.commands import Run

from aigo_bridge.errors import UsageError
from aigo_stats.comparison.rules import CheckRule, Decision, parse_rule
from aigo_stats.statistics.intervals import Interval
from aigo_stats.statistics.paired_differences import right_or_wrong


def result(path: Path, right: int, count: int = 200, failed: int = 0) -> Path:
    samples = [
        sample(number, None if number < failed else {"right": float(number - failed < right)})
        for number in range(count)
    ]
    return log(path, samples, [(MEAN, {"accuracy": right / (count - failed)})])


@pytest.mark.parametrize(
    ("rule", "code", "decision"),
    [
        ("accuracy >= 0.8", 0, "held"),
        ("accuracy > 85%", 0, "held"),
        ("judge.Accuracy >= 0.8 at 95%", 0, "held"),
        ("accuracy >= 0.95", 1, "not held"),
        ("accuracy >= 0.95 at 95%", 1, "not held"),
        ("accuracy >= 0.88 at 95 %", 4, "undecided"),
        ("failed <= 1%", 0, "held"),
        ("failed <= 1% at 95%", 4, "undecided"),
        ("excluded <= 0", 0, "held"),
    ],
)
def test_rules_on_one_result_decide_the_exit_code(
    aigo: Run, tmp_path: Path, rule: str, code: int, decision: str
) -> None:
    file = result(tmp_path / "a.tasklog.json", 180)

    done = aigo("check", file, "--rule", rule, "--json")

    assert done.code == code, done.err
    (verdict,) = done.json["verdicts"]
    assert verdict["decision"] == decision


@pytest.mark.parametrize(
    ("rule", "decision"),
    [
        ("failed <= 3", "held"),
        ("failed <= 2", "not held"),
        ("failed_samples < 3", "not held"),
        ("failed <= 1.5%", "held"),
        ("failed <= 0.01", "not held"),
        ("scored >= 197", "held"),
        ("failed <= 1", "not held"),
    ],
)
def test_integer_limit_is_a_count_and_other_limits_are_proportions(
    aigo: Run, tmp_path: Path, rule: str, decision: str
) -> None:
    file = result(tmp_path / "a.tasklog.json", 180, failed=3)

    (verdict,) = aigo("check", file, "--rule", rule, "--json").json["verdicts"]

    assert verdict["decision"] == decision


def test_undecided_rules_estimate_the_needed_samples(aigo: Run, tmp_path: Path) -> None:
    """0.9 of 200 samples has an interval of about 0.083. With 100 times the samples, a tenth of that width remains."""
    file = result(tmp_path / "a.tasklog.json", 180)

    done = aigo("check", file, "--rule", "accuracy >= 0.8959 at 95%")

    assert done.code == 4
    (needed,) = [int(word) for word in done.out.split() if word.isdigit() and int(word) > 1000]
    assert 18000 < needed < 23000


@pytest.mark.parametrize(
    ("right", "rule", "code"),
    [
        (180, "no regression beyond 0.02", 0),
        (150, "no regression beyond 0.02", 1),
        (150, "no regression beyond 30%", 0),
        (178, "no regression of accuracy beyond 0.02 at 95%", 4),
    ],
)
def test_no_regression_rule_compares_with_the_baseline(
    aigo: Run, tmp_path: Path, right: int, rule: str, code: int
) -> None:
    base = result(tmp_path / "base.tasklog.json", 180, 200)
    new = result(tmp_path / "new.tasklog.json", right, 200)

    done = aigo("check", new, "--baseline", base, "--rule", rule)

    assert done.code == code, done.out + done.err


def test_regression_rule_names_the_result_without_the_metric(aigo: Run, tmp_path: Path) -> None:
    base = log(tmp_path / "base.tasklog.json", [sample(number, {"right": 1.0}) for number in range(9)], [])
    new = result(tmp_path / "new.tasklog.json", 9, 9)

    done = aigo("check", new, "--baseline", base, "--rule", "no regression beyond 0.02")

    assert (done.code, done.out.split()[0]) == (4, "undecided"), done.err
    assert "base.tasklog.json does not have this metric" in done.out


def test_failed_rule_takes_precedence_over_an_undecided_one(aigo: Run, tmp_path: Path) -> None:
    file = result(tmp_path / "a.tasklog.json", 180)
    rules = tmp_path / "rules.yaml"
    rules.write_text("rules:\n  - accuracy >= 0.95\n  - accuracy >= 0.88 at 95%\n  - failed <= 1%\n")
    report = tmp_path / "junit.xml"

    done = aigo("check", file, "--rules", rules, "--junit", report, "--github")

    assert done.code == 1
    assert [line.split()[0] for line in done.out.splitlines()] == ["failed", "undecided", "passed"]
    suite = ET.parse(report).getroot()
    assert (suite.get("tests"), suite.get("failures"), suite.get("errors")) == ("3", "1", "1")
    assert [[part.tag for part in case] for case in suite] == [["failure"], ["error"], []]
    first, second = done.err.splitlines()
    assert first.startswith("::error title=failed%3A accuracy >= 0.95::")
    assert second.startswith("::warning title=undecided%3A accuracy >= 0.88 at 95%25::")


def test_names_that_differ_only_in_case_are_different_metrics(aigo: Run, tmp_path: Path) -> None:
    lowest = {"type": "min", "field": "right", "name": "Accuracy"}
    samples = [sample(1, {"right": 1.0}), sample(2, {"right": 0.0})]
    file = log(tmp_path / "a.tasklog.json", samples, [(MEAN, {"accuracy": 0.5}), (lowest, {"Accuracy": 0.0})])

    assert aigo("check", file, "--rule", "accuracy >= 0.4").code == 0
    assert aigo("check", file, "--rule", "Accuracy >= 0.4").code == 1
    assert "has 2 metrics with this name" in aigo("check", file, "--rule", "ACCURACY >= 0.4").err


def test_invalid_check_arguments_exit_with_2(aigo: Run, tmp_path: Path) -> None:
    file = result(tmp_path / "a.tasklog.json", 180)
    rules = tmp_path / "rules.yaml"
    rules.write_text("rules:\n  - accuracy should be good\n  - accuracy >= 0.5\n  - more failed\n")
    for arguments, message in (
        ([], "no rule given"),
        (["--rule", "accuracy is fine"], "cannot read the rule 'accuracy is fine'; expected one like"),
        (
            ["--rule", "f1 >= 0.5"],
            "a.tasklog.json; expected one of: accuracy",
        ),
        (["--rule", "no regression"], "does not have a margin"),
        (["--rule", "no regression beyond 1%"], "pass it with --baseline"),
        (["--rules", rules], "rules.yaml:2"),
        (["--rules", rules], "rules.yaml:4"),
    ):
        done = aigo("check", file, *arguments)
        assert (done.code, message in done.err) == (2, True), done.err


def test_rules_are_parsed() -> None:
    assert parse_rule("no regression of a b beyond 2% at 90%") == CheckRule(
        "no regression of a b beyond 2% at 90%", "a b", "no regression", 0.02, 0.9
    )
    assert parse_rule("failed <= 1%") == CheckRule("failed <= 1%", "failed", "<=", 0.01, None)
    with pytest.raises(UsageError, match="asks for 20 % confidence"):
        parse_rule("a >= 1 at 20%")


def test_false_alarms_of_no_regression_rules_are_rare() -> None:
    """If a model is worse by exactly the margin, either decision is made by chance in at most 5.5 % of the runs."""
    random = np.random.default_rng(5)
    held = broken = 0
    for _ in range(2000):
        base = (random.random(300) < 0.85).astype(float)
        changed = random.random(300)
        new = np.where((base == 1) & (changed < 0.02 / 0.85 + 0.04), 0.0, base)
        new = np.where((base == 0) & (changed < 0.04 * 0.85 / 0.15), 1.0, new)
        estimate = right_or_wrong(base, new).estimate
        assert isinstance(estimate, Interval)
        held += estimate.low >= -0.02
        broken += estimate.high < -0.02
    assert held / 2000 <= 0.055
    assert broken / 2000 <= 0.055
    assert Decision.UNDECIDED.value == "undecided"


def test_rule_on_a_result_with_only_failed_samples_is_undecided(aigo: Run, tmp_path: Path) -> None:
    samples = [sample(number, None) for number in range(20)]
    file = log(tmp_path / "a.tasklog.json", samples, [(MEAN, {})])
    junit = tmp_path / "new" / "junit.xml"

    done = aigo("check", file, "--rule", "accuracy >= 0.8 at 95%", "--junit", junit)

    assert done.code == 4
    assert "the result does not contain a metric: of 20 samples 20 failed" in done.out
    assert "the result does not contain a metric" in junit.read_text("utf-8")
    assert aigo("check", file, "--rule", "failed <= 1%").code == 1
    shown = aigo("stats", file)
    assert "mean: no value: of 20 samples 20 failed, 0 are excluded by a rule" in shown.out
    (summary,) = aigo("stats", file, "--json").json
    assert [number["metric"] for number in summary["without_value"]] == ["mean"]


@pytest.mark.parametrize(("right", "count", "limit"), [(12, 20, 0.5), (19, 20, 0.8), (2, 20, 0.2)])
def test_suggested_sample_size_decides_the_rule(
    aigo: Run, tmp_path: Path, right: int, count: int, limit: float
) -> None:
    """With 1.2 times the suggested samples, the rule is decided. With half of them, it is undecided."""

    def decision(factor: float) -> dict[str, Any]:
        number = round(count * factor)
        samples = [sample(each, {"right": float(each < round(right * factor))}) for each in range(number)]
        share = round(right * factor) / number
        file = log(tmp_path / "a.tasklog.json", samples, [(MEAN, {"accuracy": share})])
        (verdict,) = aigo("check", file, "--rule", f"accuracy >= {limit} at 95%", "--json").json["verdicts"]
        assert isinstance(verdict, dict)
        return verdict

    needed = decision(1)["samples_needed"]
    assert decision(1.2 * needed / count)["decision"] != "undecided"
    assert decision(max(1, 0.5 * needed / count))["decision"] == "undecided"
