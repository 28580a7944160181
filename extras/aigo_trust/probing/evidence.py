"""Results of a probe and the file that contains them."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

import orjson

from aigo_bridge.codes import Code
from aigo_bridge.errors import UsageError
from aigo_bridge.exit_codes import ExitCode
from aigo_bridge.redaction.secrets import redact_value
from aigo_bridge.results.log_files import open_for_replacing
from aigo_bridge.version import __version__
from aigo_trust.probing.perturbation import Expectation, Perturbation
from aigo_trust.probing.verdicts import Verdict

FORMAT = 1
"""File format version. It is raised when a reader of older versions would misread the file."""

SUFFIX = ".probe.json"
_MOST_INTEGER = 2**53 - 1
"""Largest integer that every JSON reader keeps exact. Larger integers are written as text."""
MOST_TEXT = 2000
"""Maximum number of characters to keep of a changed answer."""


@dataclass(frozen=True)
class Case:
    """Changed answer with its scores."""

    sample: str | int
    trial: int
    scorer: str
    perturbation: str
    expectation: Expectation
    stored_scores: Mapping[str, Any]
    """Scores of the stored answer, computed with the same code just before."""
    changed_scores: Mapping[str, Any] | None
    """Scores of the changed answer; `None` if the scorer failed."""
    verdict: Verdict
    reason: str | None
    """Description of the unexpected behaviour; `None` if the scores are as expected."""
    answer: str | None
    """Changed answer; `None` for the verdict `passed` or for an answer that is not text."""

    def to_json(self) -> dict[str, Any]:
        """Return plain data for the file."""
        return {
            "sample": self.sample,
            "trial": self.trial + 1,
            "scorer": self.scorer,
            "perturbation": self.perturbation,
            "expectation": self.expectation,
            "before": _plain(self.stored_scores),
            "after": None if self.changed_scores is None else _plain(self.changed_scores),
            "verdict": self.verdict,
            "reason": self.reason,
            "answer": None if self.answer is None else self.answer[:MOST_TEXT],
        }


def _plain(value: Any) -> Any:
    """Return a score as JSON: null for values that are not finite numbers, text for integers that readers
    would round.
    """
    if isinstance(value, Mapping):
        return {str(name): _plain(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(part) for part in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) > _MOST_INTEGER:
        return str(value)
    return value


@dataclass(frozen=True)
class Total:
    """Results of one scorer under one perturbation."""

    scorer: str
    perturbation: str
    expectation: Expectation
    counts: Mapping[Verdict, int]
    """Number of answers for each verdict."""
    not_applicable: Mapping[str, int]
    """Number of answers that could not be changed, for each reason."""
    example: str | None
    """First reason for a verdict other than `passed`."""

    @property
    def num_probed(self) -> int:
        """Number of answers that were changed and scored."""
        return sum(self.counts.values())

    @property
    def num_failed(self) -> int:
        """Number of changed answers with an unexpected and unexplained score."""
        return self.counts.get("failed", 0)

    def to_json(self) -> dict[str, Any]:
        """Return plain data for the file."""
        return {
            "scorer": self.scorer,
            "perturbation": self.perturbation,
            "expectation": self.expectation,
            "probed": self.num_probed,
            **{verdict: self.counts.get(verdict, 0) for verdict in get_args(Verdict)},
            "not_applicable": sum(self.not_applicable.values()),
            "reasons": dict(self.not_applicable),
            "example": self.example,
        }


@dataclass(frozen=True)
class ProbedScorer:
    """Scorer of the task."""

    key: str
    type: str
    main: str | None
    """Name of the score that marks a correct answer."""
    setting: str | None
    """Documented strictness of the scorer; `None` if not documented."""
    unprobed: str | None
    """Reason why the scorer was not probed; `None` if it was."""

    def to_json(self) -> dict[str, Any]:
        """Return plain data for the file."""
        return {
            "scorer": self.key,
            "type": self.type,
            "main": self.main,
            "setting": self.setting,
            "not_probed": self.unprobed,
        }


@dataclass(frozen=True)
class ProbeSubject:
    """Digests of the task and the result that were probed."""

    task: str
    task_sha256: str | None
    """SHA-256 of the current task's canonical JSON, as in a provenance file."""
    plan: str
    """Digest of the plan used for scoring."""
    result: str
    """Name of the result file."""
    result_sha256: str
    """SHA-256 of the uncompressed result file."""
    result_task: str | None
    """Task key in the result."""
    result_task_sha256: str | None
    differences: tuple[str, ...]
    """Differences between the result's task and the current task; empty if they match."""
    num_samples: int
    num_failed: int
    """Number of trials without an output because their solver failed."""

    def to_json(self) -> dict[str, Any]:
        """Return plain data for the file."""
        return {
            "task": {"key": self.task, "sha256": self.task_sha256, "plan": self.plan},
            "result": {
                "file": self.result,
                "sha256": self.result_sha256,
                "task": {"key": self.result_task, "sha256": self.result_task_sha256},
                "samples": self.num_samples,
                "unsolved": self.num_failed,
                "differences": list(self.differences),
            },
        }


@dataclass(frozen=True)
class Probe:
    """Results of a probe."""

    source: ProbeSubject
    settings: Mapping[str, Any]
    """Requested settings, such as seed and limit."""
    models: Mapping[str, str]
    """Judge model on the engine for each model key."""
    scorers: tuple[ProbedScorer, ...]
    perturbations: tuple[Perturbation, ...]
    trials: tuple[tuple[str | int, int], ...]
    """Sample ID and trial of each chosen answer."""
    cases: tuple[Case, ...]
    skipped: Mapping[tuple[str, str], Mapping[str, int]]
    """Number of answers that could not be changed, for each scorer, perturbation and reason."""

    def totals(self) -> list[Total]:
        """Return the results of each scorer under each perturbation, in order."""
        counts: dict[tuple[str, str], Counter[Verdict]] = {}
        examples: dict[tuple[str, str], str] = {}
        for case in self.cases:
            place = case.scorer, case.perturbation
            counts.setdefault(place, Counter())[case.verdict] += 1
            if case.reason is not None and (case.verdict in ("failed", "explained") or place not in examples):
                examples.setdefault(place, case.reason)
        return [
            Total(
                scorer.key,
                perturbation.name,
                perturbation.expectation,
                counts.get((scorer.key, perturbation.name), Counter()),
                self.skipped.get((scorer.key, perturbation.name), {}),
                examples.get((scorer.key, perturbation.name)),
            )
            for scorer in self.scorers
            if scorer.unprobed is None
            for perturbation in self.perturbations
            if (scorer.key, perturbation.name) in counts or (scorer.key, perturbation.name) in self.skipped
        ]

    @property
    def exit_code(self) -> ExitCode:
        """Exit code: 0 if every scorer was probed and behaves as expected, 1 if one does not.

        The code is 3 if no scorer failed, but some were not probed or no answer could be changed.
        """
        if any(case.verdict == "failed" for case in self.cases):
            return ExitCode.FAILED
        is_whole = self.scorers and self.cases and all(scorer.unprobed is None for scorer in self.scorers)
        return ExitCode.DONE if is_whole else ExitCode.PARTIAL

    def to_json(self) -> dict[str, Any]:
        """Return plain data for the file. It contains no time, so that equal inputs give equal files."""
        totals = self.totals()
        verdicts = Counter(case.verdict for case in self.cases)
        content: dict[str, Any] = redact_value(
            {
                "evidence": "probe",
                "format": FORMAT,
                "version": __version__,
                **self.source.to_json(),
                "settings": dict(self.settings),
                "models": dict(self.models),
                "scorers": [scorer.to_json() for scorer in self.scorers],
                "perturbations": [
                    {"name": item.name, "does": item.does, "expectation": item.expectation}
                    for item in self.perturbations
                ],
                "answers": [{"sample": sample, "trial": trial + 1} for sample, trial in self.trials],
                "totals": {
                    "probed": len(self.cases),
                    **{verdict: verdicts.get(verdict, 0) for verdict in get_args(Verdict)},
                    "not_applicable": sum(sum(total.not_applicable.values()) for total in totals),
                },
                "by_scorer": [total.to_json() for total in totals],
                "cases": [case.to_json() for case in self.cases],
            }
        )
        return content


def write_probe(probe: Probe, path: Path) -> None:
    """Write a probe atomically.

    Raises:
        UsageError: the file extension is wrong.
        OSError: the file cannot be written.
    """
    content = orjson.dumps(probe.to_json(), option=orjson.OPT_INDENT_2)
    path.parent.mkdir(parents=True, exist_ok=True)
    with open_for_replacing(path) as file:
        file.write(content + b"\n")


def probe_path(name: Path) -> Path:
    """Return the path of the probe file.

    Raises:
        UsageError: the file extension is wrong.
    """
    if not name.name.endswith(SUFFIX):
        raise UsageError(
            f"-o: found {name.name!r}, expected a name that ends with {SUFFIX}", code=Code.WRONG_OPTION
        )
    return name
