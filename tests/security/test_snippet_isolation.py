"""What a snippet cannot reach: keys, files and pipes of the runner."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from aigo_bridge.errors import SnippetError
from aigo_bridge.snippets import Snippet, SnippetHost, SnippetLimits

KEY = "sk-this-must-not-be-seen"


@pytest.fixture
def host(monkeypatch: pytest.MonkeyPatch) -> Iterator[SnippetHost]:
    """A worker of a runner that holds keys."""
    for name in ("OPENAI_API_KEY", "AWS_SECRET_ACCESS_KEY", "MY_OWN_SECRET"):
        monkeypatch.setenv(name, KEY)
    host = SnippetHost(SnippetLimits(seconds=20, memory_bytes=1 << 30))
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


def test_nor_do_its_own_children_have_it(host: SnippetHost) -> None:
    source = (
        "import subprocess\ndef f(): return subprocess.run(['env'], capture_output=True, text=True).stdout"
    )
    assert KEY not in call(host, source)


def test_home_and_working_folder_are_empty_and_its_own(host: SnippetHost) -> None:
    home, here, listed = call(
        host, "import os\ndef f(): return [os.path.expanduser('~'), os.getcwd(), os.listdir('.')]"
    )
    assert home == here
    assert here != str(Path.cwd())
    assert listed == []


def test_what_stands_in_the_runners_folder_is_not_imported(
    host: SnippetHost, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "statistics_of_mine.py").write_text("x = 1")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
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
        import os
        def f():
            found = {}
            for name in os.listdir("/proc/self/fd"):
                try:
                    found[name] = os.readlink("/proc/self/fd/" + name)
                except OSError:
                    pass
            return found
    """
    try:
        open_there = call(host, source)
    finally:
        for each in (descriptor, reading, writing):
            os.close(each)
    assert str(secret) not in open_there.values()
    pipes = [target for target in open_there.values() if target.startswith("pipe:")]
    # Requests, answers and the lifeline of this worker; its own /proc listing and event loop add no pipe.
    assert len(pipes) == 3


def test_no_core_file_can_be_left(host: SnippetHost) -> None:
    source = "import resource\ndef f(): return resource.getrlimit(resource.RLIMIT_CORE)"
    assert call(host, source) == [0, 0]


def test_memory_is_limited(host: SnippetHost) -> None:
    source = "import resource\ndef f(): return resource.getrlimit(resource.RLIMIT_AS)"
    assert call(host, source) == [1 << 30, 1 << 30]


def test_a_snippet_sees_nothing_of_the_runners_process(host: SnippetHost) -> None:
    modules = call(host, "import sys\ndef f(): return sorted(sys.modules)")
    assert not {"inspect_ai", "aigo_inspect", "pytest", "aigo_bridge.cli"} & set(modules)


def test_nor_can_it_be_read_from_the_runners_process() -> None:
    # The environment under /proc is the one that a process was started with, so the runner is started with the key.
    source = f"""
        from aigo_bridge.snippets import Snippet, SnippetHost
        code = '''
        import os
        def f():
            found = []
            for name in os.listdir("/proc"):
                for part in ("environ", "mem"):
                    try:
                        if not name.isdigit() or int(name) == os.getpid():
                            continue
                        if part == "environ" or int(name) == os.getppid():
                            with open(f"/proc/{{name}}/{{part}}", "rb") as file:
                                if part == "mem" or b"{KEY}" in file.read():
                                    found.append([name, part])
                    except OSError:
                        pass
            return found
        '''
        import textwrap
        print(SnippetHost().call_blocking(Snippet(textwrap.dedent(code), "f", "spy"), (), {{}}))
    """
    environment = {**os.environ, "OPENAI_API_KEY": KEY}
    done = subprocess.run(
        [sys.executable, "-c", dedent(source)], env=environment, capture_output=True, text=True, timeout=60
    )
    assert (done.stdout.strip(), done.stderr) == ("[]", "")


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
            "E: its message cannot",
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


def test_floods_of_output_disturb_nobody(host: SnippetHost) -> None:
    source = "import os, sys\ndef f():\n    os.write(1, b'x' * 9_000_000)\n    print('y' * 9_000_000)\n    return 1"
    assert call(host, source) == 1
