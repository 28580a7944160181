"""Rows for tasks with external data, guessed from the cells that the task's code reads."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from typing import Any

from pydantic import ValidationError

VALUES: tuple[Any, ...] = (
    "alpha",
    ["alpha", "beta", "gamma", "delta"],
    {},
    1,
    [{}, {}],
    "1",
    '["alpha", "beta", "gamma", "delta"]',
    0.5,
    True,
    [0, 1],
    [["alpha", "beta"], ["gamma", "delta"]],
    "B",
    "2020-01-01",
    None,
)
"""Values tried in this order for a cell of unknown type."""

NAMED: tuple[tuple[tuple[str, ...], Any], ...] = (
    (("label", "idx", "index", "gold", "level", "id", "num", "count"), 1),
    (("choices", "options", "answers", "distractor", "endings", "list"), VALUES[1]),
    (("is_", "has_"), True),
)
"""Parts of names that indicate the type."""

SOURCE = "data: "
"""Prefix of the names of cells that are sources of rows."""

MOST = 400
"""Maximum number of rows tried for one task."""


class MissingCellError(KeyError):
    """Read access to a cell that the row does not have."""

    def __init__(self, path: tuple[Any, ...]):
        super().__init__(path[-1])
        self.path = path


class Row(dict[str, Any]):
    """Row that records which cells are read."""

    def __init__(self, cells: dict[str, Any], path: tuple[Any, ...], reads: list[tuple[Any, ...]]):
        super().__init__({key: watched(value, (*path, key), reads) for key, value in cells.items()})
        self._path, self.reads = path, reads

    def __missing__(self, key: Any) -> Any:
        raise MissingCellError((*self._path, key))

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, str):
            self.reads.append((*self._path, key))
        return super().__getitem__(key)

    def __deepcopy__(self, _: Any) -> Row:
        return self

    def get(self, key: Any, default: Any = None) -> Any:
        """Return a cell as `dict.get` does; a missing cell with a default is not required."""
        if key in self:
            return self[key]
        self.reads.append((*self._path, key))
        return default

    def plain(self) -> dict[str, Any]:
        """Return the value without recording."""
        return {key: plain(value) for key, value in self.items()}


def watched(value: Any, path: tuple[Any, ...], reads: list[tuple[Any, ...]]) -> Any:
    """Return a value that records which of its cells are read."""
    if isinstance(value, dict):
        return Row(value, path, reads)
    if isinstance(value, list):
        return [watched(item, (*path, at), reads) for at, item in enumerate(value)]
    return value


def plain(value: Any) -> Any:
    """Return the value without recording."""
    if isinstance(value, Row):
        return value.plain()
    return [plain(item) for item in value] if isinstance(value, list) else value


def fitting_row(
    use: Callable[[Any], Any],
    *,
    sources: Callable[[str], dict[str, Any] | None] = lambda _: None,
    hopeless: tuple[type[BaseException], ...] = (),
) -> dict[str, Any]:
    """Return a row with which a function does not fail.

    Args:
        use: function that receives the row.
        sources: initial cells for a cell that is a source of rows.
        hopeless: failures that no other row can fix.

    Raises:
        LookupError: no row was found; contains the last failure.
    """
    cells: dict[str, Any] = {}
    tried: dict[tuple[Any, ...], Iterator[Any]] = {}
    failure: BaseException = LookupError("nothing was tried")
    for _ in range(MOST):
        reads: list[tuple[Any, ...]] = []
        try:
            use(Row(cells, (), reads))
        except MissingCellError as error:
            failure = error
            name = str(error.path[-1])
            if name.startswith(SOURCE):
                cells[name] = copy.deepcopy(sources(name.removeprefix(SOURCE)) or {})
                continue
            tried[error.path] = iter(_candidates(name))
            _put(cells, error.path, next(tried[error.path]))
            continue
        except TimeoutError:
            raise
        except (Exception, SystemExit) as error:  # noqa: BLE001  # whatever does not fit is tried otherwise
            failure = error
            if isinstance(error, hopeless):
                break
            if _advised(cells, error, reads, tried):
                continue
            if not _next(cells, [*reversed(reads), *reversed(list(tried))], tried):
                break
            continue
        return cells
    raise LookupError(f"{type(failure).__name__}: {failure}") from failure


ADVICE: tuple[tuple[str, Any], ...] = (
    ("float", 1.0),
    ("int", 1),
    ("bool", True),
    ("list", VALUES[1]),
    ("tuple", VALUES[1]),
    ("dict", {}),
    ("model", {}),
    ("string", "alpha"),
)
"""Values by pydantic error for a cell."""


def _advised(
    cells: Any, error: BaseException, reads: list[tuple[Any, ...]], tried: dict[tuple[Any, ...], Any]
) -> bool:
    """Apply the errors of pydantic; return whether there was anything new."""
    if not isinstance(error, ValidationError) or not reads:
        return False
    followed = False
    for problem in error.errors():
        names = [name for name in problem["loc"] if isinstance(name, str)]
        if not names:
            continue
        if problem["type"] == "missing":
            path = (*reads[-1][:-1], *problem["loc"])
            if not _is_absent(cells, path):
                continue
            value: Any = _candidates(names[-1])[0]
        else:
            path = next((path for path in reversed(reads) if path[-1] == names[-1]), ())
            expected = problem.get("ctx", {}).get("expected", "")
            value = next((value for word, value in ADVICE if word in problem["type"]), None)
            if problem["type"] in ("literal_error", "enum"):
                value = expected.split("'")[1] if "'" in expected else None
            if not path or value is None or (path, "advised", str(value)) in tried:
                continue
        tried[(path, "advised", str(value))] = iter(())
        try:
            _put(cells, path, value)
        except (LookupError, TypeError):
            continue
        followed = True
    return followed


def _next(
    cells: dict[str, Any], paths: list[tuple[Any, ...]], tried: dict[tuple[Any, ...], Iterator[Any]]
) -> bool:
    """Set the next candidate value for the last cell read that has one left."""
    # A cell that is also read with a default can be the missing one.
    absent = [path for path in dict.fromkeys(paths) if path not in tried and _is_absent(cells, path)]
    for path in absent:
        tried[path] = iter(_candidates(str(path[-1])))
        _put(cells, path, next(tried[path]))
    if absent:
        return True
    for path in dict.fromkeys(paths):
        if path not in tried or path[1:2] == ("advised",):
            continue
        for value in tried[path]:
            _put(cells, path, value)
            for below in [other for other in tried if other[: len(path)] == path and other != path]:
                del tried[below]
            return True
        tried[path] = iter(_candidates(str(path[-1])))
        _put(cells, path, next(tried[path]))
    return False


def _is_absent(cells: Any, path: tuple[Any, ...]) -> bool:
    """Return whether only the last step of a path is missing."""
    for step in path[:-1]:
        try:
            cells = cells[step]
        except (LookupError, TypeError):
            return False
    return isinstance(cells, dict) and path[-1] not in cells


def _candidates(name: str) -> list[Any]:
    named = [value for words, value in NAMED if any(word in name.lower() for word in words)]
    return [*named, *(value for value in VALUES if value not in named)]


def _put(cells: Any, path: tuple[Any, ...], value: Any) -> None:
    for step in path[:-1]:
        cells = cells[step]
    cells[path[-1]] = copy.deepcopy(value)


def varied(row: Any, number: int) -> Any:
    """Return a row like another one with other words."""
    if isinstance(row, dict):
        return {key: varied(value, number) for key, value in row.items()}
    if isinstance(row, list):
        return [varied(value, number) for value in row]
    return f"{row} {number}" if isinstance(row, str) and row == "alpha" else row
