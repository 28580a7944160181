"""Incompatible installations are reported in one line with the command that fixes them; lighteval is imported
late."""

from __future__ import annotations

import importlib.metadata
import json
import subprocess
import sys
from typing import Any

import pytest
from tests.support.commands import Run

from aigo_bridge.engine.engine import Check
from aigo_bridge.engine.registry import diagnose, usable_engines
from aigo_bridge.errors import MissingEngineError
from aigo_lighteval import versions
from aigo_lighteval.engine import LightevalEngine
from aigo_lighteval.versions import numbers, problems, require

GOOD: dict[str, str | None] = {
    **dict.fromkeys(versions.PACKAGES, "1.0"),
    "lighteval": "0.13.0",
    "xxhash": "3.8.2",
}


def test_the_installed_versions_are_compatible() -> None:
    assert problems() == []


@pytest.mark.parametrize(
    ("package", "version", "fatal"),
    [
        ("xxhash", "4.1.0", True),
        ("huggingface_hub", "2.4.0", False),
        ("lighteval", "0.12.2", True),
        ("lighteval", "0.14.0", True),
    ],
)
def test_known_incompatible_versions_are_reported(package: str, version: str, fatal: bool) -> None:
    (problem,) = problems({**GOOD, package: version})
    assert problem.fatal is fatal
    assert package in problem.message
    assert version in problem.message
    assert "pip install" in problem.remedy


def test_missing_lighteval_is_reported_with_the_install_command(monkeypatch: pytest.MonkeyPatch) -> None:
    def version(package: str) -> str:
        raise importlib.metadata.PackageNotFoundError(package)

    monkeypatch.setattr(importlib.metadata, "version", version)
    with pytest.raises(MissingEngineError) as caught:
        require()
    assert str(caught.value).startswith("lighteval is not installed; run: pip install ")
    assert "'lighteval==0.13.*'" in str(caught.value)
    with pytest.raises(MissingEngineError):
        LightevalEngine()


def test_missing_lighteval_dependencies_are_reported() -> None:
    (problem,) = problems({**GOOD, "torch": None, "datasets": None})
    assert problem.message == "torch, datasets not installed"


@pytest.mark.parametrize(
    ("text", "expected"),
    [("0.13.0", (0, 13, 0)), ("2.13.0+cpu", (2, 13, 0)), ("0.13.1.dev0", (0, 13, 1)), ("4", (4,))],
)
def test_release_numbers_are_parsed(text: str, expected: tuple[int, ...]) -> None:
    assert numbers(text) == expected


def test_lighteval_is_imported_only_for_a_run() -> None:
    code = (
        "import sys; from aigo_bridge.engine.registry import load_engine; load_engine('lighteval');"
        " print([m for m in ('lighteval', 'torch', 'transformers', 'datasets', 'inspect_ai') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_evidence_is_read_without_lighteval() -> None:
    code = "import sys, aigo_lighteval.running.evidence; print([m for m in ('lighteval', 'torch') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_doctor_lists_both_engines_and_their_packages(aigo: Run) -> None:
    done = aigo("doctor")
    assert done.code == 0
    assert "engine inspect" in done.out
    assert "engine lighteval" in done.out
    report: dict[str, Any] = json.loads(aigo("doctor", "--json").out)
    assert {"inspect", "lighteval"} <= set(report["engines"])
    found = {check["subject"]: check["found"] for check in report["checks"]}
    assert found["lighteval"] == importlib.metadata.version("lighteval")
    assert found["inspect-ai"] == importlib.metadata.version("inspect-ai")


@pytest.mark.parametrize("installed", ["0.3.1", None])
def test_doctor_reports_missing_or_outdated_inspect(
    installed: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    version = importlib.metadata.version

    def other(name: str) -> str:
        if name != "inspect-ai":
            return version(name)
        if installed is None:
            raise importlib.metadata.PackageNotFoundError(name)
        return installed

    monkeypatch.setattr(importlib.metadata, "version", other)
    checks = diagnose()
    assert "inspect" not in usable_engines(checks)
    (check,) = [check for check in checks if check.subject == "inspect-ai"]
    assert check.state == "missing"
    assert check.remedy is not None
    assert check.remedy.startswith("pip install 'inspect-ai")
    assert ">=0.3.285" in check.remedy


def test_doctor_reports_the_problem_and_its_fix(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(versions, "installed_versions", lambda: {**GOOD, "xxhash": "4.1.0"})
    checks = diagnose()
    assert "lighteval" not in usable_engines(checks)
    wrong = [check for check in checks if check.state == "missing" and check.remedy]
    assert [check.remedy for check in wrong] == ["pip install 'xxhash<4'"]


def test_doctor_fails_when_no_engine_works(aigo: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("aigo_bridge.engine.registry.entry_points", lambda group: [])
    assert aigo("doctor").code == 1
    assert usable_engines([Check("engine x", "missing", "gone"), Check("engine y", "warning", "old")]) == [
        "y"
    ]
