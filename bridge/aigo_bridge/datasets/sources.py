"""A data set as written → its rows, whatever the source."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from aigo_bridge.datasets.files import load_file
from aigo_bridge.datasets.filtering import compile_filters
from aigo_bridge.datasets.folder_table import FolderTable
from aigo_bridge.datasets.generating import GeneratorTools, StartRows, generate
from aigo_bridge.datasets.json_tables import ObjectTable
from aigo_bridge.datasets.rows import Missing, Rows, Selection
from aigo_bridge.datasets.tables import collect
from aigo_bridge.datasets.web import fetched
from aigo_bridge.errors import DatasetError, Issue
from aigo_bridge.roots import is_below, outside
from aigo_bridge.spec.datasets import (
    DatasetSource,
    DatasetSpec,
    FolderSource,
    GeneratorSpecification,
    HuggingFaceSource,
    LocalSource,
    UrlSource,
)
from aigo_bridge.spec.generators import DatasetGeneratorSpec

TraceReader = Callable[[DatasetSource, Path], Iterable[Mapping[str, Any]]]
"""Rows of a trace source (one per trace, column `trace`); the second argument is the folder for relative paths."""

_ALL = Selection()


@dataclass(frozen=True)
class DatasetTools:
    """What some data sets need beyond their own files; everything is optional."""

    cache: Path | None = None
    """Folder of downloads; `None`: the user's cache folder."""
    generators: Mapping[str, DatasetGeneratorSpec] = field(default_factory=dict)
    """Data set generators by key."""
    start: StartRows = field(default_factory=StartRows)
    """Rows that generators start with."""
    generation: GeneratorTools = field(default_factory=GeneratorTools)
    """Model calls and snippets for generators."""
    read_traces: TraceReader | None = None
    """Reader of trace sources; the core has none of its own."""


_NO_TOOLS = DatasetTools()


def load_dataset(
    spec: DatasetSpec,
    *,
    base: Path,
    root: Path | None = None,
    selection: Selection = _ALL,
    missing: Missing = "nan",
    tools: DatasetTools = _NO_TOOLS,
) -> Rows:
    """The selected rows of a data set.

    `base` is the folder of the file in which the source is written: relative paths start there. With a `root`, no
    path may lead out of it, links included.

    Raises `DatasetError` with all problems of all rows, and `TemplateError` for a filter that is not a template.
    """
    source = spec.source
    if source is None:
        if spec.generator_specification is None:
            raise DatasetError(f"the data set {spec.key!r} has neither a source nor a generator")
        return _generated(spec.generator_specification, selection, missing, tools)
    if isinstance(source, LocalSource):
        path = _inside(base / source.file_path, root)
        return load_file(path, selection, filters=source.filters, missing=missing)
    if isinstance(source, UrlSource):
        return load_file(fetched(source.url, tools.cache), selection, filters=source.filters, missing=missing)
    if isinstance(source, FolderSource):
        folder = _inside(base / source.directory_path, root)
        files = FolderTable(folder, source.extension, root=root)
        filters = compile_filters(source.filters)
        rows = collect(files, selection, filters=filters, missing=missing, file=str(folder))
        # That files with equal content have equal ids is no doubt about the author's data.
        return replace(rows, warnings=tuple(files.warnings))
    if isinstance(source, HuggingFaceSource):
        from aigo_bridge.datasets.hub import hub_table

        filters = compile_filters(source.filters)
        return collect(
            hub_table(source, key=spec.key, root=root),
            selection,
            filters=filters,
            missing=missing,
            file=source.path,
        )
    if tools.read_traces is None:
        raise DatasetError(
            [
                Issue(
                    f"the data set {spec.key!r} takes traces from {source.type!r}, which cannot be read here",
                    hint="import the traces into a JSONL file and name that as a local source",
                )
            ]
        )
    table = ObjectTable(tools.read_traces(source, base))
    return collect(table, selection, missing=missing, file=spec.key)


def _generated(
    request: GeneratorSpecification, selection: Selection, missing: Missing, tools: DatasetTools
) -> Rows:
    generator = tools.generators.get(request.dataset_generator_key)
    if generator is None:
        known = ", ".join(tools.generators) or "none"
        message = f"the data set generator {request.dataset_generator_key!r} is not known; known: {known}"
        raise DatasetError(message)
    made, warnings = generate(generator, request, tools.start, tools.generation)
    rows = collect(ObjectTable(made), selection, missing=missing, file=generator.key)
    return replace(rows, warnings=(*rows.warnings, *warnings))


def _inside(path: Path, root: Path | None) -> Path:
    if root is not None and not is_below(path, root):
        raise DatasetError([outside("the path", path, root, str(path))])
    return path
