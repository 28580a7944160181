"""Optional packages that some output formats need."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from aigo_bridge.codes import Code
from aigo_bridge.errors import UsageError
from aigo_bridge.process import install_command, pip_install

_DISTRIBUTIONS = {"xlsxwriter": "XlsxWriter", "vl_convert": "vl-convert-python"}


def package(module: str, purpose: str, extra: str | None = None) -> Any:
    """Import an optional package.

    Args:
        module: name of the module.
        purpose: purpose of the package, for the message.
        extra: extra of aigo-bridge that installs it; `None`: no extra does.

    Raises:
        UsageError: it is not installed; the message contains the install command.
    """
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        if error.name != module.partition(".")[0]:
            raise
        name = _DISTRIBUTIONS.get(error.name, error.name)
        command = (None if extra is None else install_command(extra)) or pip_install(name)
        raise UsageError(
            f"{purpose} needs {name}, which is not installed; run: {command}", code=Code.MISSING_PACKAGE
        ) from error
