"""Models under evaluation (or judging) and the adapters that translate for them."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Discriminator, Field, Tag

from aigo_bridge.spec.base import DisplayName, MLTask, ModelKey, Scalar, SpecModel, tag_of

Provider = Literal[
    "anthropic", "fireworks", "gemini", "latticeflow", "novita", "openai", "sambanova", "together"
]


class SecretName(SpecModel):
    """A secret by its name in `secrets`."""

    name: str
    """Letters, digits, `_` or `-`."""


Secret = str | SecretName
"""A text (often `$NAME` or `<< secrets.NAME >>`) or the name of a secret."""


class AdapterRef(SpecModel):
    """An adapter by its key."""

    key: ModelKey
    """Key of the adapter."""


class AdapterTemplate(SpecModel):
    """A Jinja template that translates one way."""

    language: Literal["jinja"]
    source_code: str
    """The template."""


class AdapterSpec(SpecModel):
    """A model adapter as written."""

    key: ModelKey
    """Unique name."""
    display_name: DisplayName
    """Shown name."""
    description: str | None = None
    """Short text."""
    long_description: str | None = None
    """Markdown."""
    provider: Literal["latticeflow", "user"] = "user"
    """Who wrote it."""
    process_input: AdapterTemplate
    """Sees `input`, `model_info` and `kwargs`; gives the request body."""
    process_output: AdapterTemplate
    """Sees `body`, `model_info` and `status_code`; gives the model output as JSON."""


def _adapter_form(value: Any) -> str:
    written = "process_input" in value if isinstance(value, dict) else isinstance(value, AdapterSpec)
    return "adapter" if written else "ref"


AdapterEntry = Annotated[
    Annotated[AdapterRef, Tag("ref")] | Annotated[AdapterSpec, Tag("adapter")], Discriminator(_adapter_form)
]
"""An adapter by its key, or the adapter itself (`adapter: {$ref: adapter.yaml}`)."""


class CertificateValidation(SpecModel):
    """How the server's certificate is checked."""

    trusted_ca: Secret | None = Field(default=None, repr=False)
    """PEM certificates in base64."""
    trust_chain_verification: Literal["verify_trust_chain", "accept_untrusted"] | None = None
    """`None`: verified."""


class TLSContext(SpecModel):
    """Settings for encrypted connections."""

    validation_context: CertificateValidation | None = None
    """How the server's certificate is checked."""


IDENTITY_ADAPTER = AdapterRef.model_construct(key="latticeflow$identity")


class CustomConnection(SpecModel):
    """An HTTP endpoint."""

    connection_type: Literal["custom_connection"] = "custom_connection"
    url: str
    """Address that requests are posted to."""
    adapter: AdapterEntry = IDENTITY_ADAPTER
    """Translates requests and responses."""
    api_key: str | None = Field(default=None, repr=False)
    """Sent as a bearer token."""
    model_key: str | None = None
    """Name of the model at the endpoint."""
    tls_context: TLSContext | None = None
    """Settings for encrypted connections."""
    custom_headers: dict[str, Scalar | SecretName] | None = Field(default=None, repr=False)
    """Further HTTP headers."""


class CustomInference(SpecModel):
    """The author's code calls the model."""

    connection_type: Literal["custom_inference"]
    run_inference_snippet: str
    """Defines `run_inference(body, environment)` or `run_inference(body, environment, sample)`."""
    environment: dict[str, Scalar | SecretName] = Field(default_factory=dict, repr=False)
    """Values that the code gets."""
    timeout: Annotated[float, Field(gt=0)] | None = None
    """Seconds per call; `None`: the runner's own limit."""
    adapter: AdapterEntry = IDENTITY_ADAPTER
    """Translates requests and responses."""


class ProviderConnection(SpecModel):
    """A model of an integrated provider."""

    connection_type: Literal["provider_connection"]
    provider_id: Provider
    """The provider."""
    model_key: str
    """The provider's name of the model."""


class LangSmithConnection(SpecModel):
    """An agent deployed with LangSmith."""

    connection_type: Literal["langsmith"]
    deploy_url: str
    """Address of the deployment."""
    assistant_id: str
    """Id of the assistant."""
    api_key: Secret = Field(repr=False)
    """Credential."""


class AzureFoundryConnection(SpecModel):
    """An agent in Azure AI Foundry."""

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
    """An agent on AWS Bedrock."""

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
    """A managed agent at Anthropic."""

    connection_type: Literal["claude_managed_agents"]
    agent_id: str
    """Id of the agent."""
    environment_id: str
    """Id of its environment."""
    vault_id: str
    """Id of its vault."""
    api_key: Secret = Field(repr=False)
    """Credential."""


class DifyConnection(SpecModel):
    """An app on Dify."""

    connection_type: Literal["dify"]
    url: str
    """Address of the service."""
    api_key: Secret = Field(repr=False)
    """Credential."""


class PlaceholderConnection(SpecModel):
    """No connection yet."""

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
    """A model as written."""

    key: ModelKey
    """Unique name."""
    display_name: DisplayName
    """Shown name."""
    description: str | None = None
    """Short text."""
    rate_limit: int | None = None
    """Requests per minute; `None`: no limit."""
    max_concurrent_requests: Annotated[int, Field(ge=1)] | None = None
    """Requests at the same time; `None`: no limit."""
    task: MLTask = "chat_completion"
    """Kind of machine learning task."""
    secrets: dict[str, str] | None = Field(default=None, repr=False)
    """Values for `<< secrets.NAME >>`."""
    config: Connection
    """How it is reached."""


class ProviderModel(SpecModel):
    """`$provider: "openai/gpt-4.1-nano"`: a model of an integrated provider, declared in a run file."""

    provider: str = Field(alias="$provider")
    """`<provider>/<model>` by the provider's own name."""
