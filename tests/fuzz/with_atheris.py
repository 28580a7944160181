"""Fuzz one target with atheris: `python -m tests.fuzz.with_atheris TARGET SECONDS`. Needs `pip install atheris` (Apache-2.0)."""

from __future__ import annotations

import importlib
import sys
import tempfile
from pathlib import Path
from typing import Any

from tests.fuzz.targets import CORPUS, CRASHES, TARGETS


def main() -> None:
    """Fuzz until a problem is found or the time is over."""
    try:
        atheris: Any = importlib.import_module("atheris")
    except ImportError:
        sys.exit("atheris is not installed: pip install atheris")
    target = TARGETS[sys.argv[1]]
    with tempfile.TemporaryDirectory() as seeds:
        for number, data in enumerate(target.seeds()):
            (Path(seeds) / str(number)).write_bytes(data)

        def one(data: bytes) -> None:
            with tempfile.TemporaryDirectory(prefix="aigo-fuzz-") as folder:
                target.check(data, Path(folder))

        crashes = CRASHES / target.name
        crashes.mkdir(parents=True, exist_ok=True)
        (CORPUS / target.name).mkdir(parents=True, exist_ok=True)
        limits = [
            f"-max_total_time={sys.argv[2]}",
            f"-timeout={int(target.cpu_seconds)}",
            "-rss_limit_mb=4096",
        ]
        # The targets import late so that atheris instruments the imported modules.
        with atheris.instrument_imports(include=["aigo_bridge", "aigo_inspect", "aigo_lighteval"]):
            target.check(b"", Path(seeds))
        atheris.Setup([sys.argv[0], *limits, f"-artifact_prefix={crashes}/", seeds], one)
        atheris.Fuzz()


if __name__ == "__main__":
    main()
