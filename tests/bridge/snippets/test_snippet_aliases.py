"""The platform's module names resolve to aigo-bridge's types, only in processes that install the aliases."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from pathlib import Path


def run(code: str, *, path: Path | None = None) -> str:
    lead = "" if path is None else f"import sys; sys.path.insert(0, {str(path)!r})\n"
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", lead + textwrap.dedent(code)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_published_imports_resolve_to_aigo_bridge_types() -> None:
    run(
        """
        from aigo_bridge.snippets.snippet import install_aliases
        install_aliases()
        install_aliases()
        import aigo_bridge.dtypes as ours
        import latticeflow, latticeflow.core
        import latticeflow.core.dtypes as dtypes
        from latticeflow.core import dtypes as again
        from latticeflow.core.dtypes import Trace, SampleScore, SolverTrace, ModelResponse
        from latticeflow.assessment.dtypes import Trace as OldTrace
        from latticeflow.core.dtypes import *
        assert Trace is OldTrace is ours.Trace and dtypes is again is latticeflow.core.dtypes
        assert all(getattr(dtypes, name) is getattr(ours, name) for name in ours.__all__)
        """
    )


def test_modules_are_not_loaded_again_under_published_names() -> None:
    run(
        """
        from aigo_bridge.snippets.snippet import install_aliases
        install_aliases()
        try:
            import latticeflow.core.dtypes.trace
        except ModuleNotFoundError:
            pass
        else:
            raise AssertionError("another copy of our module")
        """
    )


def test_aliases_are_not_installed_by_default() -> None:
    run(
        """
        import sys
        import aigo_bridge.dtypes, aigo_bridge.results, aigo_bridge.snippets.snippet
        assert not [name for name in sys.modules if name.startswith("latticeflow")]
        """
    )


def test_installed_package_is_preferred_to_aliases(tmp_path: Path) -> None:
    package = tmp_path / "latticeflow" / "core"
    package.mkdir(parents=True)
    (package / "dtypes.py").write_text("REAL = True\n")
    run(
        """
        from aigo_bridge.snippets.snippet import install_aliases
        install_aliases()
        import latticeflow.core.dtypes, latticeflow.assessment.dtypes
        assert latticeflow.core.dtypes.REAL
        assert latticeflow.assessment.dtypes.Trace.__module__ == "aigo_bridge.dtypes.trace"
        """,
        path=tmp_path,
    )


def test_importing_types_loads_no_engine_and_no_result_io() -> None:
    loaded = run("import sys, aigo_bridge.dtypes; print(*sys.modules)").split()
    for name in (
        "inspect_ai",
        "lighteval",
        "torch",
        "pandas",
        "aigo_inspect",
        "zstandard",
        "aigo_bridge.results",
    ):
        assert name not in loaded
