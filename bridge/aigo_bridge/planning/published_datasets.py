"""Comparison of hub rows with the published ones by revision, number and digest in the dataset file."""

from __future__ import annotations

import re
from collections.abc import Callable

from aigo_bridge.codes import Code
from aigo_bridge.datasets.hub import KINDS
from aigo_bridge.datasets.rows import Rows, Selection
from aigo_bridge.errors import DatasetError, Issue
from aigo_bridge.reading import Document
from aigo_bridge.spec.base import ROWS_TAG
from aigo_bridge.spec.datasets import DatasetSpec, HuggingFaceSource
from aigo_bridge.text.plurals import plural

_COMMIT = re.compile(r"[0-9a-f]{40}")


def checked_rows(
    entity: Document[DatasetSpec], selection: Selection, load: Callable[[Selection], Rows]
) -> tuple[Rows, tuple[Issue, ...], tuple[str, ...]]:
    """Return the selected rows of a dataset, issues and tags, after all rows were compared with the values in
    the dataset file.

    The issues describe values that could not be compared. The tags identify the rows in the evidence.
    Datasets that are not on a hub are not compared.

    Raises:
        DatasetError: the rows differ, or cannot be read.
    """
    rows, source = load(selection), entity.spec.source
    if not isinstance(source, HuggingFaceSource):
        return rows, (), ()
    is_all = selection.num_samples is None or selection.subsampling == "head"
    is_whole = is_all and len(rows) == rows.total
    all_rows = rows if is_whole or source.digest is None else load(Selection())
    problems = []
    if source.num_rows is not None and rows.total != source.num_rows:
        problems.append(("num_rows", f"found {rows.total:,} rows, expected {source.num_rows:,}"))
    if source.digest is not None and all_rows.digest != source.digest:
        problems.append(("digest", f"found rows with the digest {all_rows.digest}, expected {source.digest}"))
    if problems:
        hint = (
            "these are not the rows published at this revision; download them again, or "
            "correct the dataset file"
        )
        raise DatasetError(
            [
                entity.place(Issue(text, path=("source", name), hint=hint, code=Code.UNPINNED_SOURCE))
                for name, text in problems
            ]
        )
    if not _is_on_hub(entity, source):
        return rows, (), ()
    is_whole = all_rows is not rows or is_whole
    tag = f"{ROWS_TAG}{_name(source)}: {_verdict(source, all_rows, is_whole=is_whole)}"
    return rows, _doubts(entity, source, all_rows, is_whole=is_whole), (tag,)


def _name(source: HuggingFaceSource) -> str:
    arguments = source.load_dataset_kwargs
    parts = (source.path, arguments.get("name"), source.split)
    return " ".join(str(part) for part in parts if part) + f"@{arguments.get('revision') or 'no revision'}"


def _verdict(source: HuggingFaceSource, rows: Rows, *, is_whole: bool) -> str:
    """Return a description of the comparison."""
    number = plural(rows.total or 0, "row") + (
        " as published" if source.num_rows is not None else ", number not known"
    )
    if source.digest is not None:
        return f"{number}, digest {rows.digest} as published"
    return f"{number}, digest not known{f', found {rows.digest}' if is_whole else ''}"


def _is_on_hub(entity: Document[DatasetSpec], source: HuggingFaceSource) -> bool:
    """Return whether the source is on a hub, and not a file or folder that the hub's library reads."""
    return source.path not in KINDS and not (entity.folder(("source",)) / source.path).is_dir()


def _doubts(
    entity: Document[DatasetSpec], source: HuggingFaceSource, rows: Rows, *, is_whole: bool
) -> tuple[Issue, ...]:
    """Return a warning that names the unknown values; an empty tuple if all are known."""
    unknown = []
    revision = source.load_dataset_kwargs.get("revision")
    if not (isinstance(revision, str) and _COMMIT.fullmatch(revision)):
        unknown.append(f"the revision {revision!r} may change" if revision else "no revision is named")
    if source.num_rows is None:
        unknown.append(f"the number of rows is unknown (found {rows.total:,})")
    if source.digest is None:
        unknown.append(f"their digest is unknown{f' (found {rows.digest})' if is_whole else ''}")
    if not unknown:
        return ()
    message = f"the rows of {entity.spec.key!r} cannot be compared with the published rows: "
    hint = "add `num_rows` and `digest` next to the revision"
    issue = Issue(
        message + "; ".join(unknown),
        path=("source",),
        hint=hint,
        severity="warning",
        code=Code.UNPINNED_SOURCE,
    )
    return (entity.place(issue),)
