"""Data sets: where rows come from; and generators: rows made from other rows, templates, code or models."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date, datetime
from typing import Annotated, Any, Literal

from pydantic import Field, model_validator
from pydantic_core import PydanticCustomError

from aigo_bridge.spec.base import (
    DisplayName,
    Filter,
    JsonMap,
    Key,
    SpecModel,
    Templated,
    TemplatedKey,
    TemplatedModelKey,
)
from aigo_bridge.spec.parameters import Parameter

Moment = datetime | date

SAMPLE_TAG = "sample data"
"""Tag of a data set whose rows only stand for those of another one."""
SAMPLE_NOTE = "sample data, not the benchmark"
"""What is said of numbers that were made with such rows."""


ROWS_TAG = "rows of "
"""What a tag begins with that says which published rows were read, and what they were compared with."""


def rows_tags(tags: Iterable[str]) -> tuple[str, ...]:
    """Those tags of a data set that evidence says of its rows."""
    return tuple(tag for tag in tags if tag.startswith(ROWS_TAG))


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
    num_rows: int | None = Field(default=None, ge=0)
    """Our extension: how many rows there are at this revision, after the filters; others are refused. `None`:
    not known."""
    digest: str | None = Field(default=None, pattern="^[0-9a-f]{64}$")
    """Our extension: digest of these rows, as a run on all of them says it; others are refused. `None`: not
    known."""
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
    path: str | None = None
    """Our extension: a file of exported runs, or a folder of such files; left out: the service, which is not
    asked here."""


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
    path: str | None = None
    """Our extension: a file of exported spans, or a folder of such files; left out: the service, which is not
    asked here."""


class OpenTelemetrySource(SpecModel):
    """Our extension: traces from spans of OpenTelemetry, in files of OTLP/JSON."""

    type: Literal["opentelemetry"]
    path: str
    """A file of spans, or a folder of such files."""
    trace_id: str | tuple[str, ...] | None = None
    """Only these traces."""
    session_id: str | tuple[str, ...] | None = None
    """Only these conversations."""
    from_time: Moment | None = None
    """Only traces from this moment on."""
    to_time: Moment | None = None
    """Only traces before this moment."""
    limit: int | None = None
    """First so many traces; `None`: all."""


TraceSource = InspectSource | ClaudeCodeSource | LangSmithSource | PhoenixSource | OpenTelemetrySource
"""Sources whose rows are traces."""

DatasetSource = Annotated[
    LocalSource
    | UrlSource
    | FolderSource
    | HuggingFaceSource
    | InspectSource
    | ClaudeCodeSource
    | LangSmithSource
    | PhoenixSource
    | OpenTelemetrySource,
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


class EmptySource(SpecModel):
    """So many empty rows."""

    type: Literal["empty"]
    num_samples: Templated[Annotated[int, Field(ge=1)]] = 1
    """How many."""


class DatasetSamplesSource(SpecModel):
    """The rows of a data set."""

    type: Literal["dataset_samples"]
    key: TemplatedKey | None
    """The data set."""
    random_seed: Templated[int] | None = None
    """Seed of the order; `None`: as stored."""


class DatasetSampleCombinationsSource(SpecModel):
    """Every combination of one row from each data set, merged."""

    type: Literal["dataset_sample_combinations"]
    keys: tuple[TemplatedKey, ...]
    """The data sets; later columns win."""
    random_seed: Templated[int] | None = None
    """Seed of the order; `None`: as stored."""


class InlineSamplesSource(SpecModel):
    """Rows written in the generator itself."""

    type: Literal["inline_samples"]
    samples: tuple[JsonMap, ...]
    """The rows."""


class TaskResultSource(SpecModel):
    """The samples of an earlier task result."""

    type: Literal["task_result"]
    ai_app_key: TemplatedKey
    """App that holds the result."""
    key: TemplatedKey
    """The result."""


GeneratorSource = Annotated[
    EmptySource
    | DatasetSamplesSource
    | DatasetSampleCombinationsSource
    | InlineSamplesSource
    | TaskResultSource,
    Field(discriminator="type"),
]


class EmptySynthesizer(SpecModel):
    """Leaves rows as they are."""

    type: Literal["empty"]


class LLMSynthesizer(SpecModel):
    """A model writes new columns for each row."""

    type: Literal["llm"]
    model_key: TemplatedModelKey
    """The model."""
    sample_properties: JsonMap
    """JSON schema of each new column."""
    user_prompt_template: str | None = None
    """Template over `source`; `None` when files are sent instead."""
    file_ids_field: str | None = None
    """Column with ids of files to send; `None` when there is a prompt."""
    system_prompt: str | None = None
    """Template over `source`."""
    format_instructions: str | None = None
    """How the model is told to answer; `None`: our usual words."""
    use_structured_outputs: bool = False
    """Whether the model is asked for JSON by schema."""

    @model_validator(mode="after")
    def _prompt_or_files(self) -> LLMSynthesizer:
        if (self.user_prompt_template is None) == (self.file_ids_field is None):
            found = "neither" if self.user_prompt_template is None else "both"
            raise PydanticCustomError(
                "relation",
                "{problem}",
                {"problem": f"expected one of 'user_prompt_template' and 'file_ids_field', found {found}"},
            )
        return self


class TemplateSynthesizer(SpecModel):
    """One new row for every combination of the field values."""

    type: Literal["template"]
    template: str | tuple[str, ...]
    """Template over `source`, with `{field}` slots."""
    fields: dict[str, tuple[Any, ...]]
    """Values of each slot."""


class PythonSynthesizer(SpecModel):
    """The author's code makes rows from each row."""

    type: Literal["python"]
    synthesize_snippet: str
    """Defines `synthesize(source: dict) -> list[dict]`."""


class DropColumnsSynthesizer(SpecModel):
    """Removes columns."""

    type: Literal["drop_columns"]
    columns: tuple[str, ...]
    """Their names."""


class AnswerColumns(SpecModel):
    """Where question and answer are."""

    question: str = "question"
    """Column with the question."""
    answer: str = "expected_answer"
    """Column with the answer."""


class ClaimColumns(AnswerColumns):
    """Where question, answer and claims are."""

    claims: str = "claims"
    """Column with the claims."""


class _ClaimSynthesizer(SpecModel):
    model_key: TemplatedModelKey
    """The model."""
    instructions: str | None = None
    """Further instructions."""


_ANSWER_COLUMNS = AnswerColumns.model_construct(question="question", answer="expected_answer")
_CLAIM_COLUMNS = ClaimColumns.model_construct(question="question", answer="expected_answer", claims="claims")


class ClaimExtractionSynthesizer(_ClaimSynthesizer):
    """Splits answers into claims."""

    type: Literal["claim_extraction"]
    output_field: str = "claims"
    """New column."""
    columns: AnswerColumns | None = _ANSWER_COLUMNS
    """Columns that are read; `None`: the default ones."""

    @property
    def read_columns(self) -> AnswerColumns:
        """Columns that are read."""
        return self.columns or _ANSWER_COLUMNS


class ClaimLabelingSynthesizer(_ClaimSynthesizer):
    """Labels claims."""

    type: Literal["claim_labeling"]
    output_field: str = "claims_labels"
    """New column."""
    columns: ClaimColumns | None = _CLAIM_COLUMNS
    """Columns that are read; `None`: the default ones."""

    @property
    def read_columns(self) -> ClaimColumns:
        """Columns that are read."""
        return self.columns or _CLAIM_COLUMNS


class LinkClaimQuotesSynthesizer(_ClaimSynthesizer):
    """Finds the quotes that support claims."""

    type: Literal["link_claim_quotes"]
    output_field: str = "claim_source_quotes"
    """New column."""
    columns: ClaimColumns | None = _CLAIM_COLUMNS
    """Columns that are read; `None`: the default ones."""

    @property
    def read_columns(self) -> ClaimColumns:
        """Columns that are read."""
        return self.columns or _CLAIM_COLUMNS


class QuestionAnsweringSynthesizer(SpecModel):
    """Writes questions and answers about documents."""

    type: Literal["question_answering"]
    model_key: TemplatedModelKey
    """The model."""
    qa_type: Literal["multiple_choice", "open_ended"]
    """Kind of question."""
    content_column: str = "text"
    """Column with the document."""
    title_column: str = "document_title"
    """Column with its title."""
    summary_column: str = "document_summary"
    """Column with its summary."""
    system_prompt: str | None = None
    """`None`: our usual words."""
    user_prompt: str | None = None
    """`None`: our usual words."""
    additional_instructions: str = "none"
    """Further instructions."""


Synthesizer = Annotated[
    EmptySynthesizer
    | LLMSynthesizer
    | TemplateSynthesizer
    | PythonSynthesizer
    | DropColumnsSynthesizer
    | ClaimExtractionSynthesizer
    | ClaimLabelingSynthesizer
    | LinkClaimQuotesSynthesizer
    | QuestionAnsweringSynthesizer,
    Field(discriminator="type"),
]


class GeneratorDefinition(SpecModel):
    """Rows to start from, and what is done to them, in order."""

    type: Literal["declarative_dataset_generator"] = "declarative_dataset_generator"
    dataset: GeneratorSource
    """Rows to start from."""
    synthesizers: Annotated[tuple[Synthesizer, ...], Field(min_length=1)]
    """Each works on what the one before it made."""


class DatasetGeneratorSpec(SpecModel):
    """A data set generator as written."""

    key: Key
    """Unique name."""
    display_name: DisplayName
    """Shown name."""
    description: str
    """Short text, may be empty."""
    long_description: str | None = None
    """Markdown."""
    secrets: dict[str, str] | None = Field(default=None, repr=False)
    """Values for `<< secrets.NAME >>`."""
    config_spec: tuple[Parameter, ...] = ()
    """Parameters, used as `<< config.KEY >>`."""
    definition: GeneratorDefinition
    """What is done."""
