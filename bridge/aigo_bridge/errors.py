"""What can go wrong, as types: one exception tree and the `Issue` that names a place.

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

Errors about files carry `Issue`s, all of them at once: somebody who mends a file should not have to run
the tool once per mistake.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeVar, overload

from aigo_bridge.codes import Code

Severity = Literal["error", "warning"]
Stage = Literal["configuration", "dataset", "solver", "score", "metric", "action"]
"""Where a sample or task failed; the closed set of AI GO's `TaskResultError.stage`."""


@dataclass(frozen=True)
class Issue:
    """One thing that is wrong with a file (or a value), and where."""

    message: str
    """What was found and what was expected; lower-case start, no full stop."""
    file: str | None = None
    """The file as the user named it; `None` when the value did not come from a file."""
    line: int | None = None
    """1-based line in `file`."""
    column: int | None = None
    """1-based column in `line`, counted in characters."""
    path: tuple[str | int, ...] = ()
    """Path of keys and list indices inside the parsed document, e.g. `("definition", "scorers", 1)`."""
    hint: str | None = None
    """What to do about it, when that is known."""
    severity: Severity = "error"
    source_line: str | None = None
    """Text of the line, to be shown with a caret under `column`."""
    option: str | None = None
    """Command line option that supplies what is missing, when the file itself is not wrong: `--config`,
    `--dataset`.
    """
    code: Code = Code.UNCODED
    """The kind of mistake, to be looked up; all that aigo-bridge finds have one."""

    @property
    def place(self) -> str:
        """`file:line:column`, as far as it is known."""
        parts = [self.file or "", str(self.line or ""), str(self.column or "")]
        return ":".join(part for part in parts if part)

    def __str__(self) -> str:
        # A line says where; without one the path inside the document does.
        inside = "" if self.line is not None else dotted(self.path)
        where = ": ".join(part for part in (self.place, inside) if part)
        text = f"{where}: {self.message}" if where else self.message
        return f"{text} ({self.hint})" if self.hint else text


def issue_from(values: Mapping[str, Any]) -> Issue:
    """An issue again, from what `asdict` made of it and a JSON text has carried."""
    return Issue(**{**values, "path": tuple(values["path"]), "code": Code(values["code"])})


def dotted(path: Sequence[str | int]) -> str:
    """`("a", 0, "b")` as `a[0].b`."""
    text = ""
    for part in path:
        if isinstance(part, int):
            text += f"[{part}]"
        else:
            text += f".{part}" if text else part
    return text


_IDENTIFIER = re.compile(r"(?=[\w-]*\d)[\w-]{8,}")


def error_kind(message: str) -> str:
    """What errors have in common that differ in the numbers of requests and the like only."""
    return _IDENTIFIER.sub("#", message)


E = TypeVar("E", bound="BridgeError")


class BridgeError(Exception):
    """Base of every error that aigo-bridge raises on purpose."""

    usual_code = Code.UNCODED
    """Of a class that is one kind of mistake."""
    issues: tuple[Issue, ...] = ()
    """Every problem with its place; empty for an error that is a message only."""

    def __init__(self, *args: object, code: Code | None = None):
        super().__init__(*args)
        self.code: Code = self.usual_code if code is None else code
        """The kind of mistake, to be looked up; of several issues the first one's."""

    def __reduce__(self) -> tuple[Any, ...]:
        # Errors come from other processes, and most have parameters that are not among `args`.
        return _made_again, (type(self), self.args), self.__dict__


def _made_again(kind: type[E], args: tuple[Any, ...]) -> E:
    return kind.__new__(kind, *args)


class UsageError(BridgeError, ValueError):
    """The caller asked for something that makes no sense; the command line exits with 2."""


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
    """A file is not valid AI GO; carries every issue found, not just the first."""


class TemplateError(_IssuesError):
    """A template cannot be compiled, or cannot be rendered for a sample."""


class DatasetError(_IssuesError):
    """Rows cannot be read, or do not fit the task."""


class UnsupportedPlanError(BridgeError, ValueError):
    """The engine cannot run this plan as written; the message lists every gap."""


class MissingEngineError(BridgeError, ImportError):
    """An engine's packages are absent or of an unsuitable version; the message has the pip command."""

    usual_code = Code.MISSING_PACKAGE


class EngineError(BridgeError, RuntimeError):
    """The engine failed while running; nothing useful can be read back."""


class SnippetError(BridgeError, RuntimeError):
    """An author's Python snippet raised, timed out or took its worker process down."""


class EvidenceError(_IssuesError):
    """A log or a result file cannot be read back."""


class SampleError(BridgeError, RuntimeError):
    """One sample failed; it is recorded in the evidence and the run goes on."""

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
"""Kinds of samples' errors, as evidence has them → their codes."""


def code_of_kind(kind: str) -> Code:
    """The code of a sample's error, by the kind that stands in its evidence."""
    return _OF_SAMPLES.get(kind, Code.FAILED_SAMPLE)
