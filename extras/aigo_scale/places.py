"""Command parameters that accept object storage addresses, and the role of each address."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

Role = Literal[
    "file", "task", "root", "folder", "results", "proved results", "result", "any", "out file", "out folder",
    "beside", "lake",
]  # fmt: skip
"""Roles of an address:

- `file`: one object.
- `task`: a task, with its folder. `root`: the folder of everything a task uses.
- `folder`: a folder with its content. `any`: a file, folder or pattern.
- `results`: results, a folder of results, or a pattern. `proved results`: the same, with the files next to
  them.
- `result`: one result with the files next to it. `beside`: a result that gets a new file next to it.
- `out file`, `out folder`: outputs.
- `lake`: a lake, which is read and written in place.
"""

_TASK: dict[str, Role] = {"task": "task", "dataset": "file", "root": "root"}

PLACES: Mapping[str, Mapping[str, Role]] = {
    "run": {
        **_TASK,
        "out": "out folder",
        "record": "out file",
        "replay": "file",
        "data_dir": "folder",
    },
    "merge": {**_TASK, "shards": "folder", "out": "out folder", "data_dir": "folder"},
    "explain": {**_TASK, "prices": "file"},
    "lake": {"location": "lake"},
    "import": {
        "logs": "any",
        "out": "out folder",
        "lake": "lake",
        "recompute": "task",
        "dataset": "file",
        "root": "root",
    },
    "export": {"sources": "task", "dataset": "file", "root": "root", "out": "out folder"},
    "convert": {"source": "task", "dataset": "file", "root": "root", "out": "out file"},
    "generate": {"dataset_file": "task", "dataset": "file", "root": "root", "out": "out file"},
    "validate": {"paths": "any", "root": "root"},
    "score": {"task": "task", "root": "root", "logs": "any", "out": "out folder"},
    "stats": {"results": "results"},
    "compare": {"base": "results", "new": "results", "report": "out file"},
    "check": {"result": "results", "baseline": "results", "rules": "file", "junit": "out file"},
    "parity": {**_TASK, "replay": "file", "out": "out folder"},
    "power": {"results": "results"},
    "probe": {
        "task": "task",
        "root": "root",
        "result": "results",
        "replay": "file",
        "out": "out file",
        "record": "out file",
    },
    "report": {"results": "results", "out": "out file"},
    "show": {"results": "results"},
    "table": {"locations": "results", "out": "out file"},
    "plot": {"locations": "results", "out": "out file"},
    "sql": {"locations": "results", "out": "out file"},
    "verify": {
        **_TASK,
        "results": "proved results",
        "log": "any",
        "provenance": "file",
        "attestation": "file",
        "key": "file",
        "trust_config": "file",
        "replay": "file",
    },
    "attest": {"results": "beside", "out": "out file", "trust_config": "file"},
    "bundle": {**_TASK, "result": "result", "log": "any", "replay": "file", "out": "out file"},
}
"""Parameters that accept addresses, by command."""

REFUSED: Mapping[str, Mapping[str, str]] = {
    "init": {"folder": "a project must be created in a local folder"},
    "run": {"custom_tasks": "code is only executed from local files"},
    "merge": {"custom_tasks": "code is only executed from local files"},
    "convert": {
        "custom_tasks": "code is only executed from local files",
        "data_dir": "rows of a benchmark must be local files",
    },
    "attest": {
        "key": "private keys must be local files",
        "new_key": "private keys are only written to local files",
    },
    "upgrade": {
        "files": "only local files can be rewritten",
        "root": "only local files can be rewritten",
    },
    "view": {"folder": "only local folders can be watched"},
}
"""Path parameters that do not accept addresses, by command, with the reason."""

LONG = frozenset({"run", "score", "parity", "merge"})
"""Commands whose output folders are uploaded during the run and locked for other processes."""

BY_TABLES = frozenset({"sql"})
"""Commands that read a lake's tables. All others get its results."""

OUTPUTS = ("out file", "out folder")


def role_of(verb: str, parameter: Any) -> Role | None:
    """Return the role of a parameter's address; `None` if it does not accept addresses."""
    return PLACES.get(verb, {}).get(parameter.name)


def is_path(parameter: Any) -> bool:
    """Return whether a parameter is a path, based on its name in the help."""
    shown = str(parameter.metavar or "")
    return any(word in shown for word in PATH_WORDS)


PATH_WORDS = (
    "FILE", "DIR", "PATH", "LOG", "RESULT", "TASK", "CASSETTE", "SOURCE", "BASE", "NEW", "DATASET", "MODEL",
    "LAKE",
)  # fmt: skip
"""Placeholders for paths in the help."""
