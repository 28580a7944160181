"""Dataset loaders that return guessed rows and open no connection."""

from __future__ import annotations

import importlib
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

from tests.registries.rows import SOURCE, MissingCellError, Row, varied, watched

NUM_ROWS = 3
"""Number of rows in a source."""


class Table(list[Any]):
    """Rows with the interface of the datasets package."""

    info = SimpleNamespace(version=None, features={}, dataset_size=1)

    def __getitem__(self, key: Any) -> Any:
        return [row[key] for row in self] if isinstance(key, str) else super().__getitem__(key)

    @property
    def column_names(self) -> list[str]:
        return list(self[0])

    @property
    def num_rows(self) -> int:
        return len(self)

    def to_list(self) -> list[Any]:
        return list(self)

    def to_pandas(self) -> Any:
        import pandas as pd  # type: ignore[import-untyped]  # has no types

        return pd.DataFrame([dict(row) for row in self])

    def map(self, function: Callable[..., Any], *_: Any, with_indices: bool = False, **__: Any) -> Table:
        def called(row: Any, number: int) -> Any:
            return function(row, number) if with_indices else function(row)

        rows = [(row, called(row, number)) for number, row in enumerate(self)]
        return Table(_merged(row, more) for row, more in rows)

    def filter(self, function: Callable[..., Any], *_: Any, **__: Any) -> Table:
        return Table(row for row in self if function(row))

    def select(self, numbers: Any) -> Table:
        return Table(list.__getitem__(self, number) for number in numbers if number < len(self))

    def save_to_disk(self, *_: Any) -> None:
        """Do nothing."""

    def shuffle(self, *_: Any, **__: Any) -> Table:
        return self

    cast_column = remove_columns = with_format = shuffle


def _merged(row: Any, more: Any) -> Any:
    for key, value in (more or {}).items():
        row[key] = value
    return row


class Splits(dict[str, Table]):
    """Dataset whose split is selected afterwards."""

    def __init__(self, table: Callable[[str], Table]):
        super().__init__()
        self._table = table

    def __missing__(self, split: str) -> Table:
        self[split] = self._table(split)
        return self[split]


class Sources:
    """Tables by name with guessed cells; an unknown source is a missing cell."""

    def __init__(self) -> None:
        self.root = Row({}, (), [])
        self.last: str | None = None

    def start(self, root: Row) -> None:
        """Set other cells for the next attempt."""
        self.root, self.last = root, None

    def table(self, name: str) -> Table:
        name = f"{SOURCE}{name}"
        if name not in self.root:
            raise MissingCellError((name,))
        self.last = name
        cells = dict.__getitem__(self.root, name).plain()
        return Table(watched(varied(cells, number), (name,), self.root.reads) for number in range(NUM_ROWS))


class OfflineError(OSError):
    """Access to a resource outside this process."""


def _offline(*_: Any, **__: Any) -> Any:
    raise OfflineError("its data come from beyond this process, by a way of its own")


@contextmanager
def guessed() -> Iterator[Sources]:
    """Replace all loaders of inspect-evals by guessed rows; nothing connects, starts or waits."""
    with ExitStack() as stack:
        stack.enter_context(warnings.catch_warnings(action="ignore"))  # of third-party code
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        # Read once at import: the real cache is neither used nor changed.
        environment = {"INSPECT_EVALS_CACHE_DIR": folder, "HF_HUB_OFFLINE": "1"}
        stack.enter_context(mock.patch.dict(os.environ, environment))
        importlib.import_module("inspect_evals._registry")  # all, so that no module keeps its own loader
        sources = Sources()
        for original, replacement in _replacements(sources, folder):
            for module, attribute in _places(original):
                stack.enter_context(mock.patch.object(module, attribute, replacement))
        stack.enter_context(mock.patch.object(subprocess, "Popen", _offline))
        stack.enter_context(mock.patch.object(socket.socket, "connect", _offline))
        stack.enter_context(mock.patch.object(socket, "getaddrinfo", _offline))
        stack.enter_context(mock.patch.object(time, "sleep", return_value=None))
        yield sources


def _replacements(sources: Sources, folder: str) -> list[tuple[Any, Any]]:
    """Return loaders and their replacements."""
    import datasets  # type: ignore[import-untyped]  # has no types
    import huggingface_hub
    import inspect_ai.dataset as inspect_datasets
    import inspect_ai.util as inspect_util
    from inspect_ai.dataset._util import data_to_samples, record_to_sample_fn
    from inspect_evals import hf_dataset_script_helper as scripts
    from inspect_evals import utils
    from inspect_evals.utils import huggingface

    def load(path: str, name: str | None = None, *_: Any, split: Any = None, **options: Any) -> Any:
        label = " ".join(str(part) for part in (path, name, options.get("data_files")) if part)
        if split is None:
            return Splits(lambda split: sources.table(f"{label} {split}"))
        return sources.table(f"{label} {split}")

    def dataset(table: str, fields: Any, *, auto_id: bool = False, shuffle_choices: Any = False) -> Any:
        samples = data_to_samples(sources.table(table), record_to_sample_fn(fields), auto_id)
        loaded = inspect_datasets.MemoryDataset(samples, name="guessed")
        if shuffle_choices:
            loaded.shuffle_choices(0)
        return loaded

    def scripted(repo_id: str, record_to_sample: Any, *_: Any, **options: Any) -> Any:
        label = f"{repo_id} {options.get('subset')} {options.get('split')}"
        return dataset(label, record_to_sample, auto_id=bool(options.get("auto_id")))

    def file_loader(original: Callable[..., Any]) -> Callable[..., Any]:
        def load_file(*arguments: Any, **options: Any) -> Any:
            if not arguments:
                named = next(name for name in options if name.endswith("_file") or name == "file_path")
                arguments = (options.pop(named),)
            if Path(arguments[0]).exists():
                return original(*arguments, **options)
            positional = [argument for argument in arguments[1:] if not isinstance(argument, str)]
            fields = options.get("sample_fields", positional[0] if positional else None)
            return dataset(
                str(arguments[0]),
                fields,
                auto_id=bool(options.get("auto_id")),
                shuffle_choices=options.get("shuffle_choices"),
            )

        return load_file

    return [
        (datasets.load_dataset, load),
        (
            datasets.concatenate_datasets,
            lambda tables, **_: Table(row for table in tables for row in table),
        ),
        (inspect_datasets.json_dataset, file_loader(inspect_datasets.json_dataset)),
        (inspect_datasets.csv_dataset, file_loader(inspect_datasets.csv_dataset)),
        (utils.load_json_dataset, file_loader(utils.load_json_dataset)),
        (utils.load_csv_dataset, file_loader(utils.load_csv_dataset)),
        (scripts.load_hf_dataset_with_script, scripted),
        (huggingface.snapshot_download, lambda *_, **__: folder),
        (huggingface_hub.snapshot_download, lambda *_, **__: folder),
        (huggingface_hub.hf_hub_download, _offline),
        (inspect_util.download, lambda *_, **__: None),
    ]


def _places(original: Any) -> list[tuple[Any, str]]:
    """Return the modules that have a function, with its name there."""
    return [
        (module, attribute)
        for name, module in list(sys.modules.items())
        if name.partition(".")[0] in ("inspect_ai", "inspect_evals", "datasets", "huggingface_hub")
        for attribute, value in list(vars(module).items())
        if value is original
    ]


@contextmanager
def limited(seconds: float) -> Iterator[None]:
    """Raise `TimeoutError` after some seconds in this process."""

    def stop(*_: Any) -> None:
        raise TimeoutError(f"it takes more than {seconds:g} s")

    before = signal.signal(signal.SIGVTALRM, stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)
