"""Rules of `check`: read, decided, and shown to people, CI and GitHub."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from xml.etree import ElementTree as ET

import typer
import yaml

from aigo_bridge.cli.numbers.statistics import read_result
from aigo_bridge.cli.terminal import name_of, printable, short_path
from aigo_bridge.codes import Code
from aigo_bridge.comparison.comparing import Comparison, compare
from aigo_bridge.comparison.rules import Decision, Rule, Verdict, check_rule, parse_rule
from aigo_bridge.errors import Issue, SpecError, UsageError
from aigo_bridge.exit_codes import ExitCode
from aigo_bridge.results.log_files import open_for_replacing
from aigo_bridge.statistics.quantiles import LEVEL
from aigo_bridge.text.plurals import plural


def read_rules(texts: Sequence[str], file: Path | None) -> list[Rule]:
    """The rules of the command line, and those of a file.

    Raises:
        UsageError: a rule cannot be read, or there is none.
        SpecError: the file is not YAML with a list of rules; all that is wrong with it is listed.
    """
    rules = [parse_rule(text) for text in texts]
    if file is not None:
        rules += _rules_of(file)
    if not rules:
        raise UsageError(
            "there is no rule; give one with --rule, or a file of them with --rules",
            code=Code.MISSING_ARGUMENT,
        )
    return rules


def _rules_of(file: Path) -> list[Rule]:
    content = file.read_text(encoding="utf-8")
    try:
        document = yaml.safe_load(content)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = None if mark is None else mark.line + 1
        raise SpecError(
            [
                Issue(
                    f"not YAML: {getattr(error, 'problem', error)}",
                    file=str(file),
                    line=line,
                    code=Code.NOT_YAML,
                )
            ]
        ) from error
    listed = document.get("rules") if isinstance(document, dict) else None
    if not isinstance(listed, list) or not all(isinstance(text, str) for text in listed):
        raise SpecError(
            [Issue("found no list of texts `rules`, expected one", file=str(file), code=Code.WRONG_RULE)]
        )
    lines = content.splitlines()
    rules: list[Rule] = []
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


def verdicts(
    result: Path, baseline: Path | None, rules: Sequence[Rule], *, cluster: str | None, by_id: bool
) -> list[Verdict]:
    """Verdicts of rules; the baseline is compared once for each confidence that rules ask for."""
    names = [cluster] if cluster else []
    columns = read_result(result, names)
    base = None if baseline is None else read_result(baseline, names)
    comparisons: dict[float, Comparison] = {}
    decisions: list[Verdict] = []
    for rule in rules:
        comparison = None
        if base is not None and rule.operator == "no regression":
            level = rule.level or LEVEL
            if level not in comparisons:
                comparisons[level] = compare(base, columns, by_id=by_id, cluster=cluster, level=level)
            comparison = comparisons[level]
        decisions += check_rule(rule, columns, comparison, cluster)
    return decisions


def exit_code(verdicts: Sequence[Verdict]) -> ExitCode:
    """A broken rule counts for more than one that cannot be decided."""
    decisions = {verdict.decision for verdict in verdicts}
    if Decision.NOT_HELD in decisions:
        return ExitCode.FAILED
    return ExitCode.UNDECIDED if Decision.UNDECIDED in decisions else ExitCode.DONE


def show_verdicts(verdicts: Sequence[Verdict]) -> None:
    """One line each."""
    for verdict in verdicts:
        typer.echo(f"{verdict.decision.value:10}{name_of(verdict.rule.text)}: {_reason(verdict)}")


def _reason(verdict: Verdict) -> str:
    needed = (
        ""
        if verdict.samples_needed is None
        else f"; about {plural(verdict.samples_needed, 'sample')} would decide"
    )
    return printable(f"{verdict.subject}: {verdict.reason}{needed}")


def annotate(result: Path, verdicts: Sequence[Verdict]) -> None:
    """Workflow commands of GitHub Actions, on standard error, so that standard output stays what it is."""
    for verdict in verdicts:
        if verdict.decision is Decision.HELD:
            continue
        kind = "error" if verdict.decision is Decision.NOT_HELD else "warning"
        title = (
            _escaped(f"{verdict.decision.value}: {verdict.rule.text}").replace(":", "%3A").replace(",", "%2C")
        )
        typer.echo(
            f"::{kind} title={title}::{_escaped(f'{short_path(result)}: {_reason(verdict)}')}", err=True
        )


def _escaped(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def write_junit(file: Path, result: Path, verdicts: Sequence[Verdict]) -> None:
    """A test case per verdict: a broken rule is a failure, one that cannot be decided an error."""
    counts = {decision: sum(verdict.decision is decision for verdict in verdicts) for decision in Decision}
    suite = ET.Element(
        "testsuite",
        name=f"aigo-bridge check {result.name}",
        tests=str(len(verdicts)),
        failures=str(counts[Decision.NOT_HELD]),
        errors=str(counts[Decision.UNDECIDED]),
    )
    for verdict in verdicts:
        case = ET.SubElement(
            suite, "testcase", classname=printable(verdict.subject), name=printable(verdict.rule.text)
        )
        if verdict.decision is not Decision.HELD:
            tag = "failure" if verdict.decision is Decision.NOT_HELD else "error"
            ET.SubElement(case, tag, message=_reason(verdict))
    file.parent.mkdir(parents=True, exist_ok=True)
    with open_for_replacing(file) as target:
        target.write(ET.tostring(suite, encoding="utf-8", xml_declaration=True))
