"""What a probe came to, and the file that holds it."""

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
"""Version of the file; raised when a reader of older ones would misread it."""

SUFFIX = ".probe.json"
_MOST_INTEGER = 2**53 - 1
"""Beyond it numbers of JSON are not exact for every reader; such an integer stands there as a text."""
MOST_TEXT = 2000
"""Characters of a changed answer that are kept."""


@dataclass(frozen=True)
class Case:
    """One changed answer, and what a scorer said of it."""

    sample: str | int
    trial: int
    scorer: str
    perturbation: str
    expectation: Expectation
    stored_scores: Mapping[str, Any]
    """Scores of the stored answer, computed with the same code just before."""
    changed_scores: Mapping[str, Any] | None
    """Scores of the changed one; `None`: the scorer failed."""
    verdict: Verdict
    reason: str | None
    """What is not as expected; `None`: nothing."""
    answer: str | None
    """The changed answer where the verdict is not `passed`; `None` elsewhere, or where it is no text."""

    def to_json(self) -> dict[str, Any]:
        """For the file."""
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
    """A score as JSON has it: null for what is no number there, and no integer that readers would round
    differently.
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
    """One scorer under one perturbation."""

    scorer: str
    perturbation: str
    expectation: Expectation
    counts: Mapping[Verdict, int]
    """How many answers came to which verdict."""
    not_applicable: Mapping[str, int]
    """Reason → how many answers it could not be tried on."""
    example: str | None
    """The first reason of a verdict that is not `passed`."""

    @property
    def num_probed(self) -> int:
        """Answers that it was tried on."""
        return sum(self.counts.values())

    @property
    def num_failed(self) -> int:
        """Those of them that are not as expected and not explained."""
        return self.counts.get("failed", 0)

    def to_json(self) -> dict[str, Any]:
        """For the file."""
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
    """A scorer of the task."""

    key: str
    type: str
    main: str | None
    """The score that says whether an answer is right."""
    setting: str | None
    """What its documentation says of how strict it is; `None`: nothing of that kind."""
    unprobed: str | None
    """Why it was not probed; `None`: it was."""

    def to_json(self) -> dict[str, Any]:
        """For the file."""
        return {
            "scorer": self.key,
            "type": self.type,
            "main": self.main,
            "setting": self.setting,
            "not_probed": self.unprobed,
        }


@dataclass(frozen=True)
class ProbeSubject:
    """What was probed, by digests."""

    task: str
    task_sha256: str | None
    """Of the task as it is now, over canonical JSON; as in a provenance."""
    plan: str
    """Digest of the plan that scored."""
    result: str
    """Name of the file."""
    result_sha256: str
    """Of the file as it is unpacked."""
    result_task: str | None
    """Key of the task that the result says it is of."""
    result_task_sha256: str | None
    differences: tuple[str, ...]
    """How the result is not one of the task as it is now; empty: it is one."""
    num_samples: int
    num_failed: int
    """Trials without an output: their solver failed."""

    def to_json(self) -> dict[str, Any]:
        """For the file."""
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
    """What a probe came to."""

    source: ProbeSubject
    settings: Mapping[str, Any]
    """Seed, limit and the like, as they were asked for."""
    models: Mapping[str, str]
    """Model key → the engine's name of the model that judged."""
    scorers: tuple[ProbedScorer, ...]
    perturbations: tuple[Perturbation, ...]
    trials: tuple[tuple[str | int, int], ...]
    """Sample and trial of the answers that were chosen."""
    cases: tuple[Case, ...]
    skipped: Mapping[tuple[str, str], Mapping[str, int]]
    """Scorer and perturbation → reason → answers that it could not be tried on."""

    def totals(self) -> list[Total]:
        """Each scorer under each perturbation, in their order."""
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
        """0: every scorer was probed and is as expected; 1: one is not; 3: none is not, but not every one
        was probed, or no answer could be changed.
        """
        if any(case.verdict == "failed" for case in self.cases):
            return ExitCode.FAILED
        is_whole = self.scorers and self.cases and all(scorer.unprobed is None for scorer in self.scorers)
        return ExitCode.DONE if is_whole else ExitCode.PARTIAL

    def to_json(self) -> dict[str, Any]:
        """As the file has it; equal for equal inputs, so that there is no time in it."""
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
    """Write a probe, atomically.

    Raises:
        UsageError: the name is not that of such a file.
        OSError: it cannot be written.
    """
    content = orjson.dumps(probe.to_json(), option=orjson.OPT_INDENT_2)
    path.parent.mkdir(parents=True, exist_ok=True)
    with open_for_replacing(path) as file:
        file.write(content + b"\n")


def probe_path(name: Path) -> Path:
    """The file that a probe is written to.

    Raises:
        UsageError: the name does not end as such files do.
    """
    if not name.name.endswith(SUFFIX):
        raise UsageError(
            f"-o: found {name.name!r}, expected a name that ends with {SUFFIX}", code=Code.WRONG_OPTION
        )
    return name
