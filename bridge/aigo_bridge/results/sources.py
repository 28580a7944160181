"""Results that a user names: result logs, folders of them, evaluations, run files with task result logs.

All commands that take results use this module, so that a result has the same name everywhere:

| location | results | name |
|---|---|---|
| `out/quiz.tasklog.json` | that file | the path |
| `out` with `evaluation.json`, or that file | results of the evaluation | the path |
| `out` | every result log in it | the path |
| `export` with a run file, or `export/run.yaml` | linked by `task_result_log_path` | `export/run.yaml#quiz` |
| `export/run.yaml#quiz` | result of that task specification | the same |
| `out/*.tasklog.json` | results of all matching locations | as above |
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from aigo_bridge.access.existence import is_folder, is_present
from aigo_bridge.access.file_kinds import expanded
from aigo_bridge.access.opening import open_regular, read_regular, real_path
from aigo_bridge.codes import Code
from aigo_bridge.errors import EvidenceError, Issue, SpecError, UsageError
from aigo_bridge.results.log_files import COMPRESSIONS
from aigo_bridge.results.result_files import SUFFIX
from aigo_bridge.results.superseded_results import without_superseded
from aigo_bridge.text.json_text import read_json

if TYPE_CHECKING:
    from aigo_bridge.results.linked_results import LinkedEvaluation

EVALUATION = "evaluation.json"
"""Summary of a run file, in the folder of its results."""
TASK_RESULT_LOG = "task_result_log.json"
"""File name of every result log that AI GO exports."""
YAML_SUFFIXES = (".yaml", ".yml")
_LARGEST = 16 << 20
"""Maximum bytes of a YAML file in a folder to check for results."""


@dataclass(frozen=True)
class ResultSource:
    """One result of a report."""

    path: Path | None
    """Path of the result log; `None` if the evaluation does not contain a result of this task."""
    name: str
    """Displayed name."""
    entry: Mapping[str, Any] | None = None
    """Entry for the result in the evaluation summary."""
    evaluation: Mapping[str, Any] | None = None
    """Summary of the evaluation."""
    root: Path | None = None
    """Folder that must contain the result log, after following links; `None` for any folder."""
    run_file: Path | None = None
    """Run file that links the result."""

    @property
    def label(self) -> str:
        """Name that is unique among all results and that every command accepts."""
        if self.run_file is not None:
            return f"{self.run_file}#{self.name}"
        return self.name if self.path is None else str(self.path)

    @property
    def key(self) -> str:
        """Name within a folder of results, which matches the same result in another folder."""
        if self.run_file is not None or self.path is None:
            return self.name
        return without_suffix(self.path.name)


def sources_of(locations: Iterable[str | os.PathLike[str]], root: Path | None = None) -> list[ResultSource]:
    """Return the results at some locations, without duplicates.

    Args:
        locations: result logs, evaluation summaries (`evaluation.json`), run files with task result logs,
            folders of any of them, patterns.
        root: folder that must contain all of them, after following links; `None` for any folder.

    Raises:
        EvidenceError: a summary cannot be read.
        SpecError: a run file is invalid, or has a result that is missing or outside its folder.
        UsageError: a location does not exist.
    """
    sources: list[ResultSource] = []
    seen: set[Path | tuple[Path, str]] = set()
    for text in locations:
        places = expanded(os.fspath(text)) if root is None else [text]
        for location in map(Path, places):
            found = list(_at(location, root))
            keys = [(location, one.name) if one.path is None else real_path(one.path) for one in found]
            # Task specifications of one run file may share a result log.
            sources += [one for one, key in zip(found, keys, strict=True) if key not in seen]
            seen.update(keys)
    return sources


def existing_results(
    locations: Iterable[str | os.PathLike[str]], note: Callable[[str], None]
) -> list[ResultSource]:
    """Return the existing results at some locations, without superseded attempts in folders.

    Args:
        locations: as for `sources_of`.
        note: called with a line for each task without a result, and if results are left out.

    Raises:
        EvidenceError: a summary cannot be read.
        SpecError: a run file is invalid.
        UsageError: a result does not exist.
    """
    results: list[ResultSource] = []
    for location in locations:
        found: list[ResultSource] = []
        for source in sources_of([location]):
            if source.path is None:
                note(f"the result of {source.name!r} is missing from the evaluation")
                continue
            require_result(source)
            found.append(source)
        if names_several(location):
            kept = set(without_superseded([one.path for one in found if one.path is not None], note))
            found = [source for source in found if source.path in kept]
        results += found
    return results


def require_result(source: ResultSource) -> None:
    """Raise `UsageError` if the file of a result does not exist."""
    if source.path is not None and not source.path.is_file():
        named = "" if source.evaluation is None else f", which {source.path.with_name(EVALUATION)} names,"
        raise UsageError(f"result log {str(source.path)!r}{named} does not exist", code=Code.NOTHING_THERE)


def one_result(location: str | os.PathLike[str]) -> ResultSource:
    """Return the only result at a location.

    Raises:
        UsageError: there are several results or none.
    """
    found = [source for source in sources_of([location]) if source.path is not None]
    if len(found) != 1:
        names = ", ".join(source.label for source in found)
        raise UsageError(
            f"{os.fspath(location)!r} has {len(found)} results, expected one; name it: {names}",
            code=Code.OPTIONS_APART,
        )
    require_result(found[0])
    return found[0]


def names_several(location: str | os.PathLike[str]) -> bool:
    """Return whether a location can have several results: folder, evaluation, run file or pattern."""
    text = os.fspath(location)
    path = Path(text)
    is_set = is_folder(path) or path.name == EVALUATION or path.name.endswith(YAML_SUFFIXES)
    return is_set or expanded(text) != [text]


def names_results(location: str | os.PathLike[str]) -> bool:
    """Return whether a location is an evaluation, a run file with results, or one of its specifications."""
    path = Path(location)
    file = str(path).rpartition("#")[0]
    names = (path.name, "" if is_present(path) else file)
    return path.name == EVALUATION or any(name.lower().endswith(YAML_SUFFIXES) for name in names)


def is_result(name: str) -> bool:
    """Return whether a file name is the name of a result log."""
    for suffix in COMPRESSIONS:
        name = name.removesuffix(suffix)
    return name.endswith((SUFFIX, ".tasklog.jsonl")) or name == TASK_RESULT_LOG


def without_suffix(name: str) -> str:
    """Return the file name of a result log without the suffixes of result logs."""
    for suffix in COMPRESSIONS:
        name = name.removesuffix(suffix)
    return name.removesuffix(".tasklog.jsonl").removesuffix(SUFFIX)


def _at(location: Path, root: Path | None) -> Iterator[ResultSource]:
    file, mark, key = str(location).rpartition("#")
    if location.is_dir():
        yield from _in_folder(location, root)
    elif location.name == EVALUATION:
        yield from _of_evaluation(location, root)
    elif location.name.lower().endswith(YAML_SUFFIXES):
        yield from _of_run_file(location, root)
    elif mark and file.lower().endswith(YAML_SUFFIXES) and not is_present(location):
        yield _specification(list(_of_run_file(Path(file), root)), file, key)
    else:
        yield ResultSource(location, _file_name(location), root=root)


def _file_name(path: Path) -> str:
    """Return the file name, preceded by the folder if all logs have that file name."""
    is_common = without_suffix(path.name) == TASK_RESULT_LOG and path.parent.name
    return f"{path.parent.name}/{path.name}" if is_common else path.name


def _in_folder(folder: Path, root: Path | None) -> Iterator[ResultSource]:
    summary = folder / EVALUATION
    if summary.is_file():
        yield from _of_evaluation(summary, root)
        return
    paths = sorted(path for path in folder.iterdir() if is_result(path.name))
    if paths:
        yield from (ResultSource(path, _file_name(path), root=root) for path in paths)
        return
    linked = linked_sources(folder, root)
    if not linked:
        raise UsageError(
            f"{folder}: found no result in the folder, expected {EVALUATION}, files *{SUFFIX},"
            " or a run file with task_result_log_path",
            code=Code.NOTHING_THERE,
        )
    yield from linked


def has_results(folder: Path) -> bool:
    """Return whether a folder contains results: result logs, an evaluation, or a run file with task result
    logs.

    Raises:
        SpecError: a run file with links is invalid.
    """
    names = [path.name for path in folder.iterdir()]
    return EVALUATION in names or any(map(is_result, names)) or bool(linked_sources(folder))


def linked_sources(folder: Path, root: Path | None = None) -> list[ResultSource]:
    """Return the results that run files in a folder link.

    Raises:
        SpecError: a run file with links is invalid.
    """
    files = sorted(path for path in folder.iterdir() if path.name.lower().endswith(YAML_SUFFIXES))
    if not files:
        return []
    from aigo_bridge.results.linked_results import linked_evaluation

    evaluations: list[LinkedEvaluation] = []
    issues: list[Issue] = []
    for file in files:
        if not _may_link_results(file, root):
            continue
        try:
            evaluation = linked_evaluation(file, root)
        except SpecError as error:
            issues += error.issues if links_results(file, root) else ()
        else:
            evaluations += [] if evaluation is None else [evaluation]
    if issues:
        raise SpecError(issues)
    included = {file for one in evaluations for file in one.included}
    evaluations = [one for one in evaluations if real_path(one.file) not in included]
    return [source for evaluation in evaluations for source in _linked(evaluation, root)]


def links_results(file: Path, root: Path | None = None) -> bool:
    """Return whether the text of a file links a result, valid or not."""
    return b"task_result_log_path" in _text_of(file, root)


def _may_link_results(file: Path, root: Path | None) -> bool:
    """Return whether to read a file, because its evaluation may be in another file."""
    text = _text_of(file, root)
    return b"task_result_log_path" in text or (b"evaluation" in text and b"$ref" in text)


def _text_of(file: Path, root: Path | None) -> bytes:
    try:
        return read_regular(file, _LARGEST, root)
    except OSError:
        return b""


def _of_run_file(file: Path, root: Path | None) -> Iterator[ResultSource]:
    from aigo_bridge.results.linked_results import linked_evaluation

    if not file.is_file():
        raise UsageError(f"file {str(file)!r} does not exist", code=Code.NOTHING_THERE)
    evaluation = linked_evaluation(file, root)
    if evaluation is None:
        hint = "expected a run file with task_result_log_path in its task specifications"
        message = "the file names no results"
        raise SpecError(message, file=str(file), hint=hint, code=Code.NOT_A_RESULT)
    yield from _linked(evaluation, root)


def _linked(evaluation: LinkedEvaluation, root: Path | None) -> Iterator[ResultSource]:
    for result in evaluation.results:
        entry = {"display_name": result.display_name, "task": result.task}
        inside = evaluation.file.parent if root is None else root
        yield ResultSource(result.path, result.key, entry, root=inside, run_file=evaluation.file)


def _specification(sources: list[ResultSource], file: str, key: str) -> ResultSource:
    for source in sources:
        if source.name == key and source.path is not None:
            return source
    names = ", ".join(repr(source.name) for source in sources if source.path is not None)
    raise UsageError(f"{file} has no result {key!r}, expected one of {names}", code=Code.NOTHING_THERE)


def _of_evaluation(path: Path, root: Path | None) -> Iterator[ResultSource]:
    try:
        with open_regular(path, root) as file:
            summary = read_json(file.read())
        entries = list(summary["results"])
        results = [entry["result"] for entry in entries]
    except FileNotFoundError as error:
        raise UsageError(f"file {str(path)!r} does not exist", code=Code.NOTHING_THERE) from error
    except OSError as error:
        raise UsageError(
            f"{path}: cannot read: {error.strerror or error}", code=Code.UNREADABLE_LOG
        ) from error
    except (ValueError, KeyError, TypeError) as error:
        hint = "it is the file that `aigo-bridge run` writes for a run file"
        message = "found something else, expected the summary of an evaluation"
        raise EvidenceError(message, file=str(path), hint=hint, code=Code.NOT_A_RESULT) from error
    for entry, result in zip(entries, results, strict=True):
        # A results folder moves as a whole, so files outside it that a summary names are not read.
        inside = isinstance(result, str) and (path.parent / result).resolve().is_relative_to(
            path.parent.resolve()
        )
        place = path.parent / result if inside else None
        yield ResultSource(place, str(entry.get("key", result)), entry, summary, root=root)
