"""Loaded modules: the core loads no engine, and the help loads no heavy module."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest
from tests.architecture.sources import PACKAGES, SOURCES

HEAVY = ("inspect_ai", "lighteval", "torch", "pydantic", "jinja2", "yaml", "openai", "numpy", "anyio")
LOG = Path(__file__).resolve().parents[1] / "golden" / "inspect" / "0.3.240.eval"
ENGINES = ("inspect_ai", "lighteval", "torch", "aigo_inspect", "aigo_lighteval")
EXTRAS = tuple(name for name, path in PACKAGES.items() if path.parent.name == "extras")


def loaded_after(code: str) -> set[str]:
    """Return the top-level modules of a new process after running code."""
    script = f"{code}\nimport sys; print(*sorted({{name.split('.')[0] for name in sys.modules}}))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return set(done.stdout.splitlines()[-1].split())


def test_importing_the_package_loads_no_heavy_module() -> None:
    assert loaded_after("import aigo_bridge").isdisjoint({*HEAVY, *ENGINES})


@pytest.mark.parametrize("verb", [[], ["run"], ["list"]])
def test_help_loads_no_heavy_module(verb: list[str]) -> None:
    code = (
        "import sys\n"
        f"sys.argv = ['aigo-bridge', *{verb!r}, '--help']\n"
        "from aigo_bridge.cli import main\n"
        "try:\n    main()\nexcept SystemExit as end:\n    assert not end.code\n"
    )
    heavy = {*HEAVY, *ENGINES}
    if verb:
        heavy.discard("pydantic")  # typer itself reads options with it
    assert loaded_after(code).isdisjoint(heavy)


def test_every_core_module_works_without_an_engine_and_an_extra() -> None:
    """Importing the complete core loads no engine, adapter or extra."""
    code = (
        "import pkgutil, importlib, aigo_bridge\n"
        "for module in pkgutil.walk_packages(aigo_bridge.__path__, 'aigo_bridge.'):\n"
        "    if not module.name.endswith(('.worker', '__main__')):\n"
        "        importlib.import_module(module.name)\n"
    )
    assert loaded_after(code).isdisjoint({*ENGINES, *EXTRAS})


def test_reading_an_inspect_log_does_not_load_inspect() -> None:
    assert "inspect_ai" not in loaded_after(
        "import aigo_inspect.running.evidence, aigo_inspect.importing.api"
    )


def test_import_of_an_inspect_log_loads_only_its_own_modules(tmp_path: Path) -> None:
    """No other importer, plan, scorer, metric or model module."""
    script = (
        "import sys\n"
        "from aigo_bridge.cli import main\n"
        f"sys.argv = ['aigo-bridge', '-q', 'import', {str(LOG)!r}, '-o', {str(tmp_path)!r}]\n"
        "try:\n    main()\nexcept SystemExit as end:\n    assert not end.code\n"
        "print(*(name for name in sys.modules if name.startswith('aigo_')))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    modules = set(done.stdout.splitlines()[-1].split())
    others = ("scoring", "metrics.metric", "models", "spec", "plan", "datasets", "reading")
    assert modules.isdisjoint({f"aigo_bridge.{name}" for name in others})
    assert modules.isdisjoint({"aigo_lighteval.importing.importing", "aigo_formats.lm_eval"})


def test_no_module_is_called_utils() -> None:
    root = Path(__file__).resolve().parents[2]
    names = [
        path for folder in ("bridge", "adapters", "extras") for path in (root / folder).rglob("util*.py")
    ]
    assert names == []


TABLES = {
    "aigo_bridge": "public names",
    "aigo_bridge.cli": "verbs",
    "aigo_bridge.engine.formats": "formats",
    "aigo_bridge.hooks": "hooks",
}
"""Modules of the core that name modules of extras, and the names in their tables."""


def test_only_core_tables_name_modules_of_extras() -> None:
    extra = re.compile(rf"({'|'.join(EXTRAS)})[.:\w]*")
    naming = {
        name
        for name, source in SOURCES.items()
        if name.partition(".")[0] == "aigo_bridge"
        for node in ast.walk(source.tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and extra.fullmatch(node.value)
    }
    assert naming == set(TABLES)
