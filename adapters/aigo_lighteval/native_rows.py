"""Rows of lighteval's tasks from a local folder, in place of a hub.

```text
DIR/<task>/<split>.jsonl        task with `:` written as `_` (`mmlu_abstract_algebra`), or
DIR/<subset>/<split>.jsonl      the data set's subset (`abstract_algebra`), or
DIR/<split>.jsonl               when only one task is run
```

Endings are those of every data set (`.jsonl`, `.ndjson`, `.json`, `.csv`, `.parquet`, the texts also with `.gz`, `.zst`); a split in several
files is `<split>-00000-of-00002.parquet`, as hubs name them.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, overload

from lighteval.tasks.lighteval_task import LightevalTask, LightevalTaskConfig

from aigo_bridge.datasets.files import ENDINGS, file_kind, load_file
from aigo_bridge.datasets.rows import Missing
from aigo_bridge.errors import UsageError

Row = dict[str, Any]


class SplitRows(Sequence[Row]):
    """Rows of a split; whoever takes one gets a copy, because prompt functions write into what they get."""

    def __init__(self, rows: Sequence[Row]):
        self._rows = rows

    @overload
    def __getitem__(self, at: int) -> Row: ...
    @overload
    def __getitem__(self, at: slice) -> list[Row]: ...
    def __getitem__(self, at: int | slice) -> Row | list[Row]:
        return copy.deepcopy(self._rows[at])  # type: ignore[return-value]  # a slice of a sequence of rows is a list of them

    def __iter__(self) -> Iterator[Row]:
        return (copy.deepcopy(row) for row in self._rows)

    def __len__(self) -> int:
        return len(self._rows)


def local_splits(
    config: LightevalTaskConfig, shots: int, folder: Path, *, alone: bool
) -> Mapping[str, SplitRows]:
    """The splits of a task that a run reads.

    Args:
        config: the task.
        shots: examples in front of each question; without any, no rows for them are read.
        folder: `--data-dir`.
        alone: whether no other task is run, so that rows at the top of the folder can only be this one's.

    Raises:
        UsageError: the folder or a split is missing.
        DatasetError: a file is not valid.
    """
    if not folder.is_dir():
        raise UsageError(f"--data-dir: there is no folder {str(folder)!r}")
    places = _places(config, folder, alone=alone)
    found: dict[str, SplitRows] = {}
    for split in _splits(config, shots):
        files = next(filter(None, (_files(place, split) for place in places)), [])
        if not files:
            wanted = " or ".join(repr(str(place / f"{split}.jsonl")) for place in places)
            raise UsageError(f"--data-dir: task {config.name!r} needs its split {split!r}, expected {wanted}")
        rows = [row.data for file in files for row in load_file(file, missing=_missing(file)).rows]
        keep = config.hf_filter
        found[split] = SplitRows(rows if keep is None else [row for row in rows if keep(row)])
    return found


def _missing(file: Path) -> Missing:
    # A row of JSON that lacks a key must not become a prompt about "None"; an empty cell is one, as hubs' loaders have it.
    return "none" if file_kind(file)[0] == ".csv" else "absent"


def _splits(config: LightevalTaskConfig, shots: int) -> list[str]:
    splits = list(config.evaluation_splits)
    if shots:
        examples = LightevalTask(config).fewshot_split
        splits += [examples] if examples is not None and examples not in splits else []
    return splits


def _places(config: LightevalTaskConfig, folder: Path, *, alone: bool) -> list[Path]:
    names = [folder_name(config.name)]
    if config.hf_subset and config.hf_subset != "default":
        names.append(folder_name(str(config.hf_subset)))
    places = [folder / name for name in dict.fromkeys(names)]
    return [*places, folder] if alone else places


def folder_name(name: str) -> str:
    """A task's or subset's name as a folder's."""
    return re.sub(r"[\x00-\x1f\x7f<>:\"|?*\\/]", "_", name).strip(". ") or "task"


def _files(place: Path, split: str) -> list[Path]:
    if not place.is_dir():
        return []
    name = re.compile(re.escape(split) + r"(-\d+-of-\d+)?(\.[a-z]+)(\.gz|\.zst)?")
    return [
        path
        for path in sorted(place.iterdir())
        if path.is_file() and (match := name.fullmatch(path.name)) and match[2] in ENDINGS
    ]
