"""Data sets: where rows come from."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date, datetime
from typing import Annotated, Literal

from pydantic import Field

from aigo_bridge.spec.base import DisplayName, JsonMap, Key, SpecModel
from aigo_bridge.spec.filters import Filter

Moment = datetime | date

SAMPLE_TAG = "sample data"
"""Tag of a data set whose rows only stand for those of another one."""
SAMPLE_NOTE = "sample data, not the benchmark"
"""What is said of numbers that were made with such rows."""


def is_sample_data(tags: Iterable[str]) -> bool:
    """Whether tags say that the rows stand for those of another data set."""
    return any(tag.strip().lower() == SAMPLE_TAG for tag in tags)


class LocalSource(SpecModel):
    """A CSV or JSONL file."""

    type: Literal["local"]
    file_path: str
    """Relative to the YAML file that holds this source."""
    filters: tuple[Filter, ...] = ()
    """All must hold; applied before any subsampling."""


class UrlSource(SpecModel):
    """A CSV or JSONL file on the web."""

    type: Literal["url"]
    url: str
    """Its path ends in `.csv` or `.jsonl`."""
    filters: tuple[Filter, ...] = ()
    """All must hold; applied before any subsampling."""


class FolderSource(SpecModel):
    """One row per text file of a folder, recursively."""

    type: Literal["folder"]
    directory_path: str
    """Relative to the YAML file that holds this source."""
    extension: str | None = None
    """Only files with this ending, with or without the dot; `None`: all but PDF."""
    filters: tuple[Filter, ...] = ()
    """All must hold; applied before any subsampling."""


class HuggingFaceSource(SpecModel):
    """A split of a data set on the Hugging Face hub."""

    type: Literal["huggingface"]
    path: str
    """Repository, e.g. `owner/name`."""
    split: str
    """Name of the split."""
    load_dataset_kwargs: JsonMap = Field(default_factory=dict)
    """Further arguments of `datasets.load_dataset`: `name`, `revision`, `data_files` …"""
    filters: tuple[Filter, ...] = ()
    """All must hold; applied before any subsampling."""


class InspectSource(SpecModel):
    """Traces from Inspect AI logs."""

    type: Literal["inspect_ai"]
    path: str
    """A log file or a folder of logs."""
    limit: int | None = None
    """First so many samples; `None`: all."""


class ClaudeCodeSource(SpecModel):
    """Traces from Claude Code sessions."""

    type: Literal["claude_code"]
    path: str | None = None
    """Folder of session files; `None`: the tool's own."""
    session_id: str | None = None
    """Only this session."""
    from_time: Moment | None = None
    """Only sessions from this moment on."""
    to_time: Moment | None = None
    """Only sessions before this moment."""
    limit: int | None = None
    """First so many sessions; `None`: all."""


class LangSmithSource(SpecModel):
    """Traces from a LangSmith project or data set."""

    type: Literal["langsmith"]
    project: str | None = None
    """Name of the project."""
    dataset: str | None = None
    """Name of the data set."""
    api_key: str | None = Field(default=None, repr=False)
    """Usually an environment variable, `$LANGSMITH_API_KEY`."""
    api_url: str | None = None
    """Address of the service; `None`: the public one."""
    filter: str | None = None
    """Filter expression in LangSmith's own language."""
    from_time: Moment | None = None
    """Only traces from this moment on."""
    to_time: Moment | None = None
    """Only traces before this moment."""
    limit: int | None = None
    """First so many traces; `None`: all."""
    tags: tuple[str, ...] | None = None
    """Only traces with these tags."""


class PhoenixSource(SpecModel):
    """Traces from a Phoenix project."""

    type: Literal["phoenix"]
    project: str
    """Name of the project."""
    trace_id: str | tuple[str, ...] | None = None
    """Only these traces."""
    session_id: str | tuple[str, ...] | None = None
    """Only these sessions."""
    from_time: Moment | None = None
    """Only traces from this moment on."""
    to_time: Moment | None = None
    """Only traces before this moment."""
    limit: int | None = None
    """First so many traces; `None`: all."""
    tags: tuple[str, ...] | None = None
    """Only traces with these tags."""
    metadata: dict[str, str] | None = None
    """Only traces with these attributes."""
    api_key: str | None = Field(default=None, repr=False)
    """Usually an environment variable."""
    base_url: str | None = None
    """Address of the service."""


DatasetSource = Annotated[
    LocalSource
    | UrlSource
    | FolderSource
    | HuggingFaceSource
    | InspectSource
    | ClaudeCodeSource
    | LangSmithSource
    | PhoenixSource,
    Field(discriminator="type"),
]


class GeneratorDebug(SpecModel):
    """What a generator records about itself."""

    enabled: bool
    """Whether to record anything."""
    include_io: bool
    """Whether to record model inputs and outputs as well."""


class GeneratorSpecification(SpecModel):
    """A request to a data set generator."""

    dataset_generator_key: str
    """Key of the generator."""
    num_samples: int = Field(ge=1)
    """How many samples to make."""
    dataset_generator_config: JsonMap
    """Values for the generator's `config_spec`."""
    debug: GeneratorDebug | None = None
    """What to record while generating; `None`: nothing."""


class DatasetSpec(SpecModel):
    """A data set as written: a source of rows, or a request to generate them."""

    key: Key
    """Unique name."""
    display_name: DisplayName
    """Shown name."""
    description: str | None = None
    """Short text."""
    long_description: str | None = None
    """Markdown."""
    source: DatasetSource | None = None
    """Where rows come from; `None` when they are generated."""
    generator_specification: GeneratorSpecification | None = None
    """How rows are generated; `None` when they come from a source."""
    tags: tuple[str, ...] = ()
    """Free labels; `sample data` says that the rows are made up, and are not the benchmark."""
