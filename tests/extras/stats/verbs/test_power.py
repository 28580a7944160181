"""`aigo-bridge power` with assumed proportions, one result or two results."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.extras.stats.comparison.logs import MEAN, log, repeated, sample
from tests.support.commands import Run


def result(path: Path, trials: list[list[float]]) -> Path:
    mean = sum(sum(each) / len(each) for each in trials) / len(trials)
    samples = [
        repeated(number, each) if len(each) > 1 else sample(number, {"right": each[0]})
        for number, each in enumerate(trials)
    ]
    return log(path, samples, [(MEAN, {"accuracy": mean})])


def test_power_plans_from_assumed_proportions(aigo: Run) -> None:
    """Hand computation from variance 0.16 + 0.1411, 2.8016² and 0.03² results in 2,626 samples. The exact test needs 68 more."""
    (plan,) = aigo("power", "--rates", "0.80,0.83", "-d", "0.03", "--samples", "1000", "--json").json

    (row,) = plan["plan"]
    assert row["samples_needed"] == 2694
    assert row["smallest_difference"] == pytest.approx(2.8015852 * (0.3011 / 1000) ** 0.5, rel=0.02)
    assert "2,694" in aigo("power", "--rates", "0.80,0.83", "-d", "0.03").out


def test_power_plans_from_one_result_with_trials(aigo: Run, tmp_path: Path) -> None:
    file = result(tmp_path / "a.tasklog.json", [[1.0, 1.0], [0.0, 1.0], [1.0, 0.0], [0.0, 0.0]] * 10)

    (plan,) = aigo("power", file, "--json").json

    assert plan["variance_between_trials"] == pytest.approx(2 * 0.25)
    assert plan["variance_between_samples"] == pytest.approx(2 * (0.125 * 40 / 39 - 0.25 / 2))
    needed = {row["trials"]: row["samples_needed"] for row in plan["plan"]}
    assert needed[2] / needed[5] == pytest.approx((0.0064103 + 0.25) / (0.0064103 + 0.1), rel=1e-3)
    assert needed[1] / needed[5] == pytest.approx((0.0064103 + 0.5) / (0.0064103 + 0.1), rel=0.02)


def test_power_plans_from_two_results(aigo: Run, tmp_path: Path) -> None:
    base = result(tmp_path / "a.tasklog.json", [[1.0], [0.0], [1.0], [0.0]] * 10)
    new = result(tmp_path / "b.tasklog.json", [[1.0], [1.0], [1.0], [0.0]] * 10)

    (plan,) = aigo("power", base, new, "--json").json

    assert plan["variance_between_samples"] == pytest.approx(0.25 * 0.75)
    assert plan["samples"] == 40
    assert "use results with several trials" in aigo("power", base, new).out


def test_result_without_spread_has_no_plan_with_a_reason(aigo: Run, tmp_path: Path) -> None:
    """If no sample is wrong, a plan would need only one sample for any difference."""
    file = result(tmp_path / "a.tasklog.json", [[1.0]] * 20)

    for arguments, reason in (
        ([file], "all samples have the same score, so their spread is unknown"),
        ([file, file], "the difference is the same in every pair, so its spread is unknown"),
    ):
        (plan,) = aigo("power", *arguments, "--json").json
        assert (plan["plan"], plan["reason"]) == ([], reason)
        assert f"no plan: {reason}" in aigo("power", *arguments).out


def test_invalid_power_arguments_exit_with_2(aigo: Run, tmp_path: Path) -> None:
    file = result(tmp_path / "a.tasklog.json", [[1.0], [0.0]])
    for arguments, message in (
        ([], "expected either past results or --rates"),
        ([file, "--rates", "0.1,0.2"], "expected either past results or --rates"),
        (["--rates", "0.1"], "expected two shares"),
        (["--rates", "1.1,0.2"], "between 0 and 1"),
        (["--rates", "0,1"], "the same in every sample"),
        (["--rates", "0.9,0.1", "--correlation", "0.5"], "found 0.5, expected -1 to 0.111"),
        ([file, file, file], "found 3 results"),
    ):
        done = aigo("power", *arguments)
        assert (done.code, message in done.err) == (2, True), done.err


@pytest.mark.parametrize("difference", ["5", "1.5"])
def test_difference_of_proportions_outside_0_to_1_is_rejected(
    aigo: Run, tmp_path: Path, difference: str
) -> None:
    file = result(tmp_path / "a.tasklog.json", [[1.0], [0.0]] * 20)

    assumed = aigo("power", "--rates", "0.8,0.9", "-d", difference)
    from_result = aigo("power", file, "-d", difference)

    assert (assumed.code, from_result.code) == (2, 2)
    expected = "is a proportion; expected a difference between 0 and 1"
    assert f"--difference: found {difference}, but assumed shares {expected}" in assumed.err
    assert f"--difference: found {difference}, but accuracy {expected}" in from_result.err


def test_difference_of_counts_may_exceed_one(aigo: Run, tmp_path: Path) -> None:
    samples = [sample(number, {"words": float(number)}) for number in range(20)]
    metric = {"type": "mean", "field": "words", "name": "words"}
    file = log(tmp_path / "a.tasklog.json", samples, [(metric, {"words": 9.5})])

    assert aigo("power", file, "-d", "5").code == 0
