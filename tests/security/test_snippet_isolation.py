"""Snippets cannot access keys, files and pipes of the runner."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from aigo_bridge.errors import SnippetError
from aigo_bridge.snippets import Snippet, SnippetHost, SnippetLimits

KEY = "sk-this-must-not-be-seen"


@pytest.fixture(scope="module")
def host() -> Iterator[SnippetHost]:
    """Worker of a runner with keys. One that a test ends is replaced."""
    host = SnippetHost(SnippetLimits(seconds=20, memory_bytes=1 << 30))
    with pytest.MonkeyPatch.context() as patch:
        for name in ("OPENAI_API_KEY", "AWS_SECRET_ACCESS_KEY", "MY_OWN_SECRET"):
            patch.setenv(name, KEY)
        yield host
    host.close()


def call(host: SnippetHost, source: str, *args: Any) -> Any:
    return host.call_blocking(Snippet(dedent(source), "f", "snippet"), args, {})


def test_the_runners_environment_is_not_inherited(host: SnippetHost) -> None:
    environment = call(host, "import os\ndef f(): return dict(os.environ)")
    assert KEY not in str(environment)
    assert set(environment) <= {
        *("PATH", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "SYSTEMROOT"),
        *("HOME", "TMPDIR", "PYTHONHASHSEED"),
    }


def test_child_processes_do_not_inherit_the_environment(host: SnippetHost) -> None:
    source = (
        "import subprocess\ndef f(): return subprocess.run(['env'], capture_output=True, text=True).stdout"
    )
    assert KEY not in call(host, source)


def test_home_and_working_folder_are_empty_and_private(host: SnippetHost) -> None:
    home, here, listed = call(
        host, "import os\ndef f(): return [os.path.expanduser('~'), os.getcwd(), os.listdir('.')]"
    )
    assert home == here
    assert here != str(Path.cwd())
    assert listed == []


def test_modules_in_the_current_folder_are_not_imported(
    host: SnippetHost, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "statistics_of_mine.py").write_text("x = 1")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    host.close()  # the next worker starts here
    with pytest.raises(SnippetError, match="No module named 'statistics_of_mine'"):
        call(host, "import statistics_of_mine\ndef f(): pass")


def test_open_files_of_the_runner_are_not_visible(host: SnippetHost, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text(KEY)
    descriptor = os.open(secret, os.O_RDONLY)
    os.set_inheritable(descriptor, True)
    reading, writing = os.pipe()
    os.set_inheritable(reading, True)
    os.set_inheritable(writing, True)
    source = """
        import os, stat
        def f():
            found = []
            for number in range(1024):
                try:
                    state = os.fstat(number)
                except OSError:
                    continue
                found.append([stat.S_IFMT(state.st_mode), state.st_dev, state.st_ino])
            return found
    """
    host.close()  # the next worker starts with these files open
    try:
        open_there = call(host, source)
    finally:
        for each in (descriptor, reading, writing):
            os.close(each)
    state = secret.stat()
    assert [state.st_dev, state.st_ino] not in [place[1:] for place in open_there]
    # Requests, answers and the lifeline of this worker; its event loop adds no pipe.
    assert sum(kind == stat.S_IFIFO for kind, *_ in open_there) == 3


def test_no_core_file_can_be_left(host: SnippetHost) -> None:
    source = "import resource\ndef f(): return resource.getrlimit(resource.RLIMIT_CORE)"
    assert call(host, source) == [0, 0]


def test_memory_is_limited(host: SnippetHost) -> None:
    source = "import resource\ndef f(): return resource.getrlimit(resource.RLIMIT_AS)"
    assert call(host, source) == [1 << 30, 1 << 30]


def test_runner_process_is_invisible_to_a_snippet(host: SnippetHost) -> None:
    modules = call(host, "import sys\ndef f(): return sorted(sys.modules)")
    assert not {"inspect_ai", "aigo_inspect", "pytest", "aigo_bridge.cli"} & set(modules)


NETWORK = "snippets cannot use the network: declare `needs: network` in the task"
FILES = "snippets run in a jail and can only access the system, the installed packages and their own temporary folder"
FOLDER = "snippets run in an empty folder and cannot read the files of the task"
CALLS = "not available for snippets, because they run in a jail"


@pytest.mark.parametrize(
    ("source", "wall"),
    [
        ("import urllib.request\ndef f(): urllib.request.urlopen('http://127.0.0.1:9/')", NETWORK),
        ("import urllib.request\ndef f(): urllib.request.urlopen('https://example.org/')", NETWORK),
        ("import socket\ndef f(): socket.create_connection(('192.0.2.1', 80), 1)", NETWORK),
        ("import httpx\ndef f(): httpx.get('https://example.org/')", NETWORK),
        ("import asyncio\nasync def f(): await asyncio.open_connection('127.0.0.1', 9)", NETWORK),
        ("def f(): return open('/etc/hostname').read()", FILES),
        ("import os\ndef f(): return os.listdir('/proc')", FILES),
        ("def f(): return open('words.txt').read()", FOLDER),
        ("import pathlib\ndef f(): return pathlib.Path('../data/rows.csv').read_text()", FOLDER),
        ("def f():\n    try: open('/etc/shadow')\n    except OSError as error: raise ValueError('mine') from error", FILES),
        ("import os\ndef f(): os.chmod('.', 0o777)", FILES),
        ("import multiprocessing\ndef f(): multiprocessing.Lock()", CALLS),
        ("import subprocess\ndef f(): subprocess.run(['true'], start_new_session=True)", CALLS),
    ],
)  # fmt: skip
def test_a_refused_access_names_the_restriction(host: SnippetHost, source: str, wall: str) -> None:
    with pytest.raises(SnippetError) as caught:
        call(host, source)
    assert wall in str(caught.value)
    assert "docs/reference/snippets.md" in str(caught.value)
    assert (
        "`" not in str(caught.value).split(";")[0]
    )  # what helps is not pushed out of sight by a line of code


@pytest.mark.parametrize(
    "source", ["def f(): return open('missing')", "def f(): raise PermissionError('mine')", "def f(): 1 / 0"]
)
def test_other_errors_are_not_blamed_on_the_jail(host: SnippetHost, source: str) -> None:
    with pytest.raises(SnippetError) as caught:
        call(host, source)
    assert "jail" not in str(caught.value)


def test_normal_snippets_work_in_the_jail(host: SnippetHost) -> None:
    source = """
        import concurrent.futures, multiprocessing, os, subprocess, sys, tempfile, zoneinfo
        import numpy

        def send(end):
            end.send("child")

        def f():
            with tempfile.TemporaryDirectory() as folder, open(f"{folder}/file", "w+") as file:
                file.write("written")
                file.flush()
                os.replace(f"{folder}/file", f"{folder}/other")
            with concurrent.futures.ThreadPoolExecutor(4) as pool:
                threads = sum(pool.map(abs, range(-3, 3)))
            large = numpy.ones((400, 400))
            ours, theirs = multiprocessing.Pipe()
            process = multiprocessing.get_context("fork").Process(target=send, args=(theirs,))
            process.start()
            said = ours.recv()
            process.join()
            run = [sys.executable, "-c", "print(6 * 7)"]
            return [
                threads,
                float((large @ large).sum()),
                said,
                subprocess.run(run, capture_output=True, text=True, check=True).stdout,
                subprocess.run(["sort"], input="b\\na", capture_output=True, text=True, check=True).stdout,
                str(zoneinfo.ZoneInfo("Europe/Oslo")),
                os.cpu_count() >= 1,
            ]
    """
    assert call(host, source) == [9, 64e6, "child", "42\n", "a\nb\n", "Europe/Oslo", True]


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("import os\ndef f():\n    while True: os.fork()", "started more than 128 processes and was stopped"),
        ("import os\ndef f(): os.closerange(0, 256)", "its process ended without an answer"),
        (
            "import os\ndef f():\n    for n in range(3, 9):\n        try: os.write(n, b'junk\\n')\n        except OSError: pass",
            "into the pipe",
        ),
        ("def f(): return input()", "EOFError"),
        ("import sys\ndef f(): sys.exit(3)", "SystemExit: 3"),
        (
            "class E(Exception):\n    def __str__(self): raise ValueError('no')\ndef f(): raise E()",
            "E: its message is not available",
        ),
        (
            "class E(Exception):\n    def __reduce__(self): raise ValueError('no')\ndef f(): raise E('x')",
            "E: x",
        ),
        ("def f(): return 'x' * (1 << 29)", ""),
        ("def f(): return object()", "returned a object, which is not JSON"),
        ("def f(): return {1, 2}", "returned a set"),
    ],
)
def test_hostile_code_fails_its_own_call_only(host: SnippetHost, source: str, message: str) -> None:
    with pytest.raises(SnippetError) as caught:
        call(host, source)
    assert str(caught.value).startswith("snippet: ")
    assert message in str(caught.value)
    assert call(host, "def f(): return 'after'") == "after"


def test_floods_of_output_do_not_affect_other_samples(host: SnippetHost) -> None:
    source = "import os, sys\ndef f():\n    os.write(1, b'x' * 9_000_000)\n    print('y' * 9_000_000)\n    return 1"
    assert call(host, source) == 1
