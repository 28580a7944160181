"""Create a connection from a model file, or from a run file and a model key."""

from __future__ import annotations

import hashlib
import json
import re
import ssl
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import httpx
from pydantic import BaseModel

from aigo_bridge.access.existence import is_file
from aigo_bridge.codes import Code
from aigo_bridge.errors import Issue, SpecError, UsageError
from aigo_bridge.models.connections.adapters import SHIPPED, adapter_of, find_adapter
from aigo_bridge.models.connections.calls import Adapter, ModelInfo, TemplateAdapter
from aigo_bridge.models.connections.connection import Connection
from aigo_bridge.models.connections.secrets import SENSITIVE, SecretValues
from aigo_bridge.models.connections.transports import (
    MOST_WORKERS,
    READ_SECONDS,
    TLS,
    Endpoint,
    Inference,
    header_value,
    pem_of,
)
from aigo_bridge.reading import Document, environment, read, snippet_place
from aigo_bridge.redaction.secrets import KNOWN, is_credential
from aigo_bridge.spec.base import MLTask
from aigo_bridge.spec.evaluations import AssessmentPlanSpec, RunSpec
from aigo_bridge.spec.models import (
    AdapterRef,
    AdapterSpec,
    CustomConnection,
    CustomInference,
    ModelSpec,
    ProviderConnection,
    ProviderModel,
)
from aigo_bridge.text.plurals import plural

ADAPTER_PATH = ("config", "adapter")


@dataclass(frozen=True)
class ProviderTarget:
    """Model of an integrated provider; the engine makes the connection."""

    key: str
    """AI GO key of the model."""
    provider: str
    """AI GO's name of the provider."""
    model: str
    """Provider's name of the model."""
    task: MLTask = "chat_completion"
    """ML task of the model."""
    rate_limit: int | None = None
    """Maximum requests per minute; `None`: no limit."""
    max_concurrent: int | None = None
    """Maximum concurrent requests; `None`: no limit."""

    @property
    def digest(self) -> str:
        """Checksum of everything that may change an answer."""
        return hashlib.sha256(f"{self.provider}/{self.model}".encode()).hexdigest()


@dataclass(frozen=True)
class ConnectionSettings:
    """Connection settings that a model file cannot contain."""

    url: str | None = None
    """URL that replaces the URL in the model file; `None`: use the file's."""
    client_cert: str | None = None
    """PEM file with the client certificate that is sent to the endpoint."""
    client_key: str | None = None
    """File with the private key of the client certificate; `None`: the certificate file contains the key."""
    read_seconds: float = READ_SECONDS
    """Maximum seconds without data from the endpoint."""


def connect(
    document: Document[ModelSpec],
    *,
    secrets: Mapping[str, str] | None = None,
    adapters: tuple[AdapterSpec, ...] = (),
    settings: ConnectionSettings | None = None,
    env: Mapping[str, str] | None = None,
) -> Connection | ProviderTarget:
    """Return the model of a model file, ready to be called. Nothing is sent yet.

    Args:
        document: the model, from a model file or from a run file.
        secrets: secrets of the surrounding run file; the model's own secrets take precedence.
        adapters: adapters of the surrounding run file.
        settings: see `ConnectionSettings`.
        env: environment variables; `None`: the process's own.

    Raises:
        SpecError: a secret or adapter is missing; a URL, header or certificate is invalid; or the
            connection has an unsupported kind. Every problem is reported with its position.
    """
    spec = document.spec
    match spec.config:
        case ProviderConnection() as config:
            return ProviderTarget(
                spec.key,
                config.provider_id,
                config.model_key,
                spec.task,
                spec.rate_limit,
                spec.max_concurrent_requests,
            )
        case CustomConnection() | CustomInference():
            making = _Making(document, {**(secrets or {}), **(spec.secrets or {})}, settings, env)
            return making.connection(adapters)
    kind = spec.config.connection_type
    hint = "connect it through its HTTP address (custom_connection) or your own code (custom_inference)"
    message = f"a model with connection_type {kind!r} cannot be called from here"
    raise SpecError(
        [
            document.place(
                Issue(message, path=("config", "connection_type"), hint=hint, code=Code.WRONG_CONNECTION)
            )
        ]
    )


class _Making:
    """Builder of a connection from one model file; it collects all problems."""

    def __init__(
        self,
        document: Document[ModelSpec],
        secrets: Mapping[str, str],
        settings: ConnectionSettings | None,
        env: Mapping[str, str] | None,
    ):
        self._document = document
        self._spec = document.spec
        self._settings = settings or ConnectionSettings()
        self._env = env
        self._values = SecretValues(document, secrets)

    def connection(self, declared: tuple[AdapterSpec, ...]) -> Connection:
        config = self._spec.config
        assert isinstance(config, CustomConnection | CustomInference)
        adapter = self._adapter(config.adapter, declared)
        facts: dict[str, Any] = {"task": self._spec.task, "type": config.connection_type}
        transport: Endpoint | Inference | None
        if isinstance(config, CustomConnection):
            transport = self._endpoint(config, facts)
            model_key = config.model_key
        else:
            transport = self._inference(config, facts)
            model_key = None
        issues = self._values.issues
        if issues or adapter is None or transport is None:
            raise SpecError([self._document.place(issue) for issue in issues])
        most = self._spec.max_concurrent_requests
        if isinstance(transport, Inference) and most is None:
            most = MOST_WORKERS
        facts |= {"model_key": model_key, "adapter": _identity(adapter)}
        KNOWN.learn(filter(is_credential, self._values.hidden))
        text = json.dumps(facts, sort_keys=True, ensure_ascii=False)
        return Connection(
            key=self._spec.key,
            display_name=self._spec.display_name,
            info=ModelInfo(self._spec.task, model_key),
            adapter=adapter,
            transport=transport,
            digest=hashlib.sha256(text.encode()).hexdigest(),
            rate_limit=self._spec.rate_limit,
            max_concurrent=most,
            depends_on_sample=isinstance(transport, Inference) and transport.depends_on_sample,
        )

    def _problem(self, message: str, *path: str, hint: str | None = None) -> None:
        self._values.issues.append(Issue(message, path=path, hint=hint, code=Code.WRONG_CONNECTION))

    def _adapter(self, named: AdapterRef | AdapterSpec, declared: tuple[AdapterSpec, ...]) -> Adapter | None:
        if isinstance(named, AdapterSpec):
            return adapter_of(named)
        folder = self._document.folder(("config",))
        adapter = find_adapter(named.key, declared, folder, self._env)
        if adapter is None:
            keys = ", ".join([*(spec.key for spec in declared), *SHIPPED])
            self._problem(
                f"no model adapter {named.key!r}",
                *ADAPTER_PATH,
                hint=(f"put its file next to this one, or into model_adapters/; built-in adapters: {keys}"),
            )
        return adapter

    def _endpoint(self, config: CustomConnection, facts: dict[str, Any]) -> Endpoint | None:
        url = self._settings.url or self._values.text(config.url, ("config", "url"))
        headers = {}
        if config.api_key is not None:
            num_issues = len(self._values.issues)
            key = self._values.text(config.api_key, ("config", "api_key"), secret=True)
            if key:
                headers["authorization"] = self._header(f"Bearer {key}", "config", "api_key")
            elif (
                len(self._values.issues) == num_issues
            ):  # Otherwise the missing variable or secret has already been reported.
                self._problem("'api_key' is empty", "config", "api_key")
        for name, value in (config.custom_headers or {}).items():
            path = ("config", "custom_headers", name)
            if not _TOKEN.fullmatch(name):
                self._problem(f"{name!r} is not a valid header name", *path)
                continue
            header = self._values.scalar(value, path, secret=SENSITIVE.search(name) is not None)
            headers[name.lower()] = self._header(header, *path)
        tls = self._tls(config)
        if not _is_address(url) and url:
            self._problem("'url': expected an address that begins with http:// or https://", "config", "url")
        if self._values.issues:
            return None
        self._values.hide_parts(url)
        facts["url"] = url
        facts["headers"] = {
            name: value for name, value in headers.items() if not self._values.is_secret(value)
        }
        return Endpoint(url, headers, tls, read_seconds=self._settings.read_seconds)

    def _header(self, value: str | float | bool, *path: str) -> str:
        try:
            return header_value(value)
        except ValueError as error:
            self._problem(f"{path[-1]!r} {error}", *path)
            return ""

    def _tls(self, config: CustomConnection) -> TLS:
        checks = config.tls_context.validation_context if config.tls_context is not None else None
        path = ("config", "tls_context", "validation_context", "trusted_ca")
        authority: str | None = None
        if checks is not None and checks.trusted_ca is not None:
            authority = str(self._values.scalar(checks.trusted_ca, path, secret=False))
            try:
                authority = pem_of(authority)
            except ValueError as error:
                self._problem(f"'trusted_ca': {error}", *path)
                authority = None
        verify = checks is None or checks.trust_chain_verification != "accept_untrusted"
        tls = TLS(authority, verify, self._settings.client_cert, self._settings.client_key)
        try:
            if tls != TLS():  # loading the machine's authorities takes longer than all other checks
                tls.context()
        except (ValueError, ssl.SSLError) as error:
            self._problem(str(error), *path)
        return tls

    def _inference(self, config: CustomInference, facts: dict[str, Any]) -> Inference | None:
        environment = {}
        for name, value in config.environment.items():
            path = ("config", "environment", name)
            environment[name] = self._values.scalar(value, path, secret=SENSITIVE.search(name) is not None)
        facts["snippet"] = config.run_inference_snippet
        facts["environment"] = {
            name: value
            for name, value in environment.items()
            if not isinstance(value, str) or not self._values.is_secret(value)
        }
        if self._values.issues:
            return None
        code = config.run_inference_snippet
        place = snippet_place(self._document, ("config", "run_inference_snippet"), code)
        return Inference(code, "run_inference_snippet", environment, place=place, seconds=config.timeout)


_TOKEN = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")


def _is_address(url: str) -> bool:
    try:
        address = httpx.URL(url)
    except httpx.InvalidURL:
        return False
    return address.scheme in ("http", "https") and bool(address.host)


def _identity(adapter: Adapter) -> Any:
    return list(adapter.sources) if isinstance(adapter, TemplateAdapter) else adapter.key


SUFFIXES = (".yaml", ".yml")


def split_name(name: str) -> tuple[str, str | None]:
    """Split `run.yaml#my-model` into file and key; the key is `None` if the name contains none."""
    path, mark, key = name.rpartition("#")
    if mark and path.endswith(SUFFIXES):
        return path, key
    return name, None


def is_model_file(name: str) -> bool:
    """Return whether a name is the path of a YAML file, optionally with a key."""
    return split_name(name)[0].endswith(SUFFIXES)


def load_model(
    name: str,
    *,
    root: Path | None = None,
    settings: ConnectionSettings | None = None,
    env: Mapping[str, str] | None = None,
) -> Connection | ProviderTarget:
    """Load a model from a file, ready to be called.

    Args:
        name: path of a model file; or path of a run file or assessment plan, followed by `#` and the key of a
            model in it.
        root: folder that included files must not leave; `None`: the file's project.
        settings: see `ConnectionSettings`.
        env: environment variables; `None`: variables of the process and of `.env` in the current folder.

    Raises:
        UsageError: the file does not exist, or it does not contain the model.
        SpecError: the file is invalid; every problem is reported with its position.
    """
    written, key = split_name(name)
    path = Path(written)
    if not is_file(path):
        raise UsageError(f"model file {written!r} does not exist", code=Code.UNKNOWN_MODEL_ENTITY)
    env = environment() if env is None else env
    document = read(BaseModel, path, root=root, env=env)
    if isinstance(document.spec, ModelSpec):
        if key is not None and key != document.spec.key:
            raise UsageError(
                f"{written!r} contains the model {document.spec.key!r}, not {key!r}",
                code=Code.UNKNOWN_MODEL_ENTITY,
            )
        model = cast("Document[ModelSpec]", document)
        return connect(model, settings=settings, env=env)
    if not isinstance(document.spec, RunSpec | AssessmentPlanSpec):
        raise SpecError(
            "expected a model or a run file", file=str(path), line=1, column=1, code=Code.OTHER_KIND
        )
    return _of_runs(_runs(document), written, key, settings, env)


def _runs(document: Document[Any]) -> list[Document[RunSpec]]:
    """Return the run file itself, or the run files in an assessment plan."""
    if isinstance(document.spec, RunSpec):
        return [document]
    held = document.spec.evaluations if isinstance(document.spec, AssessmentPlanSpec) else None
    return [document.part(("evaluations", number), run) for number, run in enumerate(held or ())]


def _of_runs(
    runs: Sequence[Document[RunSpec]],
    written: str,
    key: str | None,
    settings: ConnectionSettings | None,
    env: Mapping[str, str],
) -> Connection | ProviderTarget:
    models = [(_key(model), run, number) for run in runs for number, model in enumerate(run.spec.models)]
    keys = list(dict.fromkeys(model_key for model_key, _, _ in models))
    listed = ", ".join(keys) or "none"
    if key is None and len(keys) == 1:
        (key,) = keys
    if key is None:
        raise UsageError(
            (
                f"{written!r} contains {plural(len(keys), 'model')}; name one as {written}#KEY "
                f"(keys: {listed})"
            ),
            code=Code.UNKNOWN_MODEL_ENTITY,
        )
    matches = [(run, number) for model_key, run, number in models if model_key in (key, provider_key(key))]
    if not matches:
        raise UsageError(f"no model {key!r} in {written!r} (keys: {listed})", code=Code.UNKNOWN_MODEL_ENTITY)
    if any(
        run.spec.models[number] != matches[0][0].spec.models[matches[0][1]] for run, number in matches[1:]
    ):
        raise UsageError(
            f"{written!r} contains several different models {key!r}", code=Code.UNKNOWN_MODEL_ENTITY
        )
    return _of_run(*matches[0], settings, env)


def _of_run(
    run: Document[RunSpec], number: int, settings: ConnectionSettings | None, env: Mapping[str, str]
) -> Connection | ProviderTarget:
    model = run.spec.models[number]
    if isinstance(model, ProviderModel):
        provider, _, name = model.provider.partition("/")
        if not name:
            message = f"'$provider': found {model.provider!r}, expected provider/model"
            raise SpecError([run.place(Issue(message, path=("models", number), code=Code.WRONG_VALUE))])
        return ProviderTarget(provider_key(model.provider), provider, name)
    return connect(
        run.part(("models", number), model),
        secrets=run.spec.secrets,
        adapters=run.spec.model_adapters,
        settings=settings,
        env=env,
    )


def _key(model: ModelSpec | ProviderModel) -> str:
    return provider_key(model.provider) if isinstance(model, ProviderModel) else model.key


def provider_key(name: str) -> str:
    """Return AI GO's key of a provider model: `openai/gpt-4.1-nano` becomes `openai$gpt-4-1-nano`. Keys are
    unchanged.
    """
    provider, slash, model = name.partition("/")
    if not slash:
        return name
    return f"{provider}${re.sub(r'[^a-z0-9_-]+', '-', model.lower()).strip('-')}"
