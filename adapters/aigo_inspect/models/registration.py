"""Registration of this package's model providers with Inspect. Importing the module registers them.

Inspect adds the name of the import package to a registered name if the package is in site-packages. It also
does so for an editable install whose distribution has the same name.

The distribution `aigo-bridge` and the package `aigo_inspect` have different names. Without `in_namespace`, an
editable install would therefore register `task`, and a wheel `aigo_inspect/task`. Objects whose module is
`aigo_bridge` are registered as `aigo_bridge/…` in both cases.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar, cast

from inspect_ai.model import modelapi

T = TypeVar("T", bound=Callable[..., object])

NAMESPACE = "aigo_bridge"


def in_namespace(factory: T) -> T:
    """Make Inspect's decorators register a factory as `aigo_bridge/<name>`. Apply it below the decorator."""
    factory.__module__ = NAMESPACE
    return factory


if TYPE_CHECKING:
    from inspect_ai.model import ModelAPI

    from aigo_inspect.models.cassettes import CassetteAPI
    from aigo_inspect.models.provider import ScriptedAPI


@modelapi(name="cassette")
@in_namespace
def cassette() -> type[CassetteAPI]:
    """Return the provider of `cassette/<model>`, which replays recorded answers."""
    from aigo_inspect.models.cassettes import CassetteAPI

    return CassetteAPI


@modelapi(name="scripted")
@in_namespace
def scripted() -> type[ScriptedAPI]:
    """Return the provider of `scripted/<file>`, which answers from a file of rules."""
    from aigo_inspect.models.provider import ScriptedAPI

    return ScriptedAPI


@modelapi(name="aigo_bridge")
@in_namespace
def aigo_bridge() -> type[ModelAPI]:
    """Return the provider of `aigo_bridge/<file>`, an AI GO model entity."""
    from aigo_inspect.models.provider import entity_api

    # Inspect only calls the returned object, so a function works as well as a class.
    return cast("type[ModelAPI]", entity_api)
