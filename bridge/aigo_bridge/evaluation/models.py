"""Models of a run file: the engine's model for each AI GO key."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from aigo_bridge.codes import Code
from aigo_bridge.errors import UsageError
from aigo_bridge.evaluation.run_files import RunFile
from aigo_bridge.plan.plan import fingerprint_of
from aigo_bridge.results.specification import slug
from aigo_bridge.spec.models import ProviderModel
from aigo_bridge.text.json_text import sha256_of

SECRETS = frozenset(
    {
        "secrets",
        "api_key",
        "client_secret",
        "access_key_id",
        "secret_access_key",
        "session_token",
        "custom_headers",
        "environment",
    }
)
"""Fields that may hold secrets. They authorize calls but do not affect answers."""


@dataclass(frozen=True)
class DeclaredModel:
    """Model of a run file."""

    key: str
    display_name: str
    name: str
    """Model name for the engine."""
    fingerprint: str
    """SHA-256 checksum of the declaration, without secrets."""


def declared_models(run_file: RunFile) -> dict[str, DeclaredModel]:
    """Return the models that a run file declares, by key: entities and provider models (`$provider`)."""
    models: dict[str, DeclaredModel] = {}
    adapters = {
        adapter.key: adapter.model_dump(mode="json", exclude_unset=True)
        for adapter in run_file.run.model_adapters
    }
    for number, entry in enumerate(run_file.run.models):
        if isinstance(entry, ProviderModel):
            provider, _, model = entry.provider.partition("/")
            key = f"{provider}${slug(model)}"
            models[key] = DeclaredModel(key, entry.provider, entry.provider, fingerprint_of(entry.provider))
            continue
        path = (*run_file.run_path, "models", number)
        # An engine finds the entity again through its file: the run file or the file that it refers to.
        file = run_file.document.part(path, entry).file if run_file.run_path else run_file.file
        declaration = _without_secrets(entry.model_dump(mode="json", exclude_unset=True))
        adapter = getattr(getattr(entry.config, "adapter", None), "key", "")
        digest = sha256_of([declaration, adapters.get(adapter)])
        models[entry.key] = DeclaredModel(
            entry.key, entry.display_name, f"{file.resolve()}#{entry.key}", digest
        )
    return models


@dataclass(frozen=True)
class ModelChoice:
    """Models that the caller chose."""

    model: str | None = None
    """Evaluated model of every specification; it overrides the file."""
    model_map: Mapping[str, str] | None = None
    """AI GO model key → model name for the engine; it overrides the file."""


def surplus_models(model_map: Iterable[str], used: Sequence[str], subject: str) -> str | None:
    """Return a message about unused keys of `--model-map`; `None` if all are used.

    Args:
        model_map: given keys.
        used: keys that are used.
        subject: user of the keys, for example `the task`.
    """
    surplus = [key for key in model_map if key not in used]
    if not surplus:
        return None
    near = difflib.get_close_matches(surplus[0], used, n=1)
    hint = (
        f"did you mean {near[0]!r}?" if near else f"it uses {', '.join(map(repr, used)) or 'no other model'}"
    )
    return f"--model-map: {subject} does not use model {', '.join(map(repr, surplus))} ({hint})"


class ModelLookup:
    """Model lookup that records missing and used models."""

    def __init__(self, declared: Mapping[str, DeclaredModel], choice: ModelChoice, *, is_task: bool = False):
        self._declared = declared
        self._map = choice.model_map or {}
        self._model = choice.model
        self._is_task = is_task
        self._used: dict[str, None] = {}
        self._missing: dict[str, None] = {}
        self._model_used = False

    @property
    def model_is_unused(self) -> bool:
        """Whether a model to evaluate was given for a run file but nothing evaluates one."""
        return self._model is not None and not self._model_used and not self._is_task

    @property
    def uncalled(self) -> str | None:
        """Model of a plan that does not call it. The evidence of a single task names the given model."""
        return self._model if self._is_task else None

    def evaluated(self, key: str | None) -> DeclaredModel | None:
        """Return the model that a specification evaluates."""
        if self._model is not None:
            self._model_used = True
            return DeclaredModel("", "", self._model, fingerprint_of(self._model))
        if key is None:
            self._missing[""] = None
            return None
        return self.other(key)

    def other(self, key: str) -> DeclaredModel | None:
        """Return the model for a key."""
        if key in self._map:
            self._used[key] = None
            name = self._map[key]
            shown = self._declared[key].display_name if key in self._declared else key
            return DeclaredModel(key, shown, name, fingerprint_of(name))
        if key in self._declared:
            return self._declared[key]
        self._missing[key] = None
        return None

    def check(self) -> None:
        """Check that every model was found and that every given model is used.

        Raises:
            UsageError: models are missing or unused; the message names all missing models.
        """
        keys = [key for key in self._missing if key]
        problems: list[str] = []
        if keys:
            options = " ".join(f"--model-map '{key}=PROVIDER/MODEL'" for key in keys)
            named = ", ".join(map(repr, keys))
            problems.append(
                f"the task uses {named}; choose a model with {options}"
                if self._is_task
                else f"no model is declared for {named}; choose one with {options}"
            )
        if "" in self._missing:
            problems.append(
                "the task evaluates a model; choose one with --model PROVIDER/MODEL, e.g. "
                "--model openai/gpt-4.1-nano"
                if self._is_task
                else "a specification does not name a model; choose one with --model PROVIDER/MODEL"
            )
        code = Code.NO_MODEL if problems else Code.SURPLUS_ARGUMENT
        subject = "the task" if self._is_task else "the file"
        surplus = surplus_models(self._map, [*self._used, *keys], subject)
        if surplus is not None:
            problems.append(surplus)
        if problems:
            raise UsageError("; ".join(problems), code=code)


def _without_secrets(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _without_secrets(part) for name, part in value.items() if name not in SECRETS}
    return [_without_secrets(part) for part in value] if isinstance(value, list) else value
