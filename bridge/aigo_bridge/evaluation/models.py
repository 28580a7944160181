"""Models of a run file: which of an engine's models every AI GO key stands for."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from aigo_bridge.codes import Code
from aigo_bridge.errors import UsageError
from aigo_bridge.evaluation.run_files import RunFile
from aigo_bridge.plan.plan import fingerprint_of, sha256_of
from aigo_bridge.results.specification import slug
from aigo_bridge.spec.models import ProviderModel

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
"""Fields that may hold secrets: they decide who may ask, not what is answered."""


@dataclass(frozen=True)
class DeclaredModel:
    """A model of a run file."""

    key: str
    display_name: str
    name: str
    """The engine's string for it."""
    fingerprint: str
    """SHA-256 of its declaration, without secrets."""


def declared_models(run_file: RunFile) -> dict[str, DeclaredModel]:
    """Models that a run file declares, by key: entities, and models of providers (`$provider`)."""
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
        # An engine finds the entity again by the file that holds it: the run file, or the file that it refers
        # to.
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
    """Choice of models by the caller."""

    model: str | None = None
    """Evaluated model of every specification; it overrides the file."""
    model_map: Mapping[str, str] | None = None
    """AI GO model key → the engine's model, in place of the file's own."""


def surplus_models(model_map: Iterable[str], used: Sequence[str], subject: str) -> str | None:
    """Return the sentence about unused keys of `--model-map`; `None` if all are used.

    Args:
        model_map: keys that were given.
        used: keys that are used.
        subject: what uses them, e.g. `the task`.
    """
    surplus = [key for key in model_map if key not in used]
    if not surplus:
        return None
    near = difflib.get_close_matches(surplus[0], used, n=1)
    hint = (
        f"did you mean {near[0]!r}?" if near else f"it uses {', '.join(map(repr, used)) or 'no other model'}"
    )
    return f"--model-map: {subject} has no model {', '.join(map(repr, surplus))} ({hint})"


class Models:
    """Looks models up, and remembers what was missing and what was used."""

    def __init__(self, declared: Mapping[str, DeclaredModel], choice: ModelChoice):
        self._declared = declared
        self._map = choice.model_map or {}
        self._model = choice.model
        self._used: set[str] = set()
        self._missing: dict[str, None] = {}
        self._model_used = False

    @property
    def model_is_unused(self) -> bool:
        """Whether a model to evaluate was given and nothing evaluates one."""
        return self._model is not None and not self._model_used

    def evaluated(self, key: str | None) -> DeclaredModel | None:
        """The model that a specification evaluates."""
        if self._model is not None:
            self._model_used = True
            return DeclaredModel("", "", self._model, fingerprint_of(self._model))
        if key is None:
            self._missing[""] = None
            return None
        return self.other(key)

    def other(self, key: str) -> DeclaredModel | None:
        """The model behind a key."""
        if key in self._map:
            self._used.add(key)
            name = self._map[key]
            shown = self._declared[key].display_name if key in self._declared else key
            return DeclaredModel(key, shown, name, fingerprint_of(name))
        if key in self._declared:
            return self._declared[key]
        self._missing[key] = None
        return None

    def check(self) -> None:
        """Nothing was missing, and nothing was given in vain.

        Raises:
            UsageError: it was not so; every missing model is named.
        """
        keys = [key for key in self._missing if key]
        problems: list[str] = []
        if keys:
            options = " ".join(f"--model-map '{key}=PROVIDER/MODEL'" for key in keys)
            named = ", ".join(map(repr, keys))
            problems.append(f"no model is declared for {named}; choose one with {options}")
        if "" in self._missing:
            problems.append(
                "a specification has no model to evaluate; choose one with --model PROVIDER/MODEL"
            )
        surplus = surplus_models(self._map, [*self._used, *keys], "the file")
        if surplus is not None:
            problems.append(surplus)
        if problems:
            raise UsageError("; ".join(problems), code=Code.NO_MODEL)


def _without_secrets(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _without_secrets(part) for name, part in value.items() if name not in SECRETS}
    return [_without_secrets(part) for part in value] if isinstance(value, list) else value
