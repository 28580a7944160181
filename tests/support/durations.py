"""CPU seconds of each test, child processes included, compared with the budgets of `tests/durations.toml`.

`make test` prints the sum and a warning if it is over the budget. `make durations` fails for it, and for a single test over its budget that
has no reason there. A timed assertion does not decide a submission: CPU seconds differ by a fifth between machines.
"""

from __future__ import annotations

import json
import re
import resource
import sys
import tomllib
from collections import defaultdict
from collections.abc import Collection, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

TESTS = Path(__file__).resolve().parents[1]
BUDGETS = TESTS / "durations.toml"
REPORT = TESTS.parent / "out" / "durations.json"
SHOWN = 25


@dataclass(frozen=True)
class Budgets:
    """Maximum CPU seconds."""

    suite: float
    """All tests of a submission together."""
    test: float
    unit: float
    """One that `make unit` runs."""
    reasons: Mapping[str, str]
    """Test without its parameters → why it may take longer."""


def budgets(path: Path = BUDGETS) -> Budgets:
    """Return the committed budgets."""
    table = tomllib.loads(path.read_text("utf-8"))
    return Budgets(table["suite"], table["test"], table["unit"], table["reasons"])


@dataclass(eq=False)
class Durations:
    """Pytest plugin: workers measure, and the collecting process compares with the budgets."""

    limits: Budgets = field(default_factory=budgets)
    each: bool = True
    """Whether the budgets of single tests are checked, and a cost over a budget is a failure."""
    seconds: dict[str, float] = field(default_factory=dict)
    units: set[str] = field(default_factory=set)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> Generator[None]:
        item.user_properties.append(("unit", is_unit(item)))
        yield from _measured(item)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Generator[None]:
        yield from _measured(item)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_teardown(self, item: pytest.Item) -> Generator[None]:
        yield from _measured(item)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when != "teardown":
            return
        costs = [value for name, value in report.user_properties if name == "cpu"]
        self.seconds[report.nodeid] = sum(float(str(cost)) for cost in costs)
        if ("unit", True) in report.user_properties:
            self.units.add(report.nodeid)

    def over_budget(self) -> Iterator[str]:
        """Yield a line for the suite and for each test over its budget."""
        if (total := sum(self.seconds.values())) > self.limits.suite:
            yield f"all tests: {total:.0f} CPU seconds, expected at most {self.limits.suite:g}"
        if not self.each:
            return
        for test, seconds in sorted(self.seconds.items(), key=lambda pair: -pair[1]):
            budget = self.limits.unit if test in self.units else self.limits.test
            if seconds > budget and without_parameters(test) not in self.limits.reasons:
                yield f"{test}: {seconds:.1f} CPU seconds, expected at most {budget:g}"

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        if self.each and not hasattr(session.config, "workerinput") and any(self.over_budget()):
            session.exitstatus = session.exitstatus or pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        REPORT.parent.mkdir(exist_ok=True)
        REPORT.write_text(json.dumps({k: round(v, 2) for k, v in sorted(self.seconds.items())}, indent=1))
        folders: dict[str, float] = defaultdict(float)
        for test, seconds in self.seconds.items():
            folders[str(Path(test.partition("::")[0]).parent)] += seconds
        terminalreporter.section(f"{sum(folders.values()):.0f} CPU seconds")
        for costs in (folders, self.seconds) if self.each else ():
            for name, seconds in sorted(costs.items(), key=lambda pair: -pair[1])[:SHOWN]:
                terminalreporter.line(f"{seconds:8.1f}  {name}")
            terminalreporter.line("")
        if lines := list(self.over_budget()):
            terminalreporter.section("over the budget", red=True)
            for line in lines:
                terminalreporter.line(line)
            terminalreporter.line(
                f"make tests faster, mark one as nightly, or give a reason for one in {BUDGETS.name}"
            )


def without_parameters(test: str) -> str:
    """Return a test name without its parameters and process group."""
    return re.split(r"[\[@]", test, maxsplit=1)[0]


NIGHTLY: Mapping[str, Sequence[str]] = tomllib.loads(BUDGETS.read_text("utf-8"))["nightly"]
"""Test with or without its parameters, or file → the tests of a submission that cover its promise. A test with the parameters `[*]` is
nightly with all parameters that are not among these tests.
"""


def is_nightly(test: str) -> bool:
    """Return whether only `make nightly` runs a test."""
    # A group follows the parameters, which can contain an `@` of their own.
    test = test[: test.rindex("]") + 1] if "[" in test else test.partition("@")[0]
    function = without_parameters(test)
    if test != function and test not in NIGHTLY.get(f"{function}[*]", [test]):
        return True
    return not NIGHTLY.keys().isdisjoint({test.partition("::")[0], function, test})


def missing_parameters(tests: Collection[str]) -> list[str]:
    """Return tests with parameters that `[*]` keeps in a submission and that are not among the collected ones of their function."""
    collected = {without_parameters(test) for test in tests}
    kept = [
        test
        for name, covering in NIGHTLY.items()
        if name.endswith("[*]") and without_parameters(name) in collected
        for test in covering
        if without_parameters(test) == without_parameters(name)
    ]
    return [test for test in kept if test not in tests]


def is_unit(item: pytest.Item) -> bool:
    """Return whether `make unit` runs a test."""
    marks = {mark.name for mark in item.iter_markers()}
    return (TESTS / "bridge") in item.path.parents and not marks & {"engine", "slow", "nightly"}


def _measured(item: pytest.Item) -> Generator[None]:
    start = _cpu()
    try:
        return (yield)
    finally:
        item.user_properties.append(("cpu", _cpu() - start))


def _cpu() -> float:
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    # Servers of commands run on: what they and their commands took is no child's yet.
    forked = sys.modules.get("tests.support.forked")
    return sum(usage.ru_utime + usage.ru_stime for usage in used) + (forked.seconds() if forked else 0)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--each-duration", action="store_true", help="fail for each test over its CPU budget")


def pytest_configure(config: pytest.Config) -> None:
    plugin = Durations(each=config.getoption("each_duration"))
    config.pluginmanager.register(plugin, "durations-of-tests")
