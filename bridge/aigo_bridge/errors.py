"""What can go wrong, as types: one exception tree and the `Issue` that names a place.

```text
BridgeError
├── UsageError             the command line or an API call asks for something that makes no sense
├── SpecError              a task, data set, model or run file is not valid AI GO
├── TemplateError          a template cannot be compiled or rendered
├── DatasetError           the rows of a data set cannot be read
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
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

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


class BridgeError(Exception):
    """Base of every error that aigo-bridge raises on purpose."""


class UsageError(BridgeError, ValueError):
    """The caller asked for something that makes no sense; the command line exits with 2."""


class _IssuesError(BridgeError, ValueError):
    """An error that is a list of issues."""

    def __init__(self, issues: Sequence[Issue] | str):
        if isinstance(issues, str):
            issues = [Issue(issues)]
        self.issues: tuple[Issue, ...] = tuple(issues)
        super().__init__("\n".join(str(issue) for issue in self.issues))


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
        super().__init__(message)
