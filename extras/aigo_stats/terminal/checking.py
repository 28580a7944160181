"""Rules of `check`: reading, evaluation, and output for the terminal, CI and GitHub."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import typer
import yaml

from aigo_bridge.cli.terminal import name_of, printable, short_path
from aigo_bridge.codes import Code
from aigo_bridge.errors import Issue, SpecError, UsageError
from aigo_bridge.exit_codes import ExitCode
from aigo_bridge.results.log_files import open_for_replacing
from aigo_bridge.results.sources import ResultSource, sources_of
from aigo_bridge.text.plurals import plural
from aigo_stats.comparison.comparing import Comparison, compare
from aigo_stats.comparison.rules import CheckRule, Decision, RuleResult, check_rule, parse_rule
from aigo_stats.statistics.quantiles import LEVEL
from aigo_stats.terminal.statistics import chosen, read_result


def read_rules(texts: Sequence[str], file: Path | None) -> list[CheckRule]:
    """Return the rules of the command line and of a file.

    Raises:
        UsageError: a rule cannot be parsed, or no rule was given.
        SpecError: the file is not YAML with a list of rules. All errors in the file are listed.
    """
    rules = [parse_rule(text) for text in texts]
    if file is not None:
        rules += _rules_of(file)
    if not rules:
        raise UsageError(
            "no rule given; pass one with --rule, or a file with --rules", code=Code.MISSING_ARGUMENT
        )
    return rules


def _rules_of(file: Path) -> list[CheckRule]:
    content = file.read_text(encoding="utf-8")
    try:
        document = yaml.safe_load(content)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = None if mark is None else mark.line + 1
        raise SpecError(
            f"not YAML: {getattr(error, 'problem', error)}", file=str(file), line=line, code=Code.NOT_YAML
        ) from error
    listed = document.get("rules") if isinstance(document, dict) else None
    if not isinstance(listed, list) or not all(isinstance(text, str) for text in listed):
        raise SpecError("found no list of texts `rules`, expected one", file=str(file), code=Code.WRONG_RULE)
    lines = content.splitlines()
    rules: list[CheckRule] = []
    issues: list[Issue] = []
    for text in listed:
        try:
            rules.append(parse_rule(text))
        except UsageError as error:
            line = next((number for number, shown in enumerate(lines, 1) if text in shown), None)
            issues.append(Issue(str(error), file=str(file), line=line, code=Code.WRONG_RULE))
    if issues:
        raise SpecError(issues)
    return rules


@dataclass(frozen=True)
class CheckResult:
    """Verdicts on one result."""

    result: str
    """Name of the result."""
    verdicts: list[RuleResult]

    def to_json(self) -> dict[str, Any]:
        """Return a JSON-serializable dictionary."""
        return {"result": self.result, "verdicts": [verdict.to_json() for verdict in self.verdicts]}


def check_results(
    result: Path, baseline: Path | None, rules: Sequence[CheckRule], *, cluster: str | None, by_id: bool
) -> list[CheckResult]:
    """Return the verdicts on each result at a location. Results are paired with a baseline of several results
    by name.

    Raises:
        UsageError: the location does not contain results, or the baseline lacks a result with the same name.
    """
    missing = [source.name for source in sources_of([result]) if source.path is None]
    if missing:
        raise UsageError(
            f"{result}: no result of {', '.join(map(repr, missing))}, so rules cannot be "
            "checked; name the existing results one by one",
            code=Code.NOTHING_THERE,
        )
    sources = chosen([result])
    bases: list[ResultSource] = [] if baseline is None else chosen([baseline])
    several = baseline is not None and (len(sources) > 1 or len(bases) != 1)
    by_key = {base.key: base for base in bases}
    if several and (alone := [source.key for source in sources if source.key not in by_key]):
        raise UsageError(
            f"--baseline: {baseline} has no result {alone[0]!r}, expected one of"
            f" {', '.join(map(repr, by_key)) or 'several'}",
            code=Code.INCOMPARABLE_RESULTS,
        )
    checked: list[CheckResult] = []
    for source in sources:
        base = by_key[source.key] if several else next(iter(bases), None)
        checked.append(
            CheckResult(source.label, _verdicts(source, base, rules, cluster=cluster, by_id=by_id))
        )
    return checked


def _verdicts(
    result: ResultSource,
    baseline: ResultSource | None,
    rules: Sequence[CheckRule],
    *,
    cluster: str | None,
    by_id: bool,
) -> list[RuleResult]:
    """Return the verdicts of all rules. The baseline is compared once for each confidence level in the
    rules.
    """
    names = [cluster] if cluster else []
    columns = read_result(result, names)
    base = None if baseline is None else read_result(baseline, names)
    comparisons: dict[float, Comparison] = {}
    decisions: list[RuleResult] = []
    for rule in rules:
        comparison = None
        if base is not None and rule.operator == "no regression":
            level = rule.level or LEVEL
            if level not in comparisons:
                comparisons[level] = compare(base, columns, by_id=by_id, cluster=cluster, level=level)
            comparison = comparisons[level]
        decisions += check_rule(rule, columns, comparison, cluster)
    return decisions


def exit_code(verdicts: Sequence[RuleResult]) -> ExitCode:
    """Return the exit code. A failed rule has priority over an undecided one."""
    decisions = {verdict.decision for verdict in verdicts}
    if Decision.NOT_HELD in decisions:
        return ExitCode.FAILED
    return ExitCode.UNDECIDED if Decision.UNDECIDED in decisions else ExitCode.DONE


def show_verdicts(checked: CheckResult, *, named: bool) -> None:
    """Print a line for each verdict, after the name of the result if there are several."""
    if named:
        typer.echo(short_path(checked.result))
    for verdict in checked.verdicts:
        typer.echo(f"{verdict.decision.word:10}{name_of(verdict.rule.text)}: {_reason(verdict)}")


def _reason(verdict: RuleResult) -> str:
    needed = (
        ""
        if verdict.samples_needed is None
        else f"; about {plural(verdict.samples_needed, 'sample')} would decide"
    )
    return printable(f"{verdict.subject}: {verdict.reason}{needed}")


def annotate(checked: CheckResult) -> None:
    """Print GitHub Actions workflow commands on standard error, so that standard output does not change."""
    for verdict in checked.verdicts:
        if verdict.decision is Decision.HELD:
            continue
        kind = "error" if verdict.decision is Decision.NOT_HELD else "warning"
        title = (
            _escaped(f"{verdict.decision.word}: {verdict.rule.text}").replace(":", "%3A").replace(",", "%2C")
        )
        typer.echo(
            f"::{kind} title={title}::{_escaped(f'{short_path(checked.result)}: {_reason(verdict)}')}",
            err=True,
        )


def _escaped(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def write_junit(file: Path, checked: Sequence[CheckResult]) -> None:
    """Write a JUnit test suite for each result with a test case for each verdict.

    A failed rule is a failure, and an undecided rule is an error.
    """
    suites = [_suite(one) for one in checked]
    document = suites[0]
    if len(suites) > 1:
        document = ET.Element("testsuites")
        document.extend(suites)
    file.parent.mkdir(parents=True, exist_ok=True)
    with open_for_replacing(file) as target:
        target.write(ET.tostring(document, encoding="utf-8", xml_declaration=True))


def _suite(checked: CheckResult) -> ET.Element:
    counts = {
        decision: sum(verdict.decision is decision for verdict in checked.verdicts) for decision in Decision
    }
    suite = ET.Element(
        "testsuite",
        name=f"aigo-bridge check {Path(checked.result).name}",
        tests=str(len(checked.verdicts)),
        failures=str(counts[Decision.NOT_HELD]),
        errors=str(counts[Decision.UNDECIDED]),
    )
    for verdict in checked.verdicts:
        case = ET.SubElement(
            suite, "testcase", classname=printable(verdict.subject), name=printable(verdict.rule.text)
        )
        if verdict.decision is not Decision.HELD:
            tag = "failure" if verdict.decision is Decision.NOT_HELD else "error"
            ET.SubElement(case, tag, message=_reason(verdict))
    return suite
