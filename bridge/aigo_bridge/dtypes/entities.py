"""Tags, datasets, models and tasks in AI GO's stored form, with connections and dataset generation."""

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
    """Reference to a secret by name. A file never contains the secret itself."""

    name: SecretName
    """Name of the secret."""


class CertificateValidationContext(LFBaseModel):
    """Validation of a server certificate."""

    trusted_ca: str | Secret | None = None
    """PEM certificates of the trusted authorities in base64, or the secret that contains them."""
    trust_chain_verification: TrustChainVerification | None = None
    """Whether a trusted authority must have signed the certificate; `None` means yes."""


class TLSContext(LFBaseModel):
    """Settings of a TLS connection."""

    validation_context: CertificateValidationContext | None = None
    """Validation of the server certificate."""


ModelProviderId = IntegrationModelProviderId
"""Provider of a model."""


class ModelCustomConnectionConfig(LFBaseModel):
    """Connection to a model at a custom URL."""

    connection_type: Literal["custom_connection"]
    """Always `custom_connection`."""
    adapter_id: str
    """Identifier of the adapter that converts between AI GO's format and the endpoint's format."""
    url: str
    """URL of the endpoint."""
    api_key: str | Secret | None = Field(default=None, repr=False)
    """Bearer token: the text itself (visible in dumps) or the secret that contains it."""
    model_key: str | None = None
    """Name of the model for endpoints that require it in the request body."""
    tls_context: TLSContext | None = None
    """TLS settings of the connection."""
    custom_headers: dict[str, HeaderText | float | bool | Secret] | None = None
    """Additional HTTP headers."""


class CustomInferenceModelConfig(LFBaseModel):
    """Connection to a model through a Python snippet."""

    adapter_id: str
    """Identifier of the adapter that converts between AI GO's format and the snippet's format."""
    connection_type: Literal["custom_inference"]
    """Always `custom_inference`."""
    run_inference_snippet: str
    """Python source that calls the model."""
    environment: dict[str, str | float | bool | Secret]
    """Environment variables for the snippet."""
    timeout: Annotated[float, Field(ge=1)]
    """Maximum duration of the snippet in seconds."""


class ModelProviderConnectionConfig(LFBaseModel):
    """Connection to a model of a provider that AI GO supports."""

    connection_type: Literal["provider_connection"]
    """Always `provider_connection`."""
    provider_id: ModelProviderId
    """Provider of the model."""
    model_key: str
    """Name of the model at the provider."""


class ConfigurationDatasetGenerationError(LFBaseModel):
    """Error in the configuration of a dataset generator."""

    stage: Literal["configuration"]
    """Always `configuration`."""
    error_type: str
    """Kind of error."""
    message: str
    """Error message."""


class DataSourceDatasetGenerationError(LFBaseModel):
    """Error in the data source of a dataset generator."""

    stage: Literal["data_source"]
    """Always `data_source`."""
    error_type: str
    """Kind of error."""
    message: str
    """Error message."""
    iteration: int
    """Number of the iteration in which it failed."""


class SynthesizerDatasetGenerationError(LFBaseModel):
    """Error in a synthesizer of a dataset generator."""

    stage: Literal["synthesizer"]
    """Always `synthesizer`."""
    error_type: str
    """Kind of error."""
    message: str
    """Error message."""
    source_sample: dict[str, Any]
    """Sample for which the synthesizer failed."""
    synthesizer_index: int
    """Position of the synthesizer."""


DatasetGenerationError = (
    ConfigurationDatasetGenerationError | SynthesizerDatasetGenerationError | DataSourceDatasetGenerationError
)
"""Error during the generation of a dataset."""


class DatasetGenerationDebugOptions(LFBaseModel):
    """Recording options of a dataset generation."""

    enabled: bool
    """Whether the steps of each sample are recorded."""
    include_io: bool
    """Whether the model calls of each step are also recorded; needs `enabled`."""


class DatasetGenerationRequest(LFBaseModel):
    """Request for generating a dataset."""

    dataset_generator_config: dict[str, Any]
    """Settings of the generator."""
    num_samples: AtLeastOne
    """Number of samples to generate."""
    debug: DatasetGenerationDebugOptions | None = None
    """Recording options."""


class ExecutionProgress(LFBaseModel):
    """Progress of a job."""

    progress: Annotated[float, Field(ge=0, le=1)]
    """Completed proportion, 0 to 1."""
    num_total_samples: int | None = None
    """Total number of samples; `None` if unknown."""
    num_processed_samples: int | None = None
    """Number of processed samples; `None` if unknown."""
    num_samples_with_errors: int | None = None
    """Number of failed samples; `None` if unknown."""


class DatasetGenerationMetadata(LFBaseModel):
    """Generation of a dataset."""

    dataset_generator_id: str | None = None
    """Identifier of the generator."""
    execution_status: ExecutionStatus
    """Status of the generation."""
    dataset_generation_id: str
    """Identifier of the generation."""
    dataset_generation_request: DatasetGenerationRequest
    """Request for the generation."""
    progress: ExecutionProgress | None = None
    """Progress of the generation."""
    result_status: ResultStatus | None = None
    """Final status of the generation; `None` until it has ended."""
    errors: list[DatasetGenerationError] | None = None
    """Errors of the generation."""


class DatasetProgressState(LFBaseModel):
    """Progress of a dataset generation."""

    num_total_samples: int | None
    """Total number of samples; `None` if unknown."""
    num_samples_generated: int | None
    """Number of generated samples; `None` if unknown."""


class TaskProgressState(LFBaseModel):
    """Progress of a running task."""

    num_total_samples: int | None
    """Total number of samples; `None` if unknown."""
    num_processed_samples: int | None
    """Number of processed samples; `None` if unknown."""
    num_samples_with_errors: int | None
    """Number of failed samples; `None` if unknown."""


class StoredTag(LFBaseModel):
    """Label for searching."""

    id: str
    """Identifier of the tag."""
    value: str
    """Text of the tag."""
    color: Color
    """Display colour of the tag."""


class DatasetMetadata(LFBaseModel):
    """Content of a dataset."""

    num_rows: int
    """Number of rows."""
    columns: list[str]
    """Names of the columns."""
    download_url: str
    """URL of the rows as JSON Lines."""
    data_version: str
    """Version of the rows."""


class StoredDataset(LFBaseModel):
    """Dataset."""

    display_name: NonEmpty
    """Display name."""
    description: str | None = None
    """Short description of the dataset."""
    long_description: str | None = None
    """Long description of the dataset, in Markdown."""
    key: Key
    """Key of the dataset."""
    id: str
    """Identifier of the dataset."""
    dataset_metadata: DatasetMetadata | None = None
    """Content of the dataset."""
    dataset_generation_metadata: DatasetGenerationMetadata | None = None
    """Generation of the dataset; `None` if it was not generated."""
    created_at: int | None = None
    """Creation time, in Unix seconds."""
    updated_at: int | None = None
    """Time of the last change, in Unix seconds."""
    tags: list[StoredTag] = Field(default=[])
    """Tags of the dataset."""


class StoredModel(LFBaseModel):
    """Model."""

    id: str
    """Identifier of the model."""
    display_name: NonEmpty
    """Display name."""
    key: ModelKey
    """Key of the model, preceded by its provider and `$` if it has one."""
    description: str | None = None
    """Description of the model."""
    rate_limit: int | None = None
    """Maximum number of requests per minute; `None` for unlimited."""
    max_concurrent_requests: AtLeastOne | None = None
    """Maximum number of simultaneous requests; `None` for unlimited."""
    task: MLTask
    """Kind of machine learning task."""
    config: ModelCustomConnectionConfig | CustomInferenceModelConfig | ModelProviderConnectionConfig
    """Connection to the model."""
    adapter_id: str
    """Identifier of the adapter that converts between AI GO's format and the endpoint's format."""
    created_at: int | None = None
    """Creation time, in Unix seconds."""
    updated_at: int | None = None
    """Time of the last change, in Unix seconds."""


class StoredTask(LFBaseModel):
    """Task."""

    id: str
    """Identifier of the task."""
    key: Key
    """Key of the task."""
    display_name: NonEmpty
    """Display name."""
    description: str
    """Description of what the task measures; may be empty."""
    long_description: str | None = None
    """Long description of the task, in Markdown."""
    tasks: list[MLTask] = Field(default=[])
    """Kinds of models that the task supports; empty for any."""
    config_spec: list[ParameterSpec]
    """Parameters of the task."""
    definition: Annotated[TaskDefinition, Field(discriminator="type")]
    """Definition of the task."""
    provider: TaskProvider
    """Author of the task."""
    tags: list[StoredTag]
    """Tags of the task."""
    created_at: int | None = None
    """Creation time, in Unix seconds."""
    updated_at: int | None = None
    """Time of the last change, in Unix seconds."""
