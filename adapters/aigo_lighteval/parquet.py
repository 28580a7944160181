"""pyarrow, which reads lighteval's details and comes with an extra: asked for when there are details to be read, and not earlier."""

from __future__ import annotations

import importlib

from aigo_bridge.errors import MissingEngineError
from aigo_bridge.extras import install_command


def require_parquet(location: str) -> None:
    """Make sure that details can be read.

    Raises:
        MissingEngineError: they cannot; the message has the command that mends it.
    """
    try:
        importlib.import_module("pyarrow")
    except ImportError as error:
        raise MissingEngineError(
            f"{location!r}: details of lighteval are Parquet files, and pyarrow is not installed;"
            f" run: {install_command('parquet')}"
        ) from error
