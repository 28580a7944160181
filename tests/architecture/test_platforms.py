"""Modules load without Unix-only functions, and text files are opened with an encoding.

Tests do not run on Windows and macOS; `docs/reference/versions-and-platforms.md` has the details.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tests.architecture.sources import SOURCES, Source

UNIX_MODULES = frozenset({"fcntl", "grp", "posix", "pty", "pwd", "resource", "syslog", "termios", "tty"})
UNIX_NAMES = {
    "os": frozenset(
        [
            "O_CLOEXEC",
            "O_DIRECTORY",
            "O_NOCTTY",
            "O_NOFOLLOW",
            "O_NONBLOCK",
            "O_PATH",
            "fork",
            "forkpty",
            "geteuid",
            "getuid",
            "killpg",
            "mkfifo",
            "setsid",
            "sched_getaffinity",
            "memfd_create",
        ]
    ),
    "signal": frozenset(
        [
            "SIGALRM",
            "SIGCHLD",
            "SIGHUP",
            "SIGKILL",
            "SIGPIPE",
            "SIGPROF",
            "SIGQUIT",
            "SIGUSR1",
            "SIGUSR2",
            "alarm",
            "pthread_sigmask",
            "setitimer",
        ]
    ),
    "select": frozenset({"epoll", "poll"}),
}
"""Module → what it has on Unix only."""

IN_PROCESSES_OF_THEIR_OWN = {
    "aigo_bridge.sandbox.jail": "started by the jail, which is for Linux",
    "aigo_bridge.sandbox.harness": "runs in the sandbox",
}
"""Modules that the runner never loads → why."""

LINUX = "aigo_bridge.sandbox."
"""What is for Linux alone, and reads its `/proc`."""


def at_load(node: ast.AST) -> Iterator[ast.AST]:
    """Return the code that runs when a module is loaded, without function bodies and code with an alternative."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.Try)):
            continue
        yield child
        yield from at_load(child)


def unix_only(tree: ast.AST) -> Iterator[str]:
    for node in at_load(tree):
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names if name.name in UNIX_MODULES)
        elif isinstance(node, ast.ImportFrom):
            known = UNIX_NAMES.get(node.module or "", frozenset())
            yield from (f"{node.module}.{name.name}" for name in node.names if name.name in known)
            yield from [node.module] if node.module in UNIX_MODULES else []
        elif (
            isinstance(node, ast.Attribute)
            and isinstance(node.value, ast.Name)
            and node.attr in UNIX_NAMES.get(node.value.id, frozenset())
        ):
            yield f"{node.value.id}.{node.attr}"


def without_encoding(source: Source) -> Iterator[int]:
    """Return lines that open a text file in the locale's encoding."""
    for node in ast.walk(source.tree):
        if not isinstance(node, ast.Call):
            continue
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        words = {keyword.arg for keyword in node.keywords}
        modes = [
            str(each.value)
            for each in node.args
            if isinstance(each, ast.Constant) and isinstance(each.value, str)
        ]
        modes += [
            str(k.value.value) for k in node.keywords if k.arg == "mode" and isinstance(k.value, ast.Constant)
        ]
        is_text = name in ("read_text", "write_text") and isinstance(node.func, ast.Attribute) and not modes
        is_text |= (
            name == "open" and isinstance(node.func, ast.Name) and not any("b" in mode for mode in modes)
        )
        if is_text and "encoding" not in words:
            yield node.lineno


def test_modules_load_without_unix_only_functions() -> None:
    found = {name: sorted(set(unix_only(source.tree))) for name, source in SOURCES.items()}
    assert {
        name: each for name, each in found.items() if each and name not in IN_PROCESSES_OF_THEIR_OWN
    } == {}


def test_text_files_are_opened_with_an_encoding() -> None:
    assert [
        f"{source}:{line}"
        for source in SOURCES.values()
        if not source.name.startswith(LINUX)
        for line in without_encoding(source)
    ] == []


def test_unix_only_functions_are_found() -> None:
    text = (
        "import fcntl\nfrom signal import SIGALRM, SIGINT\nA = os.O_DIRECTORY\nclass C:\n    B = select.poll\n"
        "try:\n    import resource\nexcept ImportError:\n    resource = None\n"
        "def f():\n    import pwd\n    return os.fork()\n"
    )
    assert list(unix_only(ast.parse(text))) == ["fcntl", "signal.SIGALRM", "os.O_DIRECTORY", "select.poll"]
