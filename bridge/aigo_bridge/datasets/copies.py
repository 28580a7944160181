"""Local copies of hub datasets, for machines without network access or for reproducible runs:

```text
DIR/<owner>/<name>/<configuration>/<split>.parquet
DIR/<configuration>/<split>.jsonl      each with or without a folder `data` in between
DIR/<split>.csv
```

A split in several files is `<split>-00000-of-00002.parquet`, as on the hub.
"""

from __future__ import annotations

import re
from pathlib import Path

from aigo_bridge.access.existence import is_file, is_folder
from aigo_bridge.codes import Code
from aigo_bridge.datasets.files import ENDINGS, file_kind, load_file
from aigo_bridge.datasets.filtering import compile_filters
from aigo_bridge.datasets.rows import Rows, Selection, collect
from aigo_bridge.datasets.tables import ObjectTable
from aigo_bridge.errors import DatasetError
from aigo_bridge.spec.datasets import HuggingFaceSource


def split_files(folder: Path, split: str) -> list[Path]:
    """Return the files of a split in a folder, in their order."""
    if not is_folder(folder):
        return []
    name = re.compile(re.escape(split) + r"(-\d+-of-\d+)?(\.[a-z]+)(\.gz|\.zst)?")
    return [
        path
        for path in sorted(folder.iterdir())
        if is_file(path) and (match := name.fullmatch(path.name)) and match[2] in ENDINGS
    ]


def copied_rows(source: HuggingFaceSource, folder: Path, selection: Selection) -> Rows:
    """Return the selected rows of a hub dataset from a folder with a copy of it.

    Raises:
        DatasetError: the split is missing, or rows cannot be read.
    """
    places = _places(source, folder)
    files = next(filter(None, (split_files(place, source.split) for place in places)), [])
    if not files:
        wanted = folder / f"{source.split}.parquet"
        raise DatasetError(
            f"split {source.split!r} of {source.path!r} is not in {str(folder)!r},"
            f" expected e.g. {str(wanted)!r}",
            hint=f"put its rows as .parquet, .jsonl or .csv in one of {', '.join(map(str, places))}",
            code=Code.MISSING_COPY,
        )
    rows = [
        row.data
        for file in files
        for row in load_file(file, missing="none" if file_kind(file)[0] == ".csv" else "absent").rows
    ]
    filters = compile_filters(source.filters)
    return collect(ObjectTable(rows), selection, filters=filters, missing="nan", file=str(files[0].parent))


def _places(source: HuggingFaceSource, folder: Path) -> list[Path]:
    name = source.load_dataset_kwargs.get("name")
    configuration = re.sub(r"[/\\]", "_", name) if isinstance(name, str) and name.strip(". ") else None
    bases = [folder / source.path if ".." not in source.path else folder, folder]
    within = [base / configuration for base in bases] if configuration is not None else []
    return list(dict.fromkeys(place for base in (*within, *bases) for place in (base, base / "data")))
