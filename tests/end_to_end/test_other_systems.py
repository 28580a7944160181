"""Simulated conditions of other systems: no `fcntl`, fork or Unix signals; a non-UTF-8 locale; names that differ only in case."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.support.commands import REPOSITORY

BIN = Path(sys.executable).parent

# As on Windows, as far as Python shows it; `os.name` stays, as half of the standard library goes by it.
ELSEWHERE = """
import os, select, signal, sys
import portalocker  # sacrebleu's; has a way of its own for Windows, which it takes by the name of the system

class Missing:
    names = {"fcntl", "grp", "posix", "pty", "pwd", "resource", "syslog", "termios", "tty"}
    def find_spec(self, name, path=None, target=None):
        if name in self.names:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Missing())
for name in Missing.names - {"posix"}:
    sys.modules.pop(name, None)
gone = {
    signal: "SIGHUP SIGALRM SIGKILL SIGPROF SIGQUIT SIGPIPE SIGCHLD SIGUSR1 SIGUSR2 setitimer pthread_sigmask alarm",
    select: "poll epoll",
    os: "fork forkpty geteuid getuid getpgrp killpg setsid O_DIRECTORY O_NOFOLLOW O_CLOEXEC O_NONBLOCK O_NOCTTY"
        " sched_getaffinity memfd_create mkfifo fchmod fchown chown",
}
for module, names in gone.items():
    for name in names.split():
        if hasattr(module, name):
            delattr(module, name)
os.supports_dir_fd = set()
"""

EVERYTHING = """
import importlib, pkgutil, sys
import aigo_bridge
for module in pkgutil.walk_packages(aigo_bridge.__path__, "aigo_bridge."):
    if module.name not in sys.argv[1:] and not module.name.endswith(".__main__"):
        importlib.import_module(module.name)
print("loaded")
"""

VERBS = """
import sys
from typer.testing import CliRunner
from aigo_bridge.cli import app

def aigo(*words):
    result = CliRunner().invoke(app, list(words))
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    print(words[0], result.exit_code)
    assert result.exit_code == 0, result.stdout + result.stderr

aigo("init", "p")
aigo("new", "task", "mine")
aigo("validate", "p", "mine.yaml")
aigo("explain", "p/tasks/capitals")
aigo("stats", "r.tasklog.json")
aigo("compare", "r.tasklog.json", "s.tasklog.json")
aigo("check", "r.tasklog.json", "--rule", "Accuracy >= 0.5")
aigo("report", "r.tasklog.json", "-o", "page.html")
aigo("table", "r.tasklog.json", "-o", "t.csv")
aigo("show", "r.tasklog.json")
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Project with two results."""
    from typer.testing import CliRunner

    from aigo_bridge.cli import app

    folder = tmp_path_factory.mktemp("elsewhere")
    shutil.copytree(REPOSITORY / "examples", folder / "examples")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        words = ["run", "examples/capitals", "--model", "scripted/examples/capitals/answers.jsonl"]
        assert CliRunner().invoke(app, words).exit_code == 0
    for name in ("r", "s"):
        shutil.copy(folder / "out" / "capitals.tasklog.json", folder / f"{name}.tasklog.json")
    (folder / "aigo-bridge.toml").touch()
    shutil.copy(folder / "examples" / "capitals" / "task.yaml", folder / "mine.yaml")
    shutil.copy(folder / "examples" / "capitals" / "capitals.jsonl", folder)
    return folder


def python(code: str, folder: Path, *arguments: str, **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code, *arguments],
        cwd=folder,
        env={**os.environ, **env},
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=120,
    )


def test_every_module_loads_without_unix_features() -> None:
    from tests.architecture.test_platforms import IN_PROCESSES_OF_THEIR_OWN

    done = python(ELSEWHERE + EVERYTHING, REPOSITORY, *IN_PROCESSES_OF_THEIR_OWN)

    assert done.stdout == "loaded\n", done.stderr


def test_read_only_commands_work_without_unix_features(folder: Path) -> None:
    done = python(ELSEWHERE + VERBS, folder)

    assert done.returncode == 0, done.stderr
    assert done.stdout.count(" 0\n") == 10
    assert not [path for path in folder.rglob("*") if path.name.endswith((".draft", ".moved"))]
    assert (folder / "t.csv").read_text(encoding="utf-8").startswith("result,")


def test_non_utf_8_locale_does_not_change_the_result(folder: Path) -> None:
    """`PYTHONUTF8=0` in the C locale, like a Windows console or a minimal container."""
    (folder / "ü.jsonl").write_text('{"country": "Österreich", "capital": "Wien"}\n', encoding="utf-8")
    text = (
        (folder / "mine.yaml").read_text(encoding="utf-8").replace("capital of", "größte Stadt – 首都 – of")
    )
    (folder / "ü.yaml").write_text(text, encoding="utf-8")
    done = subprocess.run(
        [BIN / "aigo-bridge", "explain", "ü.yaml", "--dataset", "capitals=ü.jsonl"],
        cwd=folder,
        env={
            **os.environ,
            "PYTHONUTF8": "0",
            "PYTHONCOERCECLOCALE": "0",
            "LC_ALL": "C",
            "PYTHONIOENCODING": "utf-8",
        },
        capture_output=True,
        timeout=120,
    )

    assert done.returncode == 0, done.stderr
    assert "größte Stadt – 首都 – of Österreich" in " ".join(done.stdout.decode("utf-8").split())


def test_unprintable_characters_do_not_fail_a_command(folder: Path) -> None:
    done = subprocess.run(
        [BIN / "aigo-bridge", "stats", "r.tasklog.json"],
        cwd=folder,
        env={
            **os.environ,
            "PYTHONUTF8": "0",
            "PYTHONCOERCECLOCALE": "0",
            "LC_ALL": "C",
            "PYTHONIOENCODING": "cp1252",
        },
        capture_output=True,
        timeout=120,
    )

    assert done.returncode == 0, done.stderr
    assert b"75 %" in done.stdout
