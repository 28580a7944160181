"""Which result logs a report is of: files, folders of them, and folders of an evaluation."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from aigo_bridge.access.opening import open_regular
from aigo_bridge.codes import Code
from aigo_bridge.errors import EvidenceError, Issue, UsageError
from aigo_bridge.results.log_files import COMPRESSIONS
from aigo_bridge.results.result_files import SUFFIX
from aigo_bridge.text.json_text import read_json

EVALUATION = "evaluation.json"
"""The summary of a run file, beside its results."""


@dataclass(frozen=True)
class ResultSource:
    """One result of a report."""

    path: Path | None
    """The result log; `None`: the evaluation has none of this task."""
    name: str
    """As shown."""
    entry: Mapping[str, Any] | None = None
    """What the summary of the evaluation says of it."""
    evaluation: Mapping[str, Any] | None = None
    """That summary."""
    root: Path | None = None
    """Folder that the result log, links followed, must lie in; `None`: anywhere."""


def sources_of(locations: Iterable[Path], root: Path | None = None) -> list[ResultSource]:
    """The results at some places, each once.

    Args:
        locations: result logs, summaries of evaluations (`evaluation.json`), folders of either.
        root: folder that all of them, links followed, must lie in; `None`: anywhere.

    Raises:
        EvidenceError: A summary cannot be read.
        UsageError: There is nothing at one of the places.
    """
    sources: dict[Path | tuple[Path, str], ResultSource] = {}
    for location in locations:
        for source in _at(location, root):
            key = (location, source.name) if source.path is None else Path(os.path.realpath(source.path))
            sources.setdefault(key, source)
    return list(sources.values())


def _at(location: Path, root: Path | None) -> Iterator[ResultSource]:
    if location.is_dir():
        summary = location / EVALUATION
        if summary.is_file():
            yield from _of_evaluation(summary, root)
            return
        paths = sorted(path for path in location.iterdir() if is_result(path.name))
        if not paths:
            raise UsageError(
                f"{location}: found no result in the folder, expected {EVALUATION} or files *{SUFFIX}",
                code=Code.NOTHING_THERE,
            )
        yield from (ResultSource(path, path.name, root=root) for path in paths)
    elif location.name == EVALUATION:
        yield from _of_evaluation(location, root)
    else:
        yield ResultSource(location, location.name, root=root)


def is_result(name: str) -> bool:
    """Whether a file is called as result logs are."""
    for suffix in COMPRESSIONS:
        name = name.removesuffix(suffix)
    return name.endswith((SUFFIX, ".tasklog.jsonl"))


def _of_evaluation(path: Path, root: Path | None) -> Iterator[ResultSource]:
    try:
        with open_regular(path, root) as file:
            summary = read_json(file.read())
        entries = list(summary["results"])
        results = [entry["result"] for entry in entries]
    except FileNotFoundError as error:
        raise UsageError(f"{path}: there is no such file", code=Code.NOTHING_THERE) from error
    except OSError as error:
        raise UsageError(
            f"{path}: cannot read: {error.strerror or error}", code=Code.UNREADABLE_LOG
        ) from error
    except (ValueError, KeyError, TypeError) as error:
        hint = "it is the file that `aigo-bridge run` writes for a run file"
        message = "found something else, expected the summary of an evaluation"
        raise EvidenceError([Issue(message, file=str(path), hint=hint, code=Code.NOT_A_RESULT)]) from error
    for entry, result in zip(entries, results, strict=True):
        # Folders of results move as a whole; a summary that names files elsewhere is not followed.
        inside = isinstance(result, str) and (path.parent / result).resolve().is_relative_to(
            path.parent.resolve()
        )
        place = path.parent / result if inside else None
        yield ResultSource(place, str(entry.get("key", result)), entry, summary, root=root)
