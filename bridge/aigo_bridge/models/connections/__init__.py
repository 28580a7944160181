"""Model entities: from a model's YAML file to calls over HTTP or through the author's own code.

This package is independent of engines. A `Connection` makes one call and returns its outcome. Retries,
counts, caching and logs belong to the engine. Limits (`rate_limit`, `max_concurrent`) are reported here and
applied by the engine.
"""

from aigo_bridge.models.connections.calls import CallError, CallInput, Exchange, ModelInfo
from aigo_bridge.models.connections.connection import CallResult, Connection, Pace, shared_pace
from aigo_bridge.models.connections.entity import (
    ConnectionSettings,
    ProviderTarget,
    connect,
    is_model_file,
    load_model,
    provider_key,
    split_name,
)
from aigo_bridge.models.connections.replies import Choice, Reply, ToolCallReply, Usage
from aigo_bridge.spec.base import MLTask

__all__ = [
    "CallError",
    "CallInput",
    "CallResult",
    "Choice",
    "Connection",
    "ConnectionSettings",
    "Exchange",
    "MLTask",
    "ModelInfo",
    "Pace",
    "ProviderTarget",
    "Reply",
    "ToolCallReply",
    "Usage",
    "connect",
    "is_model_file",
    "load_model",
    "provider_key",
    "shared_pace",
    "split_name",
]
