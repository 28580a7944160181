"""Models that answered, as found in the traces of a result.

For each model these are the requested and answering names, the settings and the build (`system_fingerprint`),
if the engine recorded them.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

import msgspec
from msgspec import Raw

MOST = 50
"""Maximum number of different settings, names or fingerprints to keep for a model."""


class _Notes(msgspec.Struct):
    output_model: str | None = None
    config: Raw = Raw(b"")


class _Metadata(msgspec.Struct):
    inspect: _Notes | None = None


class _Event(msgspec.Struct):
    type: str | None = None
    model: str | None = None
    metadata: _Metadata | None = None


class _Trace(msgspec.Struct):
    events: list[_Event] | None = None


class _Response(msgspec.Struct):
    body: str | None = None


class _Exchange(msgspec.Struct):
    direct_input: _Response | None = None
    direct_output: _Response | None = None


class _Output(msgspec.Struct):
    trace: _Trace | None = None
    direct_ios: list[_Exchange] | None = None


class _Solver(msgspec.Struct):
    output: _Output | None = None


class _Score(msgspec.Struct):
    scorer_key: str | None = None
    direct_ios: list[_Exchange] | None = None


class _Trial(msgspec.Struct):
    solver: _Solver | None = None
    scores: list[_Score] | None = None


class _Sample(msgspec.Struct):
    trials: list[_Trial] | None = None


class _Body(msgspec.Struct):
    model: str | None = None
    system_fingerprint: str | None = None


_NO_SETTINGS = frozenset({"model", "messages", "input", "prompt", "contents", "system"})
"""Fields of a raw request that contain its content, not its settings."""

_REQUEST = msgspec.json.Decoder(dict[str, Raw])
_SAMPLE = msgspec.json.Decoder(_Sample)
_BODY = msgspec.json.Decoder(_Body)


@dataclass
class ModelIdentity:
    """Facts about one model that was called."""

    calls: int = 0
    answered: dict[str, None] = field(default_factory=dict)
    """Names that the model used in its responses."""
    settings: dict[bytes, None] = field(default_factory=dict)
    """Settings of the calls, as recorded by the engine."""


@dataclass
class ModelIdentities:
    """Facts about all models in the traces of a result, collected sample by sample."""

    models: dict[str, ModelIdentity] = field(default_factory=dict)
    """Facts for each requested model name."""
    answered: dict[str, None] = field(default_factory=dict)
    """Model names in raw responses, for any request."""
    requests: dict[str, ModelIdentity] = field(default_factory=dict)
    """Facts for each model name in raw requests. Used for engines that record only the raw exchange."""
    fingerprints: dict[str, None] = field(default_factory=dict)
    """System fingerprints in raw responses."""
    _is_noted: bool = False
    """Whether the engine recorded settings and names with the calls of a trial."""
    unread: int = 0
    """Number of samples whose traces have a different format."""

    def add(self, text: bytes | memoryview) -> None:
        """Add the traces of a sample."""
        try:
            sample = _SAMPLE.decode(text)
        except msgspec.MsgspecError:
            self.unread += 1
            return
        for trial in sample.trials or ():
            self._is_noted = False
            output = None if trial.solver is None else trial.solver.output
            if output is not None:
                for event in (output.trace.events if output.trace is not None else None) or ():
                    if event.type == "model_call_event" and event.model is not None:
                        self._add_call(event.model, event)
                self._add_exchanges(output.direct_ios)
            for score in trial.scores or ():
                self._add_exchanges(score.direct_ios)

    def _add_call(self, name: str, event: _Event) -> None:
        model = self.models.get(name)
        if model is None:
            if len(self.models) >= MOST:
                return
            model = self.models[name] = ModelIdentity()
        model.calls += 1
        notes = None if event.metadata is None else event.metadata.inspect
        if notes is None:
            return
        self._is_noted = True
        if notes.output_model is not None and len(model.answered) < MOST:
            model.answered.setdefault(notes.output_model)
        if bytes(notes.config)[:1] == b"{" and len(model.settings) < MOST:
            model.settings.setdefault(bytes(notes.config))

    def _add_exchanges(self, exchanges: list[_Exchange] | None) -> None:
        for exchange in exchanges or ():
            body = None if exchange.direct_output is None else exchange.direct_output.body
            if not body or ('"model"' not in body and '"system_fingerprint"' not in body):
                continue
            try:
                response = _BODY.decode(body)
            except msgspec.MsgspecError:
                continue
            if not self._is_noted:
                self._add_request(exchange.direct_input, response.model)
            if response.model is not None and len(self.answered) < MOST:
                self.answered.setdefault(response.model)
            if response.system_fingerprint is not None and len(self.fingerprints) < MOST:
                self.fingerprints.setdefault(response.system_fingerprint)

    def _add_request(self, request: _Response | None, answered_as: str | None) -> None:
        """Add the model and the settings of a raw request."""
        try:
            fields = _REQUEST.decode((request and request.body) or "")
            name = json.loads(bytes(fields.pop("model", b"null")))
        except (msgspec.MsgspecError, ValueError):
            return
        if not isinstance(name, str) or (name not in self.requests and len(self.requests) >= MOST):
            return
        model = self.requests.setdefault(name, ModelIdentity())
        if answered_as is not None and len(model.answered) < MOST:
            model.answered.setdefault(answered_as)
        settings = b",".join(
            b"%s:%s" % (json.dumps(field).encode(), bytes(value))
            for field, value in fields.items()
            if field not in _NO_SETTINGS
        )
        if len(model.settings) < MOST:
            model.settings.setdefault(b"{%s}" % settings)

    def _known(self, name: str, model: ModelIdentity) -> ModelIdentity:
        """Return the recorded facts about a model, or else the facts from its raw exchanges."""
        if model.answered or model.settings:
            return model
        return next(
            (calls for request, calls in self.requests.items() if f"/{name}".endswith(f"/{request}")), model
        )

    def to_json(self) -> dict[str, Any]:
        """Return plain data for the provenance file. Lists without facts are empty."""
        return {
            "asked": [
                {
                    "name": name,
                    "calls": model.calls,
                    "answered_as": list(self._known(name, model).answered),
                    "settings": [json.loads(settings) for settings in self._known(name, model).settings],
                }
                for name, model in self.models.items()
            ],
            "named_in_responses": list(self.answered),
            "system_fingerprints": list(self.fingerprints),
            "samples_without_traces_of_this_form": self.unread,
        }
