"""Which model a user means: a model's file, or a run file and the key of a model in it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from aigo_bridge.connections.connection import Connection
from aigo_bridge.connections.entity import ConnectionSettings, ProviderTarget, connect
from aigo_bridge.errors import Issue, SpecError, UsageError
from aigo_bridge.reading import Document, environment, read_any
from aigo_bridge.spec import AssessmentPlanSpec, ModelSpec, ProviderModel, RunSpec

SUFFIXES = (".yaml", ".yml")


def split_name(name: str) -> tuple[str, str | None]:
    """`run.yaml#my-model` → file and key; the key is `None` when the name has none."""
    path, mark, key = name.rpartition("#")
    if mark and path.endswith(SUFFIXES):
        return path, key
    return name, None


def is_model_file(name: str) -> bool:
    """Whether a name is that of a YAML file, perhaps with a key."""
    return split_name(name)[0].endswith(SUFFIXES)


def load_model(
    name: str,
    *,
    root: Path | None = None,
    settings: ConnectionSettings | None = None,
    env: Mapping[str, str] | None = None,
) -> Connection | ProviderTarget:
    """The model in a file, ready to be called.

    Args:
        name: path of a model's file, or of a run file (or a plan that holds some) with `#` and the key of one of its models.
        root: folder that included files may not leave; `None`: the file's project.
        settings: see `ConnectionSettings`.
        env: environment variables; `None`: those of the process, and of `.env` in the current folder.

    Raises:
        UsageError: there is no such file, or no such model in it.
        SpecError: the file is not valid; every problem with its place.
    """
    written, key = split_name(name)
    path = Path(written)
    if not path.is_file():
        raise UsageError(f"there is no model file {written!r}")
    env = environment() if env is None else env
    document = read_any(path, root=root, env=env)
    if isinstance(document.spec, ModelSpec):
        if key is not None and key != document.spec.key:
            raise UsageError(f"{written!r} holds the model {document.spec.key!r}, not {key!r}")
        model = cast("Document[ModelSpec]", document)
        return connect(model, settings=settings, env=env)
    if not isinstance(document.spec, RunSpec | AssessmentPlanSpec):
        raise SpecError([Issue("expected a model or a run file", file=str(path), line=1, column=1)])
    return _of_runs(_runs(document), written, key, settings, env)


def _runs(document: Document[Any]) -> list[Document[RunSpec]]:
    """The run file, or those that an assessment plan holds."""
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
    keys = list(dict.fromkeys(each for each, _, _ in models))
    listed = ", ".join(keys) or "none"
    if key is None and len(keys) == 1:
        (key,) = keys
    if key is None:
        raise UsageError(f"{written!r} holds {len(keys)} models: name one as {written}#KEY (keys: {listed})")
    found = [(run, number) for each, run, number in models if each in (key, provider_key(key))]
    if not found:
        raise UsageError(f"{written!r} holds no model {key!r} (keys: {listed})")
    if any(run.spec.models[number] != found[0][0].spec.models[found[0][1]] for run, number in found[1:]):
        raise UsageError(f"{written!r} holds several models {key!r} that differ")
    return _of_run(*found[0], settings, env)


def _of_run(
    run: Document[RunSpec], number: int, settings: ConnectionSettings | None, env: Mapping[str, str]
) -> Connection | ProviderTarget:
    model = run.spec.models[number]
    if isinstance(model, ProviderModel):
        provider, _, name = model.provider.partition("/")
        if not name:
            message = f"'$provider': found {model.provider!r}, expected provider/model"
            raise SpecError([run.place(Issue(message, path=("models", number)))])
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
    """The AI GO key of a provider's model: `openai/gpt-4.1-nano` is `openai$gpt-4-1-nano`; a key stays as it is."""
    provider, slash, model = name.partition("/")
    if not slash:
        return name
    return f"{provider}${re.sub(r'[^a-z0-9_-]+', '-', model.lower()).strip('-')}"
