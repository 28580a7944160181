"""Files of a run: results and details are in separate folders and are matched by the date in their names.

```text
<out>/results/<model>/results_<date>.json     (a model's name may have slashes, a template may move this file)
<out>/details/<model>/<date>/details_<task>|<shots>_<date>.parquet
<repository>/results_<date>.json, <repository>/<date>/details_….parquet      (as pushed to the hub)
```
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import takewhile
from pathlib import Path, PurePosixPath

from aigo_bridge.access.file_kinds import is_lm_eval_results, remote_errors
from aigo_bridge.codes import Code
from aigo_bridge.errors import UsageError
from aigo_bridge.importing.places import FileLocation

_DATE = r"(?P<date>\d{4}-\d\d-\d\dT\d\d[-:]\d\d[-:]\d\d(?:\.\d+)?)"
_RESULTS = re.compile(rf"results_{_DATE}\.json")
_DETAILS = re.compile(rf"details_(?P<task>.+)_{_DATE}\.parquet", re.DOTALL)
_FIRST_MEMBER = "config_general"
"""First key of every results file."""
_HIGHEST = 12
"""Maximum number of parent folders that are searched for the matching file."""


@dataclass
class RunFiles:
    """Files of one run."""

    date: str
    """End of the run as in the file names, in the local time of its machine; `""` if unknown."""
    results: str | None = None
    """Results file; `None` if missing."""
    details: dict[str, str] = field(default_factory=dict)
    """Details files by the task in their names."""
    only: set[str] | None = None
    """Tasks to import, by the names in their details files; `None`: all."""

    @property
    def location(self) -> str:
        """Return the file that identifies the run."""
        return self.results or next(iter(self.details.values()))

    @property
    def model(self) -> str | None:
        """Return the model name from the folders; `None` if they do not contain it."""
        for path, kind, below in (
            *((path, "details", 2) for path in self.details.values()),
            *([(self.results, "results", 1)] if self.results else []),
        ):
            parts = PurePosixPath(path.replace("\\", "/")).parts
            if kind in parts:
                start = len(parts) - parts[::-1].index(kind)
                name = "/".join(parts[start:-below])
                if name:
                    return name
        return None


def result_files(location: str) -> list[str]:
    """Return lighteval's files at a location: a file, a folder, a pattern or a URL."""
    try:
        place = FileLocation.of(location)
        named = place.exists(place.path)
        return [path for path in place.files() if _kind(place, path, named=named)]
    except remote_errors():
        return []


def run_files(location: str) -> list[str]:
    """Return all files of the run of a results or details file, starting with that file.

    Raises:
        UsageError: as in `find_runs`.
    """
    files = {location: None}
    for run in find_runs([location]):
        files |= dict.fromkeys(([run.results] if run.results else []) + list(run.details.values()))
    return list(files)


def find_runs(locations: Sequence[str]) -> list[RunFiles]:
    """Return the runs at the locations, in file order.

    A results file includes its details, and details include their results file, even from outside the
    location.

    Raises:
        UsageError: a location does not contain lighteval results.
    """
    runs: dict[str, RunFiles] = {}
    for location in locations:
        place = FileLocation.of(location)
        try:
            named = place.exists(place.path)
            kinds = {path: _kind(place, path, named=named) for path in place.files()}
        except remote_errors() as error:
            if place.fs is None:
                raise
            raise UsageError(
                f"cannot search for results at {location!r}: {error}", code=Code.UNREADABLE_LOG
            ) from error
        if not any(kinds.values()):
            raise UsageError(
                f"no lighteval results at {location!r} (expected results_<date>.json,"
                " details_<task>_<date>.parquet,"
                " or a folder with them)",
                code=Code.NO_LOGS,
            )
        for run in _runs_at(place, kinds, named=named):
            key = place.absolute(run.location)
            if key not in runs:
                runs[key] = run
            elif (earlier := runs[key]).only is not None:
                earlier.only = None if run.only is None else earlier.only | run.only
                earlier.details |= run.details
    return list(runs.values())


def log_files(results: Path) -> list[Path]:
    """Return the local files of a run: its results and the details that are found."""
    try:
        runs = find_runs([str(results)])
    except (UsageError, OSError):
        return [results]
    return [results, *(Path(file) for run in runs for file in sorted(run.details.values()))]


def _kind(place: FileLocation, path: str, *, named: bool) -> str | None:
    """Return `results`, `details`, or `None` for any other file.

    In a folder, details are recognized by name only, because it can contain other Parquet datasets. Results
    and directly named files are recognized by content.
    """
    name = _base(path)
    for kind, pattern in (("results", _RESULTS), ("details", _DETAILS)):
        if pattern.fullmatch(name):
            # Opening a named pipe would block. lm-evaluation-harness uses the same name for its results.
            is_own = place.exists(path) and not (kind == "results" and is_lm_eval_results(place.head(path)))
            return kind if is_own else None
    if not named and (not name.endswith(".json") or not place.exists(path)):
        return None
    head = place.head(path)
    if named and head.data[:4] == b"PAR1":
        return "details"
    return "results" if _FIRST_MEMBER in (head.members or ()) else None


def _runs_at(place: FileLocation, kinds: dict[str, str | None], *, named: bool) -> Iterator[RunFiles]:
    details = [path for path, kind in kinds.items() if kind == "details"]
    results = [path for path, kind in kinds.items() if kind == "results"]
    taken: set[str] = set()
    for path in results:
        date = _date(_RESULTS, path)
        own_details = [file for file in details if date and _date(_DETAILS, file) == date]
        if len(own_details) > 1 and sum(_date(_RESULTS, result) == date for result in results) > 1:
            # Copies of one run: each gets the nearest details.
            own_details = [file for file in own_details if _nearest(file, results, date) == path]
        own_details = own_details or _details_of(place, path, date)
        taken.update(own_details)
        yield RunFiles(date, place.name(path), {_task(file): place.name(file) for file in own_details})
    orphans: dict[tuple[str, str], list[str]] = {}
    for path in details:
        if path not in taken:
            orphans.setdefault((_folder(path), _date(_DETAILS, path)), []).append(path)
    for (_, date), paths in orphans.items():
        file = _results_of(place, paths[0], date)
        yield RunFiles(
            date,
            None if file is None else place.name(file),
            {_task(path): place.name(path) for path in paths},
            {_task(path) for path in paths} if file is not None or named else None,
        )


def _details_of(place: FileLocation, results: str, date: str) -> list[str]:
    if not date:
        return []
    results = place.absolute(results)
    for folder in _above(results):
        inside = [part for part in _parts_between(folder, results) if part != "results"]
        beside = [folder] if not inside else []
        for candidate in (_join(folder, "details", *inside, date), _join(folder, date), *beside):
            paths = [
                path
                for path in place.below(candidate)
                if _DETAILS.fullmatch(_base(path)) and _date(_DETAILS, path) == date
            ]
            if paths:
                return paths
        # A template may have moved the results out of the model's folder. Accept any details with this date.
        for path in place.below(_join(folder, "details")):
            for nested in (path, *place.below(path)):
                paths = [path for path in place.below(_join(nested, date)) if _DETAILS.fullmatch(_base(path))]
                if paths:
                    return paths
    return []


def _results_of(place: FileLocation, details: str, date: str) -> str | None:
    if not date:
        return None
    details = place.absolute(details)
    for folder in _above(details):
        inside = _parts_between(folder, details)
        model = inside[1:-1] if inside[:1] == ["details"] else inside[:-1]
        name = f"results_{date}.json"
        for candidate in (_join(folder, "results", *model, name), _join(folder, name)):
            if place.exists(candidate):
                return candidate
    return None


def _above(path: str) -> Iterator[str]:
    folder = _folder(path)
    for _ in range(_HIGHEST):
        yield folder
        above = _folder(folder)
        if above == folder:
            return
        folder = above


def _parts_between(folder: str, path: str) -> list[str]:
    """Return the folder names from `folder` down to the file."""
    inside = path[len(folder) :].replace("\\", "/").strip("/")
    return inside.split("/")[:-1]


def _nearest(details: str, results: Iterable[str], date: str) -> str:
    """Return the results file that shares the most leading folders."""

    def shared(path: str) -> int:
        pairs = zip(_parts(path), _parts(details), strict=False)
        return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))

    return max((path for path in results if _date(_RESULTS, path) == date), key=shared)


def _parts(path: str) -> list[str]:
    return path.replace("\\", "/").split("/")


def _base(path: str) -> str:
    return re.split(r"[/\\]", path)[-1] if os.sep == "\\" else path.rsplit("/", 1)[-1]


def _folder(path: str) -> str:
    return os.path.dirname(path)  # noqa: PTH120  # also handles paths inside other file systems


def _join(*parts: str) -> str:
    return "/".join(part.rstrip("/") or "/" for part in parts).replace("//", "/")


def _date(pattern: re.Pattern[str], path: str) -> str:
    match = pattern.fullmatch(_base(path))
    return match["date"] if match else ""


def _task(path: str) -> str:
    match = _DETAILS.fullmatch(_base(path))
    return match["task"] if match else _base(path).removesuffix(".parquet")
