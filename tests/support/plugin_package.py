"""The installed example plug-in: its package and the metadata of its distribution."""

from __future__ import annotations

import tomllib
from pathlib import Path

SOURCE = Path(__file__).with_name("plugin")


def install(site: Path, *broken: str) -> Path:
    """Write the metadata of the example plug-in into a folder, which then belongs on the path.

    Args:
        site: the folder.
        broken: further entry points, e.g. `scorers/lost=no_such_module:X`.
    """
    project = tomllib.loads((SOURCE / "pyproject.toml").read_text())["project"]
    groups: dict[str, dict[str, str]] = project["entry-points"]
    for text in broken:
        place, _, target = text.partition("=")
        kind, _, name = place.partition("/")
        groups.setdefault(f"aigo_bridge.{kind}", {})[name] = target
    metadata = site / "aigo_bridge_words-1.0.dist-info"
    metadata.mkdir(parents=True)
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: aigo-bridge-words\nVersion: 1.0\n")
    sections = [
        f"[{group}]\n" + "".join(f"{name} = {target}\n" for name, target in entries.items())
        for group, entries in groups.items()
    ]
    (metadata / "entry_points.txt").write_text("\n".join(sections))
    (site / "aigo_bridge_words").symlink_to(SOURCE / "aigo_bridge_words")
    return site
