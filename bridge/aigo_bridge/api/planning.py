"""Plans from Python: from a task file or task text, with rows from files or from memory."""

from __future__ import annotations

import math
import os
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

from aigo_bridge.access.addresses import check_allowed
from aigo_bridge.access.display_paths import refuse_address
from aigo_bridge.access.grants import granted, granting, real_paths
from aigo_bridge.codes import Code
from aigo_bridge.datasets.rows import Row, digest_of
from aigo_bridge.datasets.tables import plain
from aigo_bridge.errors import DatasetError, Issue, UsageError
from aigo_bridge.evaluation.planning import trace_reader
from aigo_bridge.plan.plan import TEXT, PlanOrigin, TaskPlan, rows_name
from aigo_bridge.planning.planning import plan_origin
from aigo_bridge.planning.planning import plan_task as plan_document
from aigo_bridge.planning.rows import Surroundings
from aigo_bridge.reading import read
from aigo_bridge.spec.task import TaskSpec

StrPath = str | os.PathLike[str]
Rows = Iterable[Mapping[str, Any]]
"""Column → value for each row, or a table of pandas, polars or pyarrow."""


def plan_task(
    task: StrPath | None = None,
    *,
    text: str | None = None,
    config: Mapping[str, Any] | None = None,
    datasets: Mapping[str, StrPath | Rows] | None = None,
    num_samples: int | None = None,
    subsampling: Literal["head", "random"] | None = None,
    num_trials: int | None = None,
    root: StrPath | None = None,
    allow_bad_tasks: bool = False,
    network: bool = True,
    addresses: Collection[str] = (),
    variables: Collection[str] = (),
    files: Collection[StrPath] = (),
) -> TaskPlan:
    """Return a task exactly as it will run: config bound, rows read and selected, templates checked. No model
    is called.

    ```python
    import aigo_bridge

    plan = aigo_bridge.plan_task("examples/capitals", num_samples=2)
    assert [sample.data["country"] for sample in plan.samples] == ["Norway", "Peru"]
    assert plan.warnings == ()
    ```

    Args:
        task: task file (YAML, or JSONL task records), its folder, or the name of a shipped task
            (`aigo_tasks/gsm8k`). With `text`, the file or folder that the text replaces: relative paths
            start there. [default: current folder]
        text: YAML text of a task instead of a file.
        config: parameter → value, as declared in the task. Values are typed: a number does not count as
            text.
        datasets: dataset key → file, or rows: a list of mappings from columns to values, or a table of
            pandas, polars or pyarrow.
        num_samples: number of rows to run, at least 1; `None`: all rows.
        subsampling: selection of the rows: the first ones (`head`, the default) or a random sample
            (`random`, always
            the same rows).
        num_trials: number of runs per sample, at least 1; `None`: the task's number, otherwise 1.
        root: folder that referenced files must not leave; `None`: the task's project.
        allow_bad_tasks: skip invalid records in a file of task records; `TaskPlan.num_invalid`
            counts them.
        network: whether rows may be downloaded from public URLs and hubs.
        addresses: additional allowed hosts (`data.example`) or origins (`http://127.0.0.1:8000`) for
            rows.
        variables: names of environment variables that the task's files may read as `$NAME`.
        files: hidden files, key files and files ignored by git that the task may read, or folders with them.

    Returns:
        The plan: frozen data. `TaskPlan.samples` contains the rows; `warnings` lists possible mistakes.

    Raises:
        UsageError: the file or task does not exist, or an argument is invalid. A run file contains
            several tasks; run it with `aigo-bridge run`.
        SpecError: the task, config or dataset file is invalid; `issues` lists all problems with their
            positions.
        DatasetError: rows cannot be read; `issues` lists all problems.
    """
    if task is None and text is None:
        raise UsageError(
            "no task given, expected a file, the name of a shipped task, or text=…",
            code=Code.MISSING_ARGUMENT,
        )
    for place, name in (
        (task, "task"),
        (root, "root"),
        *((file, "datasets") for file in (datasets or {}).values()),
    ):
        refuse_address(place, name)
    if subsampling not in (None, "head", "random"):
        raise UsageError(
            f"subsampling: found {subsampling!r}, expected 'head' or 'random'", code=Code.WRONG_OPTION
        )
    for address in addresses:
        check_allowed(address)
    given: dict[str, str] = {}
    rows: dict[str, tuple[str, list[dict[str, Any]]]] = {}
    for key, source in (datasets or {}).items():
        if isinstance(source, str | os.PathLike):
            given[key] = str(Path(source).resolve())
            continue
        of_key, digest = rows_of(key, source)
        rows[key], given[key] = (key, of_key), rows_name(digest)
    origin = PlanOrigin(
        task=TEXT if text is not None else _stable_name(task or ""),
        config=dict(config or {}),
        datasets=given,
        num_samples=num_samples,
        subsampling=subsampling,
        num_trials=num_trials,
        root=None if root is None else str(Path(root).resolve()),
        allow_bad_tasks=allow_bad_tasks,
    )
    surroundings = Surroundings(read_traces=trace_reader, rows=rows)
    allowed = replace(
        granted(),
        network=network,
        addresses=(*granted().addresses, *addresses),
        variables=granted().variables | set(variables),
        files=granted().files | real_paths(files),
    )
    with granting(allowed):
        if text is None:
            return plan_origin(origin, surroundings)
        reach = None if origin.root is None else Path(origin.root)
        document = read(TaskSpec, _place(task), root=reach, text=text)
        return plan_document(document, origin, surroundings)


def _stable_name(task: StrPath) -> str:
    """Return a name that other processes can find: of a shipped task, otherwise an absolute path."""
    path = Path(task)
    if not path.exists() and Path(str(task).rpartition("#")[0]).is_file():
        raise UsageError(
            (f"found {str(task)!r}, expected a task; run parts of run files with `aigo-bridge run`"),
            code=Code.OTHER_KIND,
        )
    return str(path.resolve()) if path.exists() else str(task)


def _place(task: StrPath | None) -> Path:
    """Return the path of the file that a text replaces."""
    path = Path(task or ".")
    return path / TEXT if path.is_dir() else path


def rows_of(key: str, table: Any) -> tuple[list[dict[str, Any]], str]:
    """Return the rows of a table as JSON values, and their checksum.

    Args:
        key: dataset key, for messages.
        table: an iterable of mappings, or a table of pandas, polars or pyarrow. The index of a pandas table
            is not a column; a cell without a value (None, NA, NaT) becomes NaN, as in a CSV file.

    Raises:
        DatasetError: the table has another type, or values cannot be written as JSON; all rows with such
            values are listed.
    """
    records = _records(key, table)
    rows: list[dict[str, Any]] = []
    issues: list[Issue] = []
    for number, record in enumerate(records):
        if not isinstance(record, Mapping):
            message = f"row {number} is a value of type {type(record).__name__!r}, expected a mapping"
            issues.append(Issue(f"dataset {key!r}: {message} from columns to values", code=Code.ROW_SHAPE))
            continue
        row: dict[str, Any] = {}
        for column, value in record.items():
            try:
                row[str(column)] = plain(value)
            except DatasetError as error:
                message = f"dataset {key!r}: row {number}, column {str(column)!r}: {error}"
                issues.append(
                    Issue(
                        message,
                        hint="use texts, numbers, booleans, lists or mappings",
                        code=Code.VALUE_WITHOUT_JSON,
                    )
                )
        rows.append(row)
    if issues:
        raise DatasetError(issues[:20])
    return rows, digest_of(Row(number, row) for number, row in enumerate(rows))


def _records(key: str, table: Any) -> Iterable[Any]:
    if hasattr(table, "to_pylist"):  # pyarrow
        return list(table.to_pylist())
    if hasattr(table, "to_dicts"):  # polars
        return list(table.to_dicts())
    if hasattr(table, "isna") and hasattr(table, "columns"):
        return _of_pandas(key, table)
    if isinstance(table, Iterable) and not isinstance(table, Mapping | str | bytes):
        return table
    message = f"dataset {key!r}: found a value of type {type(table).__name__!r}"
    hint = "use a file, a list of mappings, or a table of pandas, polars or pyarrow"
    raise DatasetError(f"{message}, expected rows", hint=hint, code=Code.ROW_SHAPE)


def _of_pandas(key: str, table: Any) -> list[dict[str, Any]]:
    names = [str(name) for name in table.columns]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise DatasetError(
            f"dataset {key!r}: several columns are called {twice[0]!r}", code=Code.WRONG_HEADER
        )
    cells, missing = table.to_dict("records"), table.isna().to_dict("records")
    return [
        {name: math.nan if is_missing[name] else value for name, value in record.items()}
        for record, is_missing in zip(cells, missing, strict=True)
    ]
