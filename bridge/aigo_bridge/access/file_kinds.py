"""Kinds of files, recognized by their first bytes. Only these are read, and only of regular files."""

from __future__ import annotations

import glob
import json
import os
import re
import stat
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from aigo_bridge.text.escapes import visible
from aigo_bridge.text.plurals import plural

BESIDE_RESULTS = (".provenance.json", ".intoto.json", ".intoto.sigstore.json")
"""Extensions of files next to a result: provenance and signatures."""


def expanded(location: str) -> list[str]:
    """Return the files and folders that match a local pattern, sorted; return any other location unchanged.

    An existing path is never a pattern, even if its name contains wildcards. A pattern without matches is
    returned unchanged, for the error message.
    """
    if "://" in location or not glob.has_magic(location) or Path(location).exists():
        return [location]
    # `Path.glob` refuses absolute patterns.
    matching = sorted(glob.glob(location, recursive=True))  # noqa: PTH207  # see above
    # Files next to a result are not logs.
    return [path for path in matching if not path.endswith(BESIDE_RESULTS)] or matching or [location]


_REMOTE = {
    "botocore.exceptions": ("BotoCoreError", "ClientError"),
    "aiohttp": ("ClientError",),
    "httpx": ("HTTPError", "InvalidURL"),
    "google.auth.exceptions": ("GoogleAuthError",),
    "gcsfs.retry": ("HttpError",),
    "azure.core.exceptions": ("AzureError",),
    "paramiko": ("SSHException",),
}
"""Errors that the libraries of fsspec file systems raise in addition to `OSError`: module → base classes."""


def remote_errors() -> tuple[type[Exception], ...]:
    """Return the errors that reading from a URL may raise.

    Use it in an `except` clause, where it is evaluated only after an error. Libraries that are not loaded
    cannot have raised one.
    """
    kinds: list[type[Exception]] = [OSError, ValueError, ImportError]
    for module, names in _REMOTE.items():
        loaded = sys.modules.get(module)
        kinds += [kind for name in names if isinstance(kind := getattr(loaded, name, None), type)]
    return tuple(kinds)


HEAD = 64 * 1024
"""Number of bytes that are read."""
LOG_SUFFIXES = (".eval", ".json")
"""Extensions of files that are read in folders."""

_SHOWN = 3
"""Maximum number of files to name among files that are skipped for the same reason."""

_TOKEN = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"(?P<key>\s*+:)?|["{}\[\]]', re.DOTALL)
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_LM_EVAL_METRIC = re.compile(rb'"[^",\s]+(?:,[^",\s]+|_stderr)"\s*:')
_LOG_MEMBERS = frozenset(
    {"eval", "samples", "version", "status", "results", "stats", "plan", "reductions", "config_general"}
)
"""Top-level keys of engine logs; a document without any of them is not an engine log."""


@dataclass(frozen=True)
class Head:
    """First bytes of a file."""

    data: bytes
    whole: bool
    """Whether these bytes are the whole file."""

    @property
    def members(self) -> list[str] | None:
        """Top-level keys of a JSON object within these bytes; `None` if the file is not an object."""
        text = self.data.removeprefix(_BYTE_ORDER_MARK).lstrip()
        if not text.startswith(b"{"):
            return None
        names, depth = [], 0
        for token in _TOKEN.finditer(text):
            if token["key"] is not None and depth == 1:
                names.append(token[0][1:].split(b'"', 1)[0].decode("utf-8", "replace"))
            elif token[0] in b"{[":
                depth += 1
            elif token[0] in b"}]":
                depth -= 1
            elif token[0] == b'"':
                # The text continues after these bytes.
                break
            if depth == 0:
                break
        return names


@dataclass(frozen=True)
class OtherFile:
    """File that is certainly not an engine log."""

    what: str
    """Description of the file, e.g. `rows of data`; it follows "it is" in messages."""
    hint: str

    def __str__(self) -> str:
        return f"{self.what} ({self.hint})"


RESULT_LOG = OtherFile(
    "already an AI GO result log",
    "only its tables can be imported (--format parquet); use it with "
    "`aigo-bridge validate`, `score` or `export --to inspect-log`",
)
SUMMARY = OtherFile(
    "the summary of an evaluation",
    "name the engine logs next to it; the result logs are the *.tasklog.json files",
)
LOSS_REPORT = OtherFile("the loss report of an import", "name the log that was imported")
PROVENANCE = OtherFile("the provenance of a result", "`aigo-bridge verify` reads it next to the result")
ATTESTATION = OtherFile("an attestation of a result", "`aigo-bridge verify` reads it next to the result")
_NO_LOG = "expected a log of Inspect (*.eval, *.json), or results of lighteval or of another format"
EMPTY = OtherFile("empty", _NO_LOG)
_YAML = OtherFile("YAML", "`aigo-bridge run` takes tasks and run files, `aigo-bridge validate` any file")
_ROWS = OtherFile("rows of data, or task records", "`aigo-bridge validate` takes such files")
_JSON = OtherFile("JSON without the parts of a log", _NO_LOG)
_COMPRESSED = OtherFile("compressed", "unpack it first")
_PARQUET = OtherFile("a Parquet file", _NO_LOG)
_OTHER = OtherFile("neither an archive nor JSON", _NO_LOG)
IRREGULAR = OtherFile("no regular file", "a pipe, a socket or a device is not read")

_BY_SUFFIX = {
    **dict.fromkeys((".yaml", ".yml"), _YAML),
    **dict.fromkeys((".jsonl", ".ndjson", ".csv", ".tsv"), _ROWS),
}


def head_of(path: str | os.PathLike[str]) -> Head | None:
    """Return the first bytes of a local file; `None` if it is not a regular file or cannot be read."""
    try:
        # Check this first: opening a pipe waits for its other end.
        if not stat.S_ISREG(os.stat(path).st_mode):  # noqa: PTH116  # the path can be a `str`
            return None
        with Path(path).open("rb") as file:
            data = file.read(HEAD + 1)
    except (OSError, ValueError):
        return None
    return Head(data[:HEAD], len(data) <= HEAD)


def is_result_log(head: Head) -> bool:
    """Return whether a JSON document is AI GO evidence."""
    names = set(head.members or ())
    return bool({"evidence", "format_version"} & names) or {"specification", "execution"} <= names


def is_result_file(path: str | os.PathLike[str]) -> bool:
    """Return whether a local file is AI GO evidence, by its content; if it is compressed, by its name."""
    head = head_of(path)
    return head is not None and other_file(head, os.path.basename(path)) == RESULT_LOG  # noqa: PTH119  # or `str`


def is_lm_eval_results(head: Head) -> bool:
    """Return whether a JSON document is a results file of lm-evaluation-harness."""
    names = head.members or []
    if "results" not in names or {"config_general", "eval", "evidence", "policies"} & set(names):
        return False
    if "versions" in names:
        # Releases before 0.4 have no `configs`.
        return True
    # Results of many tasks are longer than the head. Names of metrics contain filters or standard errors.
    return names == ["results"] and not head.whole and _LM_EVAL_METRIC.search(head.data) is not None


def is_lm_eval_samples(head: Head) -> bool:
    """Return whether a file contains samples of lm-evaluation-harness: lines, or a list before 0.4.3."""
    text = head.data.removeprefix(_BYTE_ORDER_MARK).lstrip(b"[ \t\r\n")
    names = set(Head(text, head.whole).members or ())
    return {"doc_id", "doc"} <= names and (not head.whole or bool(names & {"arguments", "resps"}))


def eee_kind(head: Head) -> Literal["aggregate", "instances"] | None:
    """Return the kind of an Every Eval Ever file; `None` for other files."""
    names = set(head.members or ())
    if not {"schema_version", "evaluation_id"} <= names:
        return None
    if "sample_id" in names:
        return "instances"
    return "aggregate" if names & {"model_info", "evaluation_results", "source_metadata"} else None


def is_foreign(head: Head) -> bool:
    """Return whether a file has a supported format that is not an engine's (`aigo_formats`)."""
    return is_lm_eval_results(head) or is_lm_eval_samples(head) or eee_kind(head) is not None


def other_file(head: Head, name: str) -> OtherFile | None:
    """Return the kind of a file, from its first bytes or else its name, that is certainly not an engine log
    or of another supported format; `None` if it may be one, even a damaged one.
    """
    lowered = name.lower()
    data = head.data.lstrip()
    if not data:
        return EMPTY
    if data[:2] == b"PK" or is_foreign(head):
        return None
    if data[:4] == b"PAR1":
        return _PARQUET
    if data[:2] == b"\x1f\x8b" or data[:4] == b"\x28\xb5\x2f\xfd":
        return RESULT_LOG if ".tasklog.json" in lowered else _COMPRESSED
    for suffix, kind in _BY_SUFFIX.items():
        if lowered.endswith(suffix):
            return RESULT_LOG if ".tasklog.json" in lowered else kind
    names = head.members
    if names is None:
        # If the first bytes of a log are lost, only its name identifies it.
        if data[:1] == b"[":
            return _JSON
        return None if lowered.endswith(LOG_SUFFIXES) else _OTHER
    return _other_object(head, set(names), lowered)


def _other_object(head: Head, names: set[str], lowered: str) -> OtherFile | None:
    if is_result_log(head):
        return RESULT_LOG
    if {"results", "policies", "evaluation"} <= names:
        return SUMMARY
    if {"log", "kept", "dropped"} <= names:
        return LOSS_REPORT
    if lowered.endswith(BESIDE_RESULTS[0]):
        return PROVENANCE
    if {"payload", "payloadType"} <= names or {"format", "proof"} <= names:
        return ATTESTATION
    if "config_general" in names or "eval" in names:
        return None
    if not names & _LOG_MEMBERS and (names or head.whole):
        return _JSON if names or _is_json(head.data) else None
    return _JSON if head.whole and "samples" not in names and _is_json(head.data) else None


def _is_json(data: bytes) -> bool:
    try:
        json.loads(data)
    except (ValueError, RecursionError):
        return False
    return True


def skipped_files(folder: Path, taken: Iterable[str]) -> dict[OtherFile, list[Path]]:
    """Return files below a folder that have names of logs but are not the logs `taken`, by their kind."""
    logs = {os.path.realpath(path) for path in taken}
    skipped: dict[OtherFile, list[Path]] = {}
    for directory, folders, files in os.walk(folder):
        folders.sort()
        for name in sorted(files):
            path = Path(directory, name)
            if not name.endswith(LOG_SUFFIXES) or os.path.realpath(path) in logs:
                continue
            head = head_of(path)
            kind = IRREGULAR if head is None else other_file(head, name) or _JSON
            skipped.setdefault(kind, []).append(path)
    return skipped


def skipped_lines(skipped: Mapping[OtherFile, Sequence[Path]]) -> list[str]:
    """Return a line for each kind of file with their number, their kind and the first paths."""
    return [
        f"skipped: {visible(str(paths[0]))}: {kind}"
        if len(paths) == 1
        else f"skipped: {plural(len(paths), 'file')}, each {kind}: {_some(paths)}"
        for kind, paths in skipped.items()
    ]


def _some(paths: Sequence[Path]) -> str:
    shown = ", ".join(visible(str(path)) for path in paths[:_SHOWN])
    return shown if len(paths) <= _SHOWN else f"{shown}, …"
