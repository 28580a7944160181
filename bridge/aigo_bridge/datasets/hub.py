"""Data sets of the Hugging Face hub, through its own library (an optional extra)."""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from aigo_bridge.datasets.json_tables import ObjectTable
from aigo_bridge.datasets.plain import plain
from aigo_bridge.errors import DatasetError, Issue
from aigo_bridge.extras import install_command
from aigo_bridge.roots import is_below, outside
from aigo_bridge.spec.datasets import HuggingFaceSource

_OWN_ARGUMENTS = ("path", "split")
_FILE_ARGUMENTS = ("data_files", "data_dir")


def hub_table(source: HuggingFaceSource, *, key: str, root: Path | None = None) -> ObjectTable:
    """The rows of one split, with the types the library gives them (dates and bytes as text).

    `key` is the data set's own, for messages.

    Raises `DatasetError` when the library is not installed, the data set cannot be loaded, or the arguments would
    run code that comes with it.
    """
    hint = f"a copy of the rows on disk does as well, without network: --dataset {key}=FILE"
    arguments = dict(source.load_dataset_kwargs)
    _check(arguments, root)
    try:
        datasets: Any = importlib.import_module("datasets")
    except ImportError as error:
        message = f"Hugging Face data sets need the library 'datasets'; run: {install_command('huggingface')}"
        raise DatasetError([Issue(message, hint=hint)]) from error
    failures = (datasets.exceptions.DatasetsError, OSError, ValueError, RuntimeError, TypeError, LookupError)
    try:
        split = datasets.load_dataset(source.path, split=source.split, **arguments)
    except failures as error:
        message = f"the data set {source.path!r}, split {source.split!r}, cannot be loaded: {error}"
        raise DatasetError([Issue(message, hint=hint)]) from error

    def objects() -> Iterator[dict[str, Any]]:
        try:
            for row in split:
                yield {name: plain(value) for name, value in row.items()}
        except failures as error:
            raise DatasetError(f"the data set {source.path!r} cannot be read to its end: {error}") from error

    return ObjectTable(objects())


def _check(arguments: Mapping[str, Any], root: Path | None) -> None:
    issues = []
    for name in _OWN_ARGUMENTS:
        if name in arguments:
            message = f"`{name}` belongs beside `load_dataset_kwargs`, not into it"
            issues.append(Issue(message, path=("load_dataset_kwargs", name)))
    if arguments.get("trust_remote_code"):
        message = "`trust_remote_code` would run code from the hub on this machine"
        issues.append(Issue(message, path=("load_dataset_kwargs", "trust_remote_code")))
    if root is not None:
        for name in _FILE_ARGUMENTS:
            for file in _texts(arguments.get(name)):
                if "://" not in file and not is_below(root / file, root):
                    issue = outside(repr(file), root / file, root)
                    issues.append(replace(issue, path=("load_dataset_kwargs", name)))
    if issues:
        raise DatasetError(issues)


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from _texts(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _texts(item)
