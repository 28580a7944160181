"""The script of `make environments`: its commands and its use of pip's settings."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
from itertools import product
from pathlib import Path

import pytest
from tests.environments import lock, oldest
from tests.environments.installing import REPOSITORY, pip_settings, uv_settings
from tests.environments.verbs import Check, checks, problems

from aigo_bridge.cli import VERBS

EXTRAS = ("parquet", "lake", "huggingface", "openai", "lighteval", "stats", "attest", "lsp")


@pytest.mark.parametrize("all_of_them", [True, False])
def test_every_command_runs_in_every_environment(all_of_them: bool) -> None:
    for chosen in product([True, False], repeat=len(EXTRAS)):
        has = frozenset(extra for extra, there in zip(EXTRAS, chosen, strict=True) if there)
        commands = [shlex.split(check.command) for check in checks(has, all_of_them=all_of_them)]

        own = [words for words in commands if "aigo-bridge" in words]
        assert {words[words.index("aigo-bridge") + 1] for words in own} >= set(VERBS)
        assert any("inspect" in words and "eval" in words for words in commands)


def test_oldest_versions_satisfy_the_current_requirements() -> None:
    """To fix: `make oldest`."""
    assert oldest.outdated() == []


def test_lock_has_the_constraint_versions_for_current_requirements() -> None:
    """To fix: `make lock`."""
    assert lock.problems() == []


def test_lock_contains_file_hashes_and_no_location() -> None:
    lines = [line for line in lock.LOCK.read_text("utf-8").splitlines() if not line.startswith("#")]
    pinned = [number for number, line in enumerate(lines) if "==" in line]

    assert lock.UNHASHED not in lock.versions("\n".join(lines))
    assert len(pinned) > 100
    assert all(lines[number + 1].strip().startswith("--hash=sha256:") for number in pinned)
    assert not [line for line in lines if "/" in line]


def test_uv_uses_the_package_indexes_of_pip(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pip = tmp_path / "pip"
    pip.write_text(
        "#!/bin/sh\n"
        "cat <<'END'\n"
        ":env:.find-links='/wheels /more'\n"
        "global.extra-index-url='https://b.example/simple\\nhttps://c.example/simple'\n"
        "global.find-links='/overridden'\n"
        "global.index-url='https://a.example/simple'\n"
        "global.timeout='60'\n"
        "END\n"
    )
    pip.chmod(0o755)

    assert uv_settings(pip_settings(pip)) == {
        "UV_DEFAULT_INDEX": "https://a.example/simple",
        "UV_INDEX": "https://b.example/simple https://c.example/simple",
        "UV_FIND_LINKS": "/wheels,/more",
        "UV_INDEX_STRATEGY": "unsafe-best-match",
        "UV_PYTHON_DOWNLOADS": "never",
    }


@pytest.mark.parametrize(
    ("check", "said"),
    [
        (Check("echo a  b", ("a b",)), None),
        (Check("echo a", ("b",)), "does not say 'b'"),
        (Check("exit 3"), "exit code 3, expected 0"),
        (Check("echo run: pip install x"), "asks for a package"),
        (Check("echo run: pip install x", asks_for="install x"), None),
        (Check("true", asks_for="install x"), "does not ask for what is missing: install x"),
        (Check("echo 'Traceback (most recent call last):' >&2"), "shows a traceback"),
        (Check("touch made.txt", writes="*.txt"), None),
        (Check("true", writes="*.json"), "has not written *.json"),
    ],
)
def test_wrong_output_of_a_command_is_reported(tmp_path: Path, check: Check, said: str | None) -> None:
    found = problems(check, tmp_path, tmp_path)

    assert found[:1] == ([] if said is None else [said])


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ("bridge/aigo_bridge/sandbox/jail.py", ["containers", "environments"]),
        ("pyproject.toml", ["containers", "environments"]),
        ("README.md", ["environments NAMES=core"]),
        (None, ["containers", "environments"]),
    ],
)
def test_ci_runs_all_environments_affected_by_a_change(
    tmp_path: Path, changed: str | None, expected: list[str]
) -> None:
    """`None`: the changes are unknown, for example in a clone of the main branch."""

    def run(*words: str) -> str:
        environment = {**os.environ, "PATH": f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}"}
        return subprocess.run(
            words, cwd=source, env=environment, check=True, capture_output=True, text=True
        ).stdout

    source = tmp_path / "source"
    for folder in ("frontend", "editors/vscode", ".ci"):
        (source / folder).mkdir(parents=True)
    shutil.copy(REPOSITORY / ".ci" / "run", source / ".ci" / "run")
    (tmp_path / "bin").mkdir()
    for name in ("make", "npm", "chromium"):
        (tmp_path / "bin" / name).write_text('#!/bin/sh\n[ "$1" = ci ] || echo "$@"\n')
        (tmp_path / "bin" / name).chmod(0o755)
    run("git", "init", "-q", "-b", "main")
    commit = ("git", "-c", "user.name=n", "-c", "user.email=e", "commit", "-q", "-m", "m")
    run("git", "add", ".")
    run(*commit)
    run("git", "update-ref", "refs/remotes/origin/main", "HEAD")
    if changed is not None:
        (source / changed).parent.mkdir(parents=True, exist_ok=True)
        (source / changed).write_text("x")
        run("git", "add", ".")
        run(*commit)

    assert run("bash", ".ci/run").splitlines() == ["check", "test", *expected]
