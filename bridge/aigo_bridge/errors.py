"""Exceptions, and `Issue`: a problem with its position.

```text
BridgeError
├── UsageError             the command line or an API call asks for something that makes no sense
├── SpecError              a task, dataset, model or run file is not valid AI GO
├── TemplateError          a template cannot be compiled or rendered
├── DatasetError           the rows of a dataset cannot be read
├── UnsupportedPlanError   the engine cannot run this plan as written
├── MissingEngineError     an engine's packages are absent or out of range
├── EngineError            the engine failed while running
├── SnippetError           an author's Python snippet failed, timed out or crashed
├── SampleError            one sample failed, at a known stage
└── EvidenceError          a log or result file cannot be read
```

Errors about files contain all `Issue`s together, so that users can fix a file in one step.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeVar, overload

from aigo_bridge.codes import Code

Severity = Literal["error", "warning"]
Stage = Literal["configuration", "dataset", "solver", "score", "metric", "action"]
"""Stage at which a sample or task failed: all values of AI GO's `TaskResultError.stage`."""


@dataclass(frozen=True)
class Issue:
    """Problem in a file or value, with its position."""

    message: str
    """Found and expected value; starts in lowercase and has no full stop."""
    file: str | None = None
    """File as the user named it; `None` if the value is not from a file."""
    line: int | None = None
    """1-based line in `file`."""
    column: int | None = None
    """1-based column in `line`, counted in characters."""
    path: tuple[str | int, ...] = ()
    """Path of keys and list indices inside the parsed document, e.g. `("definition", "scorers", 1)`."""
    hint: str | None = None
    """Fix, if known."""
    severity: Severity = "error"
    source_line: str | None = None
    """Text of the line, displayed with a caret under `column`."""
    option: str | None = None
    """Command line option that supplies what is missing, when the file itself is not wrong: `--config`,
    `--dataset`.
    """
    code: Code = Code.UNCODED
    """Error code; every issue from aigo-bridge has one."""

    @property
    def place(self) -> str:
        """Return the known part of `file:line:column`."""
        parts = [self.file or "", str(self.line or ""), str(self.column or "")]
        return ":".join(part for part in parts if part)

    def __str__(self) -> str:
        # A line says where; without one the path inside the document does.
        inside = "" if self.line is not None else dotted(self.path)
        where = ": ".join(part for part in (self.place, inside) if part)
        text = f"{where}: {self.message}" if where else self.message
        return f"{text} ({self.hint})" if self.hint else text


def issue_from(values: Mapping[str, Any]) -> Issue:
    """Return the issue from its `asdict` form after a round trip through JSON."""
    return Issue(**{**values, "path": tuple(values["path"]), "code": Code(values["code"])})


def dotted(path: Sequence[str | int]) -> str:
    """Return a path as text: `("a", 0, "b")` as `a[0].b`."""
    text = ""
    for part in path:
        if isinstance(part, int):
            text += f"[{part}]"
        else:
            text += f".{part}" if text else part
    return text


_IDENTIFIER = re.compile(r"(?=[\w-]*\d)[\w-]{8,}")


def error_kind(message: str) -> str:
    """Return a message without its numbers, so that equal errors of different requests can be grouped."""
    return _IDENTIFIER.sub("#", message)


E = TypeVar("E", bound="BridgeError")


class BridgeError(Exception):
    """Base class of all errors that aigo-bridge raises deliberately."""

    usual_code = Code.UNCODED
    """Default code of the class."""
    issues: tuple[Issue, ...] = ()
    """All problems with their positions; empty if the error is only a message."""

    def __init__(self, *args: object, code: Code | None = None):
        super().__init__(*args)
        self.code: Code = self.usual_code if code is None else code
        """Return the error code; with several issues, the code of the first."""

    def __reduce__(self) -> tuple[Any, ...]:
        # Errors come from other processes, and most have parameters that are not among `args`.
        return _made_again, (type(self), self.args), self.__dict__


def _made_again(kind: type[E], args: tuple[Any, ...]) -> E:
    return kind.__new__(kind, *args)


class UsageError(BridgeError, ValueError):
    """Invalid arguments; the command line exits with 2."""


class _IssuesError(BridgeError, ValueError):
    """An error that is a list of issues, or the message of a single one with its place."""

    @overload
    def __init__(self, issues: Sequence[Issue]) -> None: ...

    @overload
    def __init__(
        self,
        issues: str,
        *,
        code: Code,
        file: str | None = None,
        line: int | None = None,
        column: int | None = None,
        path: tuple[str | int, ...] = (),
        hint: str | None = None,
        option: str | None = None,
    ) -> None: ...

    def __init__(self, issues: Sequence[Issue] | str, **fields: Any):
        self.issues = (Issue(issues, **fields),) if isinstance(issues, str) else tuple(issues)
        super().__init__(
            "\n".join(str(issue) for issue in self.issues), code=self.issues[0].code if issues else None
        )


class SpecError(_IssuesError):
    """Invalid AI GO file; contains all issues."""


class TemplateError(_IssuesError):
    """Template that cannot be compiled, or cannot be rendered for a sample."""


class DatasetError(_IssuesError):
    """Rows that cannot be read or do not fit the task."""


class UnsupportedPlanError(BridgeError, ValueError):
    """Plan that the engine cannot run as written; the message lists all gaps."""


class MissingEngineError(BridgeError, ImportError):
    """Engine with missing packages or unsupported versions; the message contains the pip command."""

    usual_code = Code.MISSING_PACKAGE


class EngineError(BridgeError, RuntimeError):
    """Failure of the engine during the run; no evidence can be read."""


class SnippetError(BridgeError, RuntimeError):
    """Python snippet that raised an exception, timed out or crashed its worker process."""


class EvidenceError(_IssuesError):
    """Log or result file that cannot be read."""


class SampleError(BridgeError, RuntimeError):
    """Failure of one sample; it is recorded in the evidence and the run continues."""

    def __init__(self, message: str, *, stage: Stage, hint: str | None = None, kind: str = "SampleError"):
        self.message = message
        self.stage: Stage = stage
        self.hint = hint
        self.kind = kind
        super().__init__(message, code=code_of_kind(kind))


_OF_SAMPLES = {
    "ModelError": Code.FAILED_MODEL,
    "NotRecorded": Code.NOT_RECORDED,
    "MissingModel": Code.NO_MODEL,
    "NoModel": Code.NO_MODEL,
    "UnsupportedOption": Code.LOST_OPTION,
    "UnsupportedRequest": Code.LOST_OPTION,
    "UnsupportedContent": Code.UNSENDABLE_CONTENT,
    "UnsupportedModel": Code.UNFIT_MODEL,
    "NoLikelihoods": Code.MISSING_LIKELIHOODS,
    "MissingLikelihoods": Code.MISSING_LIKELIHOODS,
    "InvalidLikelihood": Code.MISSING_LIKELIHOODS,
    "InvalidModelInput": Code.WRONG_INPUT,
    "ChatTemplateError": Code.WRONG_INPUT,
    "InvalidTrace": Code.WRONG_TRACE,
    "MissingTrace": Code.WRONG_TRACE,
    "InvalidSolverOutput": Code.WRONG_SNIPPET_RESULT,
    "InvalidPostprocessorOutput": Code.WRONG_SNIPPET_RESULT,
    "InvalidScores": Code.WRONG_SNIPPET_RESULT,
    "SnippetError": Code.FAILED_SNIPPET,
    "TemplateError": Code.TEMPLATE_FAILED,
    "MissingColumn": Code.UNKNOWN_COLUMN,
    "MissingValue": Code.MISSING_VALUE,
    "EmptyGroundTruth": Code.MISSING_VALUE,
    "InvalidChoices": Code.WRONG_SAMPLE_DATA,
    "InvalidClaims": Code.WRONG_SAMPLE_DATA,
    "InvalidTests": Code.WRONG_SAMPLE_DATA,
    "InvalidRule": Code.WRONG_SAMPLE_DATA,
    "InvalidFiles": Code.WRONG_SAMPLE_DATA,
    "InvalidFunctionCalls": Code.WRONG_SAMPLE_DATA,
    "InvalidEvidence": Code.DAMAGED_RESULT,
    "MissingAnswer": Code.FAILED_MODEL,
    "UntrustedAnswer": Code.FAILED_MODEL,
    "NoReply": Code.UNREADABLE_VERDICT,
    "AnotherQuestion": Code.UNREADABLE_VERDICT,
    "UnreadableJudgeReply": Code.UNREADABLE_VERDICT,
    "ScoreOutOfRange": Code.VERDICT_OUT_OF_RANGE,
    "UnexpectedLabel": Code.VERDICT_OUT_OF_RANGE,
    "SandboxError": Code.FAILED_SANDBOX,
    "UnjudgedCode": Code.FAILED_SANDBOX,
    "LimitExceeded": Code.EXCEEDED_LIMIT,
    "MaxIterations": Code.EXCEEDED_LIMIT,
    "Cancelled": Code.NEVER_BEGUN,
    "StillRunning": Code.NEVER_BEGUN,
    "DamagedLog": Code.DAMAGED_LOG,
    "UnmappedLog": Code.UNMAPPED_LOG,
}
"""Kind of sample error in the evidence → code."""


def code_of_kind(kind: str) -> Code:
    """Return the code of a sample error from its kind in the evidence."""
    return _OF_SAMPLES.get(kind, Code.FAILED_SAMPLE)
