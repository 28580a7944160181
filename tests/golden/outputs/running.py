"""Runner of case commands: each command has its own forked process, as in a shell, without loading the engines again.

A worker process reads JSON lines with a folder and commands, and forks for each command. It preloads the modules that earlier commands
loaded. Of this project, it only imports the entry point of the installed `aigo-bridge` command, so moved modules do not matter.
"""

from __future__ import annotations

import atexit
import gc
import json
import os
import shutil
import subprocess
import sys
import threading
import traceback
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

from tests.support.commands import REPOSITORY
from tests.support.fork_server import load

OUT, ERR, NEWS = ".stdout", ".stderr", ".modules"
"""Extra files of a command: its output and the modules that it loaded."""

PACKAGES = {"inspect": "inspect_ai", "lighteval": "lighteval.pipeline"}
"""Main package loaded by the commands of an engine."""


class Done(NamedTuple):
    """Finished command of a case."""

    arguments: tuple[str, ...]
    code: int
    out: str
    err: str


def environment(home: Path) -> dict[str, str]:
    """Return the complete environment of a command; values of the machine must not affect an output."""
    home.mkdir(parents=True, exist_ok=True)
    kept = {
        name: os.environ[name] for name in ("PATH", "PYTHONHASHSEED", "LD_LIBRARY_PATH") if name in os.environ
    }
    fixed = {"COLUMNS": "120", "NO_COLOR": "1", "TERM": "dumb", "LANG": "C.UTF-8", "TZ": "UTC"}
    offline = {"HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false"}
    places = {"HOME": str(home), "TMPDIR": str(home), "PYTHONPATH": str(REPOSITORY)}
    return {**kept, **fixed, **offline, **places}


class Worker:
    """Forking process, as used by the tests."""

    def __init__(self, home: Path, engine: str) -> None:
        self._home = home
        self._engine = engine
        self._process: subprocess.Popen[str] | None = None

    def run(self, folder: Path, commands: Sequence[Sequence[str]]) -> list[Done]:
        """Run commands in a folder, one after the other."""
        if self._process is None:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tests.golden.outputs.running", self._engine],
                cwd=REPOSITORY,
                env=environment(self._home),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
        process = self._process
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            process.stdin.write(json.dumps([str(folder), [list(each) for each in commands]]) + "\n")
            process.stdin.flush()
            answer = process.stdout.readline()
        except BaseException:
            # A test that times out does not read its answer, which must not be used for the next test.
            process.kill()
            self.stop()
            raise
        assert answer, "the worker has ended"
        return [Done(tuple(arguments), *rest) for arguments, *rest in json.loads(answer)]

    def stop(self) -> None:
        """End the process."""
        if self._process is not None:
            self._process.communicate()
            self._process = None


def _serve(engine: str) -> None:
    """Fork for each requested command."""
    # The output of a command must not mix with the answers.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    # Otherwise, both the first command and this process would load it.
    import_module(PACKAGES[engine])
    (script,) = entry_points(group="console_scripts", name="aigo-bridge")
    main = script.load()
    for line in sys.stdin:
        folder, commands = json.loads(line)
        done = []
        for arguments in commands:
            expanded = _expanded(arguments, folder)
            gc.collect()
            # Forked processes then copy no pages because of changed reference counts.
            gc.freeze()
            child = os.fork()
            if child == 0:
                _forked(main, expanded, Path(folder))
            done.append((expanded, *_ended(child, Path(folder))))
        answers.write(json.dumps(done) + "\n")
        answers.flush()


def _expanded(arguments: Sequence[str], folder: str) -> list[str]:
    """Expand patterns like a shell; quoted patterns for the import begin with `=`."""
    found: list[str] = []
    for each in arguments:
        if each.startswith("="):
            found.append(each[1:])
        else:
            places = sorted(Path(folder).glob(each)) if "*" in each else []
            found += [str(place.relative_to(folder)) for place in places] or [each]
    return found


def _forked(main: Callable[[], Any], arguments: Sequence[str], folder: Path) -> NoReturn:
    """Run the command in the forked process."""
    os.setsid()
    os.chdir(folder)
    loaded = set(sys.modules)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    for number, name in ((1, OUT), (2, ERR)):
        os.dup2(os.open(folder / name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), number)
    sys.argv = ["aigo-bridge", *arguments]
    code = 1
    try:
        main()
        code = 0
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:  # noqa: BLE001  # as an interpreter does with what nobody catches
        traceback.print_exc()
    # Interpreter shutdown without unloading modules, which takes seconds with torch.
    threading._shutdown()  # type: ignore[attr-defined]  # has no public name
    atexit._run_exitfuncs()
    (folder / NEWS).write_text("\n".join(name for name in sys.modules if name not in loaded))
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def _ended(child: int, folder: Path) -> tuple[int, str, str]:
    _, status = os.waitpid(child, 0)
    out, err, news = (
        file.read_text("utf-8", errors="backslashreplace") if (file := folder / name).exists() else ""
        for name in (OUT, ERR, NEWS)
    )
    for name in (OUT, ERR, NEWS):
        (folder / name).unlink(missing_ok=True)
    load(news.split())
    return os.waitstatus_to_exitcode(status), out, err


def put(files: Mapping[str, Path | str | bytes], folder: Path) -> None:
    """Write the input files of a case."""
    folder.mkdir(parents=True)
    for name, content in files.items():
        place = folder / name
        place.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, bytes):
            place.write_bytes(content)
        elif isinstance(content, str):
            place.write_text(content, "utf-8")
        elif content.is_dir():
            shutil.copytree(content, place, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copyfile(content, place)


if __name__ == "__main__":
    _serve(sys.argv[1])
