"""Commands that people and CI run use one set of checks."""

from __future__ import annotations

import os
import re
import tomllib
from importlib.metadata import entry_points

import yaml
from tests.architecture.sources import ROOT
from tests.support.plugins import NOTHING_REGISTERED, with_benchmarks

MAKEFILE = (ROOT / "Makefile").read_text("utf-8")


def recipe(target: str) -> list[str]:
    (lines,) = re.findall(rf"^{target}:.*\n((?:\t.*\n)+)", MAKEFILE, re.MULTILINE)
    return [line.strip() for line in lines.splitlines()]


def test_pre_commit_hooks_equal_make_check() -> None:
    config = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text("utf-8"))
    hooks = [hook["entry"] for repository in config["repos"] for hook in repository["hooks"]]
    # `texts`, tests of the source, are too slow for a commit.
    assert recipe("check")[0].endswith(" lint texts")
    checks = [line.replace("$(BIN)", ".venv/bin").removesuffix(" .") for line in recipe("lint")]
    plain = [re.sub(r" --(check|force-exclude)\b", "", command) for command in [*checks, *hooks]]
    assert plain[: len(checks)] == plain[len(checks) :] != []


def test_unit_tests_need_no_engine_and_every_marker_is_used() -> None:
    markers = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["pytest"]["ini_options"][
        "markers"
    ]
    left_out = " and ".join(f"not {marker.partition(':')[0]}" for marker in markers)
    assert f'-m "{left_out}" tests/bridge' in recipe("unit")[0]


def test_branch_coverage_has_a_bound() -> None:
    report = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["coverage"]["report"]
    assert report["fail_under"] >= 76
    (tests,) = [line for line in recipe("coverage-core") if " -m pytest " in line]
    assert tests.partition(" -m pytest ")[2] == recipe("unit")[0].partition(" -m pytest ")[2].removesuffix(
        " $(ARGS)"
    )
    assert "--fail-under=" in recipe("coverage-core")[-1]
    assert "$(MAKE) coverage" in recipe("nightly")


def test_make_test_leaves_out_only_nightly_tests() -> None:
    (tests,) = [line for line in recipe("test") if " -m pytest " in line]
    assert '-m "not nightly"' in tests
    assert any(line.endswith(" -m nightly") for line in recipe("nightly"))
    assert {"$(MAKE) containers", "$(MAKE) environments"} <= set(recipe("nightly"))
    assert recipe("texts")[-1].endswith(" $(TEXT)")


def test_every_target_is_phony() -> None:
    targets = set(re.findall(r"^([a-z][\w-]*):", MAKEFILE, re.MULTILINE))
    (phony,) = re.findall(r"^\.PHONY: (.*)$", MAKEFILE, re.MULTILINE)
    assert set(phony.split()) == targets


def test_other_benchmarks_are_loaded_only_on_request() -> None:
    assert {entry.name for entry in entry_points(group="inspect_ai")} == {"aigo_bridge"}
    assert os.environ["PYTHONPATH"].split(os.pathsep)[0] == NOTHING_REGISTERED
    assert NOTHING_REGISTERED not in with_benchmarks({**os.environ})["PYTHONPATH"]
