"""Tags, datasets, models and tasks as AI GO stores them: how a model is reached, how a dataset was
generated.
"""

from typing import Annotated, Any, Literal

from pydantic import Field

from aigo_bridge.dtypes.base import (
    AtLeastOne,
    Color,
    HeaderText,
    Key,
    LFBaseModel,
    ModelKey,
    NonEmpty,
    SecretName,
)
from aigo_bridge.dtypes.enums import (
    ExecutionStatus,
    IntegrationModelProviderId,
    MLTask,
    ResultStatus,
    TaskProvider,
    TrustChainVerification,
)
from aigo_bridge.dtypes.task_templates import ParameterSpec, TaskDefinition


class Secret(LFBaseModel):
    """Points to a secret by name; the secret itself is never part of a file."""

    name: SecretName
    """Name of the secret."""


class CertificateValidationContext(LFBaseModel):
    """How the certificate of a server is checked."""

    trusted_ca: str | Secret | None = None
    """PEM certificates of the trusted authorities in base64, or the secret that holds them."""
    trust_chain_verification: TrustChainVerification | None = None
    """Whether a trusted authority has to vouch for the server; `None` means yes."""


class TLSContext(LFBaseModel):
    """How a TLS connection is set up."""

    validation_context: CertificateValidationContext | None = None
    """How the server's certificate is checked."""


ModelProviderId = IntegrationModelProviderId
"""The provider of a model."""


class ModelCustomConnectionConfig(LFBaseModel):
    """A model behind an address of one's own."""

    connection_type: Literal["custom_connection"]
    """Always `custom_connection`."""
    adapter_id: str
    """Identifier of the adapter between AI GO's form and the endpoint's."""
    url: str
    """Address of the endpoint."""
    api_key: str | Secret | None = Field(default=None, repr=False)
    """Sent as bearer token: the text itself (dumps show it) or the secret that holds it."""
    model_key: str | None = None
    """Name of the model for endpoints that want it in the body."""
    tls_context: TLSContext | None = None
    """How the connection is secured."""
    custom_headers: dict[str, HeaderText | float | bool | Secret] | None = None
    """Further HTTP headers."""


class CustomInferenceModelConfig(LFBaseModel):
    """A model that is reached by a Python snippet."""

    adapter_id: str
    """Identifier of the adapter between AI GO's form and the snippet's."""
    connection_type: Literal["custom_inference"]
    """Always `custom_inference`."""
    run_inference_snippet: str
    """Python source that calls the model."""
    environment: dict[str, str | float | bool | Secret]
    """Environment variables for the snippet."""
    timeout: Annotated[float, Field(ge=1)]
    """Seconds the snippet may take."""


class ModelProviderConnectionConfig(LFBaseModel):
    """A model of a provider that AI GO knows."""

    connection_type: Literal["provider_connection"]
    """Always `provider_connection`."""
    provider_id: ModelProviderId
    """The provider."""
    model_key: str
    """Name of the model at the provider."""


class ConfigurationDatasetGenerationError(LFBaseModel):
    """The generator was not set up rightly."""

    stage: Literal["configuration"]
    """Always `configuration`."""
    error_type: str
    """Kind of error."""
    message: str
    """Error message."""


class DataSourceDatasetGenerationError(LFBaseModel):
    """The source of the samples failed."""

    stage: Literal["data_source"]
    """Always `data_source`."""
    error_type: str
    """Kind of error."""
    message: str
    """Error message."""
    iteration: int
    """Number of the round in which it failed."""


class SynthesizerDatasetGenerationError(LFBaseModel):
    """A step that rewrites samples failed."""

    stage: Literal["synthesizer"]
    """Always `synthesizer`."""
    error_type: str
    """Kind of error."""
    message: str
    """Error message."""
    source_sample: dict[str, Any]
    """The sample it failed on."""
    synthesizer_index: int
    """Position of the step."""


DatasetGenerationError = (
    ConfigurationDatasetGenerationError | SynthesizerDatasetGenerationError | DataSourceDatasetGenerationError
)
"""Something that went wrong while a dataset was generated."""


class DatasetGenerationDebugOptions(LFBaseModel):
    """What is recorded about the generation."""

    enabled: bool
    """Whether the way of each sample through the steps is recorded."""
    include_io: bool
    """Whether the model calls of each step are recorded too; needs `enabled`."""


class DatasetGenerationRequest(LFBaseModel):
    """What was asked of the generator."""

    dataset_generator_config: dict[str, Any]
    """Settings of the generator."""
    num_samples: AtLeastOne
    """Samples to generate."""
    debug: DatasetGenerationDebugOptions | None = None
    """What to record about the generation."""


class ExecutionProgress(LFBaseModel):
    """How far a job is."""

    progress: Annotated[float, Field(ge=0, le=1)]
    """Share that is done, 0 to 1."""
    num_total_samples: int | None = None
    """Samples in all; `None` when unknown."""
    num_processed_samples: int | None = None
    """Samples done; `None` when unknown."""
    num_samples_with_errors: int | None = None
    """Samples that failed; `None` when unknown."""


class DatasetGenerationMetadata(LFBaseModel):
    """How a dataset came about."""

    dataset_generator_id: str | None = None
    """Identifier of the generator."""
    execution_status: ExecutionStatus
    """Where the generation stands."""
    dataset_generation_id: str
    """Identifier of the generation."""
    dataset_generation_request: DatasetGenerationRequest
    """What was asked for."""
    progress: ExecutionProgress | None = None
    """How far it is."""
    result_status: ResultStatus | None = None
    """How it ended; `None` before that."""
    errors: list[DatasetGenerationError] | None = None
    """Error message."""


class DatasetProgressState(LFBaseModel):
    """Samples of a dataset in the making."""

    num_total_samples: int | None
    """Samples in all; `None` when unknown."""
    num_samples_generated: int | None
    """Samples done; `None` when unknown."""


class TaskProgressState(LFBaseModel):
    """Samples of a task that is running."""

    num_total_samples: int | None
    """Samples in all; `None` when unknown."""
    num_processed_samples: int | None
    """Samples done; `None` when unknown."""
    num_samples_with_errors: int | None
    """Samples that failed; `None` when unknown."""


class StoredTag(LFBaseModel):
    """A word to find things by."""

    id: str
    """Identifier."""
    value: str
    """The word."""
    color: Color
    """Colour in which it is shown."""


class DatasetMetadata(LFBaseModel):
    """What is known about a dataset's content."""

    num_rows: int
    """Number of rows."""
    columns: list[str]
    """Names of the columns."""
    download_url: str
    """Address of the rows as JSON lines."""
    data_version: str
    """Version of the rows."""


class StoredDataset(LFBaseModel):
    """A dataset."""

    display_name: NonEmpty
    """Name as shown."""
    description: str | None = None
    """What it is."""
    long_description: str | None = None
    """What it is, at length, in Markdown."""
    key: Key
    """Key."""
    id: str
    """Identifier."""
    dataset_metadata: DatasetMetadata | None = None
    """Its content."""
    dataset_generation_metadata: DatasetGenerationMetadata | None = None
    """How it was generated; `None` when it was not."""
    created_at: int | None = None
    """Unix time in seconds."""
    updated_at: int | None = None
    """Unix time in seconds."""
    tags: list[StoredTag] = Field(default=[])
    """Its tags."""


class StoredModel(LFBaseModel):
    """A model."""

    id: str
    """Identifier."""
    display_name: NonEmpty
    """Name as shown."""
    key: ModelKey
    """Key, with the provider in front of `$` if it has one."""
    description: str | None = None
    """What it is."""
    rate_limit: int | None = None
    """Most requests per minute; `None` for no limit."""
    max_concurrent_requests: AtLeastOne | None = None
    """Most requests at a time; `None` for no limit."""
    task: MLTask
    """What it does."""
    config: ModelCustomConnectionConfig | CustomInferenceModelConfig | ModelProviderConnectionConfig
    """How it is reached."""
    adapter_id: str
    """Identifier of the adapter between AI GO's form and the endpoint's."""
    created_at: int | None = None
    """Unix time in seconds."""
    updated_at: int | None = None
    """Unix time in seconds."""


class StoredTask(LFBaseModel):
    """A task."""

    id: str
    """Identifier."""
    key: Key
    """Key."""
    display_name: NonEmpty
    """Name as shown."""
    description: str
    """What it measures; may be empty."""
    long_description: str | None = None
    """What it measures, at length, in Markdown."""
    tasks: list[MLTask] = Field(default=[])
    """The kinds of models it is for; empty for any."""
    config_spec: list[ParameterSpec]
    """Its parameters."""
    definition: Annotated[TaskDefinition, Field(discriminator="type")]
    """What it does."""
    provider: TaskProvider
    """Author of the message."""
    tags: list[StoredTag]
    """Its tags."""
    created_at: int | None = None
    """Unix time in seconds."""
    updated_at: int | None = None
    """Unix time in seconds."""
