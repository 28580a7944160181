"""How to install what an optional part needs: a command that names the packages themselves.

`pip install 'aigo-bridge[…]'` would need aigo-bridge on an index, and would put a wheel in place of an editable installation; the
packages are right for both. Which they are, the installation's own metadata say.
"""

from __future__ import annotations

import importlib.metadata
import re
import shlex

DISTRIBUTION = "aigo-bridge"

_REQUIREMENT = re.compile(r"(?P<requirement>[^;]+?)\s*(?:;\s*(?P<marker>.*))?")
_EXTRA = re.compile(r"""extra\s*==\s*["'](?P<name>[^"']+)["']""")
_NAME = re.compile(r"[\w.-]+")


def install_command(extra: str) -> str | None:
    """The command that installs the packages of an extra; `None` where there is no such extra."""
    packages = [requirement for requirement, name in _declared() if name == extra]
    return pip_install(*packages) if packages else None


def core_command(package: str) -> str:
    """The command that installs a package without which aigo-bridge is not complete, in a release that suits."""
    for requirement, extra in _declared():
        name = _NAME.match(requirement)
        if extra is None and name is not None and _canonical(name[0]) == _canonical(package):
            return pip_install(requirement)
    return pip_install(package)


def pip_install(*requirements: str) -> str:
    """`pip install` of requirements, quoted for a shell."""
    return f"pip install {shlex.join(requirements)}"


def _declared() -> list[tuple[str, str | None]]:
    """Requirements, each with the extra that it belongs to; `None` for those of the core."""
    try:
        lines = importlib.metadata.requires(DISTRIBUTION) or []
    except importlib.metadata.PackageNotFoundError:
        return []  # the source alone, without an installation
    found: list[tuple[str, str | None]] = []
    for line in lines:
        parts = _REQUIREMENT.fullmatch(line)
        if parts is not None:
            extra = _EXTRA.search(parts["marker"] or "")
            found.append((parts["requirement"], None if extra is None else extra["name"]))
    return found


def _canonical(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()
