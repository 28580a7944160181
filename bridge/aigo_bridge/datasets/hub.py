"""Datasets of the Hugging Face hub, and files that its library reads (an optional dependency).

The library accepts many kinds of paths: folders of the current directory, absolute paths, a dozen kinds of
URLs, and even paths in the card of a dataset. A source is therefore limited to a hub name, a kind of file
with files below the root folder, or a folder there. Before any data is read, the files that the library
has resolved are checked again.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import Any, Literal

from aigo_bridge.access.addresses import REMOTE, require_network
from aigo_bridge.access.existence import is_folder, is_present
from aigo_bridge.access.grants import record_file
from aigo_bridge.access.opening import is_below, outside
from aigo_bridge.access.private import refusal
from aigo_bridge.codes import Code
from aigo_bridge.datasets.tables import ObjectTable, plain
from aigo_bridge.errors import DatasetError, Issue
from aigo_bridge.process import install_command
from aigo_bridge.spec.datasets import HuggingFaceSource

KINDS = ("csv", "json", "parquet", "arrow", "text")
"""File kinds allowed instead of a hub name. Other kinds unpickle data, or access servers and databases."""

READERS = (*KINDS, "xml", "hdf5", "conll", "imagefolder", "audiofolder", "videofolder", "pdffolder")
"""Readers of the library that are allowed for data on the hub or in a folder."""

_READING = ("streaming", "keep_in_memory", "verification_mode", "num_proc")
ARGUMENTS = frozenset(_READING) | {
    *("name", "revision", "data_files", "data_dir", "cache_dir", "trust_remote_code"),
    # Arguments of the readers for csv, json, parquet and text
    *("field", "sep", "delimiter", "names", "column_names", "header", "quotechar", "escapechar", "skiprows"),
    *("encoding", "encoding_errors", "on_bad_lines", "columns", "sample_by", "keep_linebreaks"),
}
"""Arguments of `load_dataset` that a dataset may use."""

_FILE_ARGUMENTS = ("data_files", "data_dir", "cache_dir")
HUB = "hf://datasets/"
"""Prefix with which the library names data on the hub."""

_NAME = re.compile(r"[A-Za-z0-9][\w.-]*(?:/[A-Za-z0-9][\w.-]*)?", re.ASCII)
_REVISION = re.compile(r"[\w./-]+", re.ASCII)

Place = Literal["hub", "kind", "folder"]


def hub_table(source: HuggingFaceSource, *, key: str, folder: Path, root: Path | None = None) -> ObjectTable:
    """Return the rows of one split, with the types of the library (dates and bytes as text).

    Args:
        source: source as written.
        key: key of the dataset, for messages.
        folder: folder that relative paths start from.
        root: folder that must contain all paths; `None` for any folder.

    Raises `DatasetError` if the library is not installed, the dataset cannot be loaded, or it refers to
    forbidden files.
    """
    hint = (
        f"without network access, use a local copy: --full --data-dir DIR with DIR/{source.split}.parquet "
        f"(or .jsonl, .csv), or --dataset {key}=FILE"
    )
    place, path, arguments = hub_arguments(source, folder, root)
    if place == "hub":
        what = f"the dataset {source.path!r} of the Hugging Face hub"
        require_network(what, hint=f"allow downloads with --network; {hint}")
    try:
        datasets: Any = importlib.import_module("datasets")
    except ImportError as error:
        message = f"Hugging Face datasets need the library 'datasets'; run: {install_command('huggingface')}"
        raise DatasetError(message, hint=hint, code=Code.MISSING_PACKAGE) from error
    failures = (datasets.exceptions.DatasetsError, OSError, ValueError, RuntimeError, TypeError, LookupError)

    @contextmanager
    def told(what: str) -> Iterator[None]:
        try:
            yield
        except DatasetError:
            raise
        except failures as error:
            raise DatasetError(
                f"the dataset {what}: {error}", hint=hint, code=Code.FAILED_HUB_LOAD
            ) from error

    with told(f"{source.path!r}, split {source.split!r}, cannot be loaded"):
        split = _split(datasets, path, source.split, arguments, place, root)

    def objects() -> Iterator[dict[str, Any]]:
        with told(f"{source.path!r} cannot be read completely"):
            for row in split:
                yield {name: plain(value) for name, value in row.items()}

    return _HubTable(objects(), split) if hasattr(split, "num_rows") else ObjectTable(objects())


class _HubTable(ObjectTable):
    """Split on disk: its columns are known, and any part of it can be read separately."""

    def __init__(self, objects: Iterator[dict[str, Any]], split: Any):
        super().__init__(objects)
        self._split = split
        self.num_rows: int = split.num_rows

    def column(self, name: str, start: int) -> Iterator[Any] | None:
        """Return the cells of a column (see `ColumnTable`)."""
        if name not in self._split.column_names:
            return None
        cells = self._split.select_columns([name])
        return (plain(cells[number][name]) for number in range(start, self.num_rows))


def _split(
    datasets: Any, path: str, split: str, arguments: Mapping[str, Any], place: Place, root: Path | None
) -> Any:
    """Load a split with `datasets.load_dataset`, after checking the files that it reads."""
    if place == "hub" and is_present(path):
        # The library would use the folder instead of the hub.
        hint = "run aigo-bridge in another folder, or rename that folder"
        message = f"{path!r} is a hub name, but the current folder contains a folder with this name"
        raise DatasetError(message, hint=hint, code=Code.FAILED_HUB_LOAD)
    reading = {name: arguments[name] for name in _READING if name in arguments}
    builder = datasets.load_dataset_builder(
        path, **{name: value for name, value in arguments.items() if name not in reading}
    )
    _check_builder(builder, place, root)
    if reading.pop("streaming", False):
        return builder.as_streaming_dataset(split=split)
    in_memory = bool(reading.pop("keep_in_memory", False))
    builder.download_and_prepare(**reading)
    return builder.as_dataset(split=split, in_memory=in_memory)


def _check_builder(builder: Any, place: Place, root: Path | None) -> None:
    """Check the reader and the resolved files, regardless of names, patterns and cards that led to them."""
    readers = {f"datasets.packaged_modules.{name}.{name}" for name in READERS}
    if not any(base.__module__ in readers for base in type(builder).__mro__):
        raise DatasetError(
            (f"the library would read it as {type(builder).__name__!r}, which is not supported"),
            code=Code.FAILED_HUB_LOAD,
        )
    for file in _texts(getattr(builder.config, "data_files", None)):
        if place == "hub" and file.startswith(HUB):
            continue
        if place == "hub" or _is_address(file):
            message = f"the dataset files refer to {file!r}, which is not in the dataset"
            raise DatasetError(message, code=Code.FAILED_HUB_LOAD)
        shown = f"{file!r}: the dataset files refer to it, but it"
        if (issue := refusal(Path(file), root, shown)) is not None:
            raise DatasetError([issue])


def hub_arguments(
    source: HuggingFaceSource, folder: Path, root: Path | None
) -> tuple[Place, str, dict[str, Any]]:
    """Return the kind of a source, and the path and arguments for the library.

    Raises `DatasetError` with everything that a source may not refer to.
    """
    arguments = {name: value for name, value in source.load_dataset_kwargs.items() if value is not None}
    issues = _unknown(arguments)
    arguments.pop("trust_remote_code", None)
    place, path = _place(source.path, folder, root, issues)
    for name in _FILE_ARGUMENTS:
        if name not in arguments:
            continue
        for text in _texts(arguments[name]):
            message = _refusal(text, hub=place == "hub" and name != "cache_dir")
            if message is not None:
                issues.append(
                    Issue(
                        f"{text!r} {message}",
                        path=("load_dataset_kwargs", name),
                        code=Code.WRONG_HUB_ARGUMENT,
                    )
                )
            elif name == "cache_dir":
                if root is not None and not is_below(folder / text, root):
                    issue = outside(repr(text), folder / text, root)
                    issues.append(replace(issue, path=("load_dataset_kwargs", name)))
            elif place != "hub":
                if (refused := refusal(folder / text, root, repr(text))) is not None:
                    issues.append(replace(refused, path=("load_dataset_kwargs", name)))
                record_file(folder / text)
        if (place == "kind" and name != "cache_dir") or name == "cache_dir":
            arguments[name] = _absolute(arguments[name], folder)
    if issues:
        raise DatasetError(issues)
    return place, path, arguments


def _place(written: str, folder: Path, root: Path | None, issues: list[Issue]) -> tuple[Place, str]:
    if written in KINDS:
        return "kind", written
    is_name = _NAME.fullmatch(written) is not None and ".." not in written and not written.endswith(".py")
    if "://" not in written and "::" not in written and "\x00" not in written and not written.startswith("~"):
        local = folder / written
        if (issue := refusal(local, root, repr(written))) is not None:
            issues.append(replace(issue, path=("path",)))
            return "folder", str(local)
        if is_folder(local):
            record_file(local)
            return "folder", str(local.absolute())
    if not is_name:
        message = (
            f"found {written!r}, expected a name on the hub (owner/name), one of "
            f"{', '.join(KINDS)}, or a folder"
        )
        issues.append(Issue(message, path=("path",), code=Code.WRONG_HUB_ARGUMENT))
    return "hub", written


def _unknown(arguments: Mapping[str, Any]) -> list[Issue]:
    issues = []
    for name in arguments:
        path = ("load_dataset_kwargs", name)
        if name in ("path", "split"):
            issues.append(
                Issue(
                    f"put `{name}` next to `load_dataset_kwargs`, not into it",
                    path=path,
                    code=Code.WRONG_HUB_ARGUMENT,
                )
            )
        elif name not in ARGUMENTS:
            names = ", ".join(sorted(ARGUMENTS - {"trust_remote_code"}))
            issues.append(
                Issue(
                    f"`{name}` is not supported",
                    path=path,
                    hint=f"taken are: {names}",
                    code=Code.WRONG_HUB_ARGUMENT,
                )
            )
    if arguments.get("trust_remote_code"):
        message = "`trust_remote_code` would run code from the hub on this machine"
        issues.append(
            Issue(message, path=("load_dataset_kwargs", "trust_remote_code"), code=Code.WRONG_HUB_ARGUMENT)
        )
    revision = arguments.get("revision")
    if revision is not None and (not isinstance(revision, str) or not _REVISION.fullmatch(revision)):
        message = f"`revision`: found {revision!r}, expected a branch, a tag or a commit"
        issues.append(Issue(message, path=("load_dataset_kwargs", "revision"), code=Code.WRONG_HUB_ARGUMENT))
    return issues


def _refusal(text: str, *, hub: bool) -> str | None:
    """Return why a text is not a valid path, independent of its target."""
    if _is_address(text):
        return "is not a path; for rows at a URL, use a source of type 'url'"
    if "\x00" in text or text.startswith("~"):
        return "is not a supported path"
    if hub and (PurePosixPath(text).is_absolute() or ".." in PurePosixPath(text).parts):
        return "is not a path in a hub dataset"
    return None


def _is_address(text: str) -> bool:
    return REMOTE.search(text) is not None


def _absolute(value: Any, folder: Path) -> Any:
    if isinstance(value, str):
        return str((folder / value).absolute())
    if isinstance(value, Mapping):
        return {name: _absolute(item, folder) for name, item in value.items()}
    return [_absolute(item, folder) for item in value] if isinstance(value, list | tuple) else value


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from _texts(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _texts(item)
