"""Specifications of datasets, and of generators that create rows from rows, templates, code or models."""

from datetime import date, datetime
from typing import Annotated, Any, Literal, Self

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


class LocalSource(SpecModel):
    """A CSV or JSONL file."""

    type: Literal["local"]
    file_path: str
    """Path relative to the YAML file that contains this source."""
    filters: tuple[Filter, ...] = ()
    """Conditions for rows, applied before subsampling; all must be true."""


class UrlSource(SpecModel):
    """A CSV or JSONL file on the web."""

    type: Literal["url"]
    url: str
    """Address; its path ends in `.csv` or `.jsonl`."""
    filters: tuple[Filter, ...] = ()
    """Conditions for rows, applied before subsampling; all must be true."""


class FolderSource(SpecModel):
    """One row per text file of a folder, recursively."""

    type: Literal["folder"]
    directory_path: str
    """Path relative to the YAML file that contains this source."""
    extension: str | None = None
    """Only files with this extension, with or without the dot; `None`: all files except PDF."""
    filters: tuple[Filter, ...] = ()
    """Conditions for rows, applied before subsampling; all must be true."""


class HuggingFaceSource(SpecModel):
    """Split of a dataset on the Hugging Face Hub."""

    type: Literal["huggingface"]
    path: str
    """Repository, for example `owner/name`."""
    split: str
    """Name of the split."""
    load_dataset_kwargs: JsonMap = Field(default_factory=dict)
    """Additional arguments of `datasets.load_dataset`: `name`, `revision`, `data_files` …"""
    num_rows: int | None = Field(default=None, ge=0)
    """Extension: expected number of rows after the filters; a different number is an error."""
    digest: str | None = Field(default=None, pattern="^[0-9a-f]{64}$")
    """Extension: expected digest of the rows, printed by a run on all rows; other rows are an error."""
    filters: tuple[Filter, ...] = ()
    """Conditions for rows, applied before subsampling; all must be true."""


class InspectSource(SpecModel):
    """Traces from Inspect AI logs."""

    type: Literal["inspect_ai"]
    path: str
    """Log file, or a folder of logs."""
    limit: int | None = None
    """Maximum number of samples; `None`: all."""


class ClaudeCodeSource(SpecModel):
    """Traces from Claude Code sessions."""

    type: Literal["claude_code"]
    path: str | None = None
    """Folder of session files; required to run the task."""
    session_id: str | None = None
    """Only this session."""
    from_time: Moment | None = None
    """Only sessions at or after this time."""
    to_time: Moment | None = None
    """Only sessions before this time."""
    limit: int | None = None
    """Maximum number of sessions; `None`: all."""


class LangSmithSource(SpecModel):
    """Traces from a LangSmith project or dataset."""

    type: Literal["langsmith"]
    project: str | None = None
    """Name of the project."""
    dataset: str | None = None
    """Name of the dataset."""
    api_key: str | None = Field(default=None, repr=False)
    """API key, usually an environment variable: `$LANGSMITH_API_KEY`."""
    api_url: str | None = None
    """Address of the service; `None`: the public service."""
    filter: str | None = None
    """Filter expression in LangSmith's query language."""
    from_time: Moment | None = None
    """Only traces at or after this time."""
    to_time: Moment | None = None
    """Only traces before this time."""
    limit: int | None = None
    """Maximum number of traces; `None`: all."""
    tags: tuple[str, ...] | None = None
    """Only traces with these tags."""
    path: str | None = None
    """Extension: file of exported runs, or a folder of such files; required to run the task."""


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
    """Only traces at or after this time."""
    to_time: Moment | None = None
    """Only traces before this time."""
    limit: int | None = None
    """Maximum number of traces; `None`: all."""
    tags: tuple[str, ...] | None = None
    """Only traces with these tags."""
    metadata: dict[str, str] | None = None
    """Only traces with these attributes."""
    api_key: str | None = Field(default=None, repr=False)
    """API key, usually an environment variable."""
    base_url: str | None = None
    """Address of the service."""
    path: str | None = None
    """Extension: file of exported spans, or a folder of such files; required to run the task."""


class OpenTelemetrySource(SpecModel):
    """Extension: traces from OpenTelemetry spans in OTLP/JSON files."""

    type: Literal["opentelemetry"]
    path: str
    """File of spans, or a folder of such files."""
    trace_id: str | tuple[str, ...] | None = None
    """Only these traces."""
    session_id: str | tuple[str, ...] | None = None
    """Only these conversations."""
    from_time: Moment | None = None
    """Only traces at or after this time."""
    to_time: Moment | None = None
    """Only traces before this time."""
    limit: int | None = None
    """Maximum number of traces; `None`: all."""


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
    """Whether to record debug information."""
    include_io: bool
    """Whether to also record model inputs and outputs."""


class GeneratorSpecification(SpecModel):
    """Request to a dataset generator."""

    dataset_generator_key: str
    """Key of the generator."""
    num_samples: int = Field(ge=1)
    """Number of samples to generate."""
    dataset_generator_config: JsonMap
    """Values for the generator's `config_spec`."""
    debug: GeneratorDebug | None = None
    """Debug information to record."""


class DatasetSpec(SpecModel):
    """Dataset file: a source of rows, or a request to generate them."""

    key: Key
    """Unique name."""
    display_name: DisplayName
    """Display name."""
    description: str | None = None
    """Short text."""
    long_description: str | None = None
    """Long description in Markdown."""
    source: DatasetSource | None = None
    """Source of the rows; required unless you set `generator_specification`."""
    generator_specification: GeneratorSpecification | None = None
    """Generator of the rows; required unless you set `source`."""
    tags: tuple[str, ...] = ()
    """Free labels; `sample data` marks made-up rows that replace the real benchmark."""


class EmptySource(SpecModel):
    """A number of empty rows."""

    type: Literal["empty"]
    num_samples: Templated[Annotated[int, Field(ge=1)]] = 1
    """Number of rows."""


class DatasetSamplesSource(SpecModel):
    """Rows of a dataset."""

    type: Literal["dataset_samples"]
    key: TemplatedKey | None
    """Key of the dataset."""
    random_seed: Templated[int] | None = None
    """Seed for a random order; `None`: stored order."""


class DatasetSampleCombinationsSource(SpecModel):
    """Every combination of one row from each dataset, merged."""

    type: Literal["dataset_sample_combinations"]
    keys: tuple[TemplatedKey, ...]
    """Keys of the datasets; if they share a column, the last one wins."""
    random_seed: Templated[int] | None = None
    """Seed for a random order; `None`: stored order."""


class InlineSamplesSource(SpecModel):
    """Rows written in the generator itself."""

    type: Literal["inline_samples"]
    samples: tuple[JsonMap, ...]
    """Rows."""


class TaskResultSource(SpecModel):
    """The samples of an earlier task result."""

    type: Literal["task_result"]
    ai_app_key: TemplatedKey
    """Key of the app that contains the result."""
    key: TemplatedKey
    """Key of the result."""


GeneratorSource = Annotated[
    EmptySource
    | DatasetSamplesSource
    | DatasetSampleCombinationsSource
    | InlineSamplesSource
    | TaskResultSource,
    Field(discriminator="type"),
]


class EmptySynthesizer(SpecModel):
    """Leaves rows unchanged."""

    type: Literal["empty"]


class LLMSynthesizer(SpecModel):
    """A model writes new columns for each row."""

    type: Literal["llm"]
    model_key: TemplatedModelKey
    """Key of the model."""
    sample_properties: JsonMap
    """JSON Schema of each new column."""
    user_prompt_template: str | None = None
    """Prompt; a template over `source`. Required unless you set `file_ids_field`."""
    file_ids_field: str | None = None
    """Column that contains the ids of files to send instead of a prompt."""
    system_prompt: str | None = None
    """System prompt; a template over `source`."""
    format_instructions: str | None = None
    """Instructions for the format of the answer; `None`: built-in instructions."""
    use_structured_outputs: bool = False
    """Whether to request the answer as JSON with a schema."""

    @model_validator(mode="after")
    def _prompt_or_files(self) -> Self:
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
    """Template over `source`, with `{field}` placeholders."""
    fields: dict[str, tuple[Any, ...]]
    """Values of each placeholder."""


class PythonSynthesizer(SpecModel):
    """Creates rows from each row with task code."""

    type: Literal["python"]
    synthesize_snippet: str
    """Defines `synthesize(source: dict) -> list[dict]`."""


class DropColumnsSynthesizer(SpecModel):
    """Removes columns."""

    type: Literal["drop_columns"]
    columns: tuple[str, ...]
    """Columns to remove."""


class AnswerColumns(SpecModel):
    """Columns that contain question and answer."""

    question: str = "question"
    """Column that contains the question."""
    answer: str = "expected_answer"
    """Column that contains the answer."""


class ClaimColumns(AnswerColumns):
    """Columns that contain question, answer and claims."""

    claims: str = "claims"
    """Column that contains the claims."""


class _ClaimSynthesizer(SpecModel):
    model_key: TemplatedModelKey
    """Key of the model."""
    instructions: str | None = None
    """Additional instructions."""


_ANSWER_COLUMNS = AnswerColumns.model_construct(question="question", answer="expected_answer")
_CLAIM_COLUMNS = ClaimColumns.model_construct(question="question", answer="expected_answer", claims="claims")


class ClaimExtractionSynthesizer(_ClaimSynthesizer):
    """Splits answers into claims."""

    type: Literal["claim_extraction"]
    output_field: str = "claims"
    """Name of the new column."""
    columns: AnswerColumns | None = _ANSWER_COLUMNS
    """Columns to read."""

    @property
    def read_columns(self) -> AnswerColumns:
        """Columns that are read."""
        return self.columns or _ANSWER_COLUMNS


class ClaimLabelingSynthesizer(_ClaimSynthesizer):
    """Labels claims."""

    type: Literal["claim_labeling"]
    output_field: str = "claims_labels"
    """Name of the new column."""
    columns: ClaimColumns | None = _CLAIM_COLUMNS
    """Columns to read."""

    @property
    def read_columns(self) -> ClaimColumns:
        """Columns that are read."""
        return self.columns or _CLAIM_COLUMNS


class LinkClaimQuotesSynthesizer(_ClaimSynthesizer):
    """Finds the quotes that support claims."""

    type: Literal["link_claim_quotes"]
    output_field: str = "claim_source_quotes"
    """Name of the new column."""
    columns: ClaimColumns | None = _CLAIM_COLUMNS
    """Columns to read."""

    @property
    def read_columns(self) -> ClaimColumns:
        """Columns that are read."""
        return self.columns or _CLAIM_COLUMNS


class QuestionAnsweringSynthesizer(SpecModel):
    """Writes questions and answers about documents."""

    type: Literal["question_answering"]
    model_key: TemplatedModelKey
    """Key of the model."""
    qa_type: Literal["multiple_choice", "open_ended"]
    """Kind of question."""
    content_column: str = "text"
    """Column that contains the document."""
    title_column: str = "document_title"
    """Column that contains the document title."""
    summary_column: str = "document_summary"
    """Column that contains the document summary."""
    system_prompt: str | None = None
    """System prompt; `None`: a built-in prompt."""
    user_prompt: str | None = None
    """User prompt; `None`: a built-in prompt."""
    additional_instructions: str = "none"
    """Additional instructions."""


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
    """Initial rows, and the steps that process them in order."""

    type: Literal["declarative_dataset_generator"] = "declarative_dataset_generator"
    dataset: GeneratorSource
    """Initial rows."""
    synthesizers: Annotated[tuple[Synthesizer, ...], Field(min_length=1)]
    """Steps in order; each one processes the rows of the previous step."""


class DatasetGeneratorSpec(SpecModel):
    """Dataset generator file."""

    key: Key
    """Unique name."""
    display_name: DisplayName
    """Display name."""
    description: str
    """Short text; can be empty."""
    long_description: str | None = None
    """Long description in Markdown."""
    secrets: dict[str, str] | None = Field(default=None, repr=False)
    """Values for `<< secrets.NAME >>`."""
    config_spec: tuple[Parameter, ...] = ()
    """Parameters, used as `<< config.KEY >>`."""
    definition: GeneratorDefinition
    """Rows and synthesizers."""
