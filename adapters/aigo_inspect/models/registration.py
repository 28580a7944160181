"""Names for what this package registers with Inspect, and the providers of models, known by importing this.

Inspect puts the import package's name in front of registered names when the package lies in site-packages, or
when it is installed editable from a distribution of the same name. The distribution `aigo-bridge` and the
package `aigo_inspect` differ, so an editable install would register `task` where a wheel registers
`aigo_inspect/task`. Objects that say they come from `aigo_bridge` are `aigo_bridge/…` in both.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar, cast

from inspect_ai.model import modelapi

T = TypeVar("T", bound=Callable[..., object])

NAMESPACE = "aigo_bridge"


def in_namespace(factory: T) -> T:
    """Make Inspect's decorators register a factory as `aigo_bridge/<name>`; goes below the decorator."""
    factory.__module__ = NAMESPACE
    return factory


if TYPE_CHECKING:
    from inspect_ai.model import ModelAPI

    from aigo_inspect.models.cassettes import CassetteAPI
    from aigo_inspect.models.provider import ScriptedAPI


@modelapi(name="cassette")
@in_namespace
def cassette() -> type[CassetteAPI]:
    """`cassette/<model>`: what a model said when a run was recorded."""
    from aigo_inspect.models.cassettes import CassetteAPI

    return CassetteAPI


@modelapi(name="scripted")
@in_namespace
def scripted() -> type[ScriptedAPI]:
    """`scripted/<file>`: a model that answers from a file of rules."""
    from aigo_inspect.models.provider import ScriptedAPI

    return ScriptedAPI


@modelapi(name="aigo_bridge")
@in_namespace
def aigo_bridge() -> type[ModelAPI]:
    """`aigo_bridge/<file>`: a model entity of AI GO."""
    from aigo_inspect.models.provider import entity_api

    # Inspect only calls what it gets here.
    return cast("type[ModelAPI]", entity_api)
