"""Models under evaluation (or judging) and the adapters that translate for them."""

from typing import Annotated, Any, Literal

from pydantic import Discriminator, Field, Tag

from aigo_bridge.spec.base import DisplayName, MLTask, ModelKey, Scalar, SpecModel, tag_of

Provider = Literal[
    "anthropic", "fireworks", "gemini", "latticeflow", "novita", "openai", "sambanova", "together"
]


class SecretName(SpecModel):
    """Reference to a secret in `secrets`."""

    name: str
    """Letters, digits, `_` or `-`."""


Secret = str | SecretName
"""A text (often `$NAME` or `<< secrets.NAME >>`) or the name of a secret."""


class AdapterRef(SpecModel):
    """Reference to an adapter."""

    key: ModelKey
    """Key of the adapter."""


class AdapterTemplate(SpecModel):
    """Jinja template of an adapter."""

    language: Literal["jinja"]
    source_code: str
    """Template text."""


class AdapterSpec(SpecModel):
    """Model adapter file."""

    key: ModelKey
    """Unique key."""
    display_name: DisplayName
    """Display name."""
    description: str | None = None
    """Short description."""
    long_description: str | None = None
    """Long description in Markdown."""
    provider: Literal["latticeflow", "user"] = "user"
    """Author of the adapter."""
    process_input: AdapterTemplate
    """Template over `input`, `model_info` and `kwargs` that renders the request body."""
    process_output: AdapterTemplate
    """Template over `body`, `model_info` and `status_code` that renders the model output as JSON."""


def _adapter_form(value: Any) -> str:
    written = "process_input" in value if isinstance(value, dict) else isinstance(value, AdapterSpec)
    return "adapter" if written else "ref"


AdapterEntry = Annotated[
    Annotated[AdapterRef, Tag("ref")] | Annotated[AdapterSpec, Tag("adapter")], Discriminator(_adapter_form)
]
"""An adapter by its key, or the adapter itself (`adapter: {$ref: adapter.yaml}`)."""


class CertificateValidation(SpecModel):
    """Verification of the server certificate."""

    trusted_ca: Secret | None = Field(default=None, repr=False)
    """PEM certificates in base64."""
    trust_chain_verification: Literal["verify_trust_chain", "accept_untrusted"] | None = None
    """Verification mode; `None`: verified."""


class TLSSettings(SpecModel):
    """Settings for encrypted connections."""

    validation_context: CertificateValidation | None = None
    """Verification of the server certificate."""


IDENTITY_ADAPTER = AdapterRef.model_construct(key="latticeflow$identity")


class CustomConnection(SpecModel):
    """HTTP endpoint."""

    connection_type: Literal["custom_connection"] = "custom_connection"
    url: str
    """Address for POST requests."""
    adapter: AdapterEntry = IDENTITY_ADAPTER
    """Adapter for requests and responses."""
    api_key: str | None = Field(default=None, repr=False)
    """Key to send as a bearer token."""
    model_key: str | None = None
    """Model name at the endpoint."""
    tls_context: TLSSettings | None = None
    """Settings for encrypted connections."""
    custom_headers: dict[str, Scalar | SecretName] | None = Field(default=None, repr=False)
    """Additional HTTP headers."""


class CustomInference(SpecModel):
    """Python code that calls the model."""

    connection_type: Literal["custom_inference"]
    run_inference_snippet: str
    """Defines `run_inference(body, environment)` or `run_inference(body, environment, sample)`."""
    environment: dict[str, Scalar | SecretName] = Field(default_factory=dict, repr=False)
    """Environment mapping for the code."""
    timeout: Annotated[float, Field(gt=0)] | None = None
    """Time limit per call in seconds; `None`: the default limit."""
    adapter: AdapterEntry = IDENTITY_ADAPTER
    """Adapter for requests and responses."""


class ProviderConnection(SpecModel):
    """Model of an integrated provider."""

    connection_type: Literal["provider_connection"]
    provider_id: Provider
    """Provider name."""
    model_key: str
    """Model name at the provider."""


class LangSmithConnection(SpecModel):
    """Agent deployed with LangSmith."""

    connection_type: Literal["langsmith"]
    deploy_url: str
    """Address of the deployment."""
    assistant_id: str
    """Id of the assistant."""
    api_key: Secret = Field(repr=False)
    """Credential."""


class AzureFoundryConnection(SpecModel):
    """Agent in Azure AI Foundry."""

    connection_type: Literal["azure_foundry"]
    project_endpoint: str
    """Address of the project."""
    agent_name: str
    """Name of the agent."""
    tenant_id: str
    """Id of the tenant."""
    client_id: str
    """Id of the client."""
    client_secret: Secret = Field(repr=False)
    """Credential."""


class AwsBedrockConnection(SpecModel):
    """Agent on AWS Bedrock."""

    connection_type: Literal["aws_bedrock"]
    region: str
    """Region."""
    harness_arn: str
    """Resource name of the agent."""
    access_key_id: Secret = Field(repr=False)
    """Credential."""
    secret_access_key: Secret = Field(repr=False)
    """Credential."""
    session_token: Secret | None = Field(default=None, repr=False)
    """Credential, for temporary access."""


class ClaudeManagedAgentsConnection(SpecModel):
    """Managed agent at Anthropic."""

    connection_type: Literal["claude_managed_agents"]
    agent_id: str
    """Id of the agent."""
    environment_id: str
    """Id of the environment."""
    vault_id: str
    """Id of the vault."""
    api_key: Secret = Field(repr=False)
    """Credential."""


class DifyConnection(SpecModel):
    """App on Dify."""

    connection_type: Literal["dify"]
    url: str
    """Address of the service."""
    api_key: Secret = Field(repr=False)
    """Credential."""


class PlaceholderConnection(SpecModel):
    """Placeholder without a connection."""

    connection_type: Literal["placeholder"]


def _connection_type(value: Any) -> str | None:
    return tag_of(value, "connection_type", "custom_connection")


Connection = Annotated[
    Annotated[CustomConnection, Tag("custom_connection")]
    | Annotated[CustomInference, Tag("custom_inference")]
    | Annotated[ProviderConnection, Tag("provider_connection")]
    | Annotated[LangSmithConnection, Tag("langsmith")]
    | Annotated[AzureFoundryConnection, Tag("azure_foundry")]
    | Annotated[AwsBedrockConnection, Tag("aws_bedrock")]
    | Annotated[ClaudeManagedAgentsConnection, Tag("claude_managed_agents")]
    | Annotated[DifyConnection, Tag("dify")]
    | Annotated[PlaceholderConnection, Tag("placeholder")],
    Discriminator(_connection_type),
]


class ModelSpec(SpecModel):
    """Model file."""

    key: ModelKey
    """Unique key."""
    display_name: DisplayName
    """Display name."""
    description: str | None = None
    """Short description."""
    rate_limit: int | None = None
    """Requests per minute; `None`: no limit."""
    max_concurrent_requests: Annotated[int, Field(ge=1)] | None = None
    """Concurrent requests; `None`: no limit."""
    task: MLTask = "chat_completion"
    """Machine learning task of the model."""
    secrets: dict[str, str] | None = Field(default=None, repr=False)
    """Values for `<< secrets.NAME >>`."""
    config: Connection
    """Connection to the model."""


class ProviderModel(SpecModel):
    """`$provider: "openai/gpt-4.1-nano"`: a model of an integrated provider, declared in a run file."""

    provider: str = Field(alias="$provider")
    """`<provider>/<model>` by the provider's own name."""
