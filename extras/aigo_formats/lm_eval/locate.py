"""Files of a run: the results and the samples are in one folder and are matched by the date in their names.

```text
<out>/<model>/results_<date>.json, samples_<task>_<date>.jsonl     from release 0.4.3 on
<out>/<name>_<date>.json, samples_<task>_<date>.jsonl              with --output_path <out>/<name>.json
<out>/results.json, <model arguments>_<task>.jsonl                 before
```
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath

from aigo_bridge.access.file_kinds import is_lm_eval_results, is_lm_eval_samples, remote_errors
from aigo_bridge.codes import Code
from aigo_bridge.errors import UsageError
from aigo_bridge.importing.places import FileLocation

_DATE = r"(?P<date>\d{4}-\d\d-\d\dT\d\d[-:]\d\d[-:]\d\d(?:\.\d+)?)"
_RESULTS = re.compile(rf"(?:.+_)?{_DATE}\.json", re.DOTALL)
_SAMPLES = re.compile(rf"samples_(?P<task>.+)_{_DATE}\.jsonl", re.DOTALL)
_SUFFIXES = (".json", ".jsonl")


@dataclass
class HarnessFiles:
    """Files of one run."""

    date: str
    """End of the run as in the file names, in the local time of its machine; `""` before release 0.4.3."""
    results: str | None = None
    """Results file; `None` if missing."""
    samples: dict[str, str] = field(default_factory=dict)
    """Samples files by task, or by whole file name if the task is unknown."""
    only: set[str] | None = None
    """Names of the samples files to import; `None`: all tasks."""

    @property
    def location(self) -> str:
        """Return the file that identifies the run."""
        return self.results or next(iter(self.samples.values()))

    def samples_of(self, task: str, tasks: Sequence[str]) -> str | None:
        """Return the samples file of a task; `None` if missing.

        Args:
            task: task name.
            tasks: all tasks of the run, to distinguish names with the same ending.
        """
        if task in self.samples:
            return self.samples[task]
        if self.date:
            return None
        for name, path in self.samples.items():
            ending = max(
                (name_of_task for name_of_task in tasks if name.endswith(f"_{name_of_task}")),
                key=len,
                default=None,
            )
            if ending == task:
                return path
        return None


def eval_files(location: str) -> list[str]:
    """Return the harness files at a location: a file, a folder, a pattern or a URL."""
    try:
        place = FileLocation.of(location)
        named = place.exists(place.path)
        return [path for path in place.files() if _kind(place, path, named=named)]
    except UsageError:
        return []
    except remote_errors():
        return []


def run_files(location: str) -> list[str]:
    """Return all files of a file's run, starting with that file.

    Raises:
        UsageError: as in `find_runs`.
    """
    files = {location: None}
    for run in find_runs([location]):
        files |= dict.fromkeys(([run.results] if run.results else []) + list(run.samples.values()))
    return list(files)


def find_runs(locations: Sequence[str]) -> list[HarnessFiles]:
    """Return the runs at the locations, in file order.

    A results file includes its samples, and samples include their results file, but only from the same
    folder.

    Raises:
        UsageError: a location does not contain such files.
    """
    runs: dict[str, HarnessFiles] = {}
    for location in locations:
        place = FileLocation.of(location)
        try:
            named = place.exists(place.path)
            paths = place.files()
            kinds = {path: kind for path in paths if (kind := _kind(place, path, named=named)) is not None}
            runs_here = list(_runs_at(place, kinds)) if kinds else []
        except remote_errors() as error:
            if place.fs is None:
                raise
            raise UsageError(
                f"cannot search for results at {location!r}: {error}", code=Code.UNREADABLE_LOG
            ) from error
        if not runs_here:
            raise UsageError(
                f"no lm-evaluation-harness results at {location!r} (expected results_<date>.json,"
                " samples_<task>_<date>.jsonl, or a folder with them)",
                code=Code.NO_LOGS,
            )
        for run in runs_here:
            key = place.absolute(run.location)
            if key not in runs:
                runs[key] = run
            elif (run_before := runs[key]).only is not None:
                run_before.only = None if run.only is None else run_before.only | run.only
    return list(runs.values())


def _kind(place: FileLocation, path: str, *, named: bool) -> str | None:
    """Return `results`, `samples`, or `None` for any other file, based on the content."""
    if not (named or path.endswith(_SUFFIXES)) or not place.exists(path):
        return None
    head = place.head(path)
    if is_lm_eval_results(head):
        return "results"
    return "samples" if is_lm_eval_samples(head) else None


def _runs_at(place: FileLocation, kinds: dict[str, str]) -> Iterator[HarnessFiles]:
    """Yield the runs at a location. Results and samples can also occur alone."""
    samples = [path for path, kind in kinds.items() if kind == "samples"]
    results = [path for path, kind in kinds.items() if kind == "results"]
    taken: set[str] = set()
    for path in results:
        beside = _samples_beside(place, path)
        taken |= set(beside.values())
        yield HarnessFiles(
            date_of(path), place.name(path), {task: place.name(file) for task, file in beside.items()}
        )
    orphans: dict[tuple[str, str], list[str]] = {}
    for path in samples:
        if path not in taken:
            orphans.setdefault((_folder(path), date_of(path)), []).append(path)
    for (folder, date), paths in orphans.items():
        named = {_task(path): place.name(path) for path in paths}
        file = next(
            (
                path
                for path in place.below(folder)
                if path.endswith(".json")
                and date_of(path) == date
                and _kind(place, path, named=False) == "results"
            ),
            None,
        )
        if file is None:
            yield HarnessFiles(date, None, named)
        else:
            beside = {task: place.name(path) for task, path in _samples_beside(place, file).items()}
            yield HarnessFiles(date, place.name(file), {**beside, **named}, set(named))


def _samples_beside(place: FileLocation, results: str) -> dict[str, str]:
    date = date_of(results)
    return {
        _task(path): path
        for path in place.below(_folder(results))
        if path.endswith(".jsonl") and date_of(path) == date and _kind(place, path, named=False) == "samples"
    }


def _folder(path: str) -> str:
    return os.path.dirname(path) or "."  # noqa: PTH120  # also handles paths inside other file systems


def date_of(path: str) -> str:
    """Return the date in a file name; `""` if it does not contain one."""
    name = PurePosixPath(path.replace("\\", "/")).name
    match = _RESULTS.fullmatch(name) or _SAMPLES.fullmatch(name)
    return match["date"] if match else ""


def _task(path: str) -> str:
    name = PurePosixPath(path.replace("\\", "/")).name
    match = _SAMPLES.fullmatch(name)
    return match["task"] if match else name.removesuffix(".jsonl")
