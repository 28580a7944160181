"""Fixtures of the whole suite: the command line, the shipped tasks, a model endpoint on 127.0.0.1."""

from __future__ import annotations

import fcntl
import gc
import os
import signal
import sys
from collections.abc import Callable, Generator, Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import orjson
import pytest
from hypothesis import settings
from tests.support import fork_server
from tests.support.commands import ENVIRONMENT, TASKS, Finished, Run, called
from tests.support.durations import is_nightly, missing_parameters, without_parameters
from tests.support.endpoint import Endpoint

from aigo_bridge.snippets import host

MOST_WORKERS = host.MOST_WORKERS
FREEZE_COUNT = gc.get_freeze_count

if "PYTEST_XDIST_WORKER" not in os.environ:
    # Inspect keeps the buffers of killed runs for three days, and looks through all of them in each run.
    DATA = TemporaryDirectory(prefix="aigo-data-", ignore_cleanup_errors=True)
    os.environ["XDG_DATA_HOME"] = ENVIRONMENT["XDG_DATA_HOME"] = DATA.name

# Shells start what they put in the background deaf to interrupts, and `nohup` to hangups: so would be all that the tests start, and stop.
for number, handler in ((signal.SIGINT, signal.default_int_handler), (signal.SIGHUP, signal.SIG_DFL)):
    if signal.getsignal(number) is signal.SIG_IGN:
        signal.signal(number, handler)

# A few examples, the same in every run: whether a change is sound must not depend on chance. `make nightly` tries many random ones.
EXAMPLES = os.environ.get("AIGO_FUZZ_EXAMPLES")
settings.register_profile(
    "repeatable", deadline=None, derandomize=EXAMPLES is None, max_examples=int(EXAMPLES or 50)
)
settings.load_profile("repeatable")


def pytest_xdist_auto_num_workers() -> int:
    """Two processes more than there are cores, because a quarter of the time a test waits, for a server, a lease or a process that
    ends. Fewer on a small machine: a process needs 2 GB, and its commands also need memory.
    """
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return max(1, min(len(os.sched_getaffinity(0)) + 2, memory // (3 << 30)))


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None]:
    """Exclude loaded objects from garbage collection. Searching a million of them takes a tenth of the time of all tests.

    One process collects the tests before the others, which then use the bytecode that it wrote. Compiling takes half of the collection.
    """
    gc.disable()
    kept, sys.dont_write_bytecode = sys.dont_write_bytecode, False
    try:
        with Path(__file__).open() as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                fcntl.flock(lock, fcntl.LOCK_SH)
            return (yield)
    finally:
        sys.dont_write_bytecode = kept
        gc.freeze()
        gc.enable()
        # Each run counts the frozen objects, and counting a million takes 0.1 seconds: longer than the rest of a short run.
        gc.get_freeze_count = lambda: 1
        # With Python's thresholds a tenth of a run looks for garbage: what tests load later, torch and whole engines, again and again.
        gc.set_threshold(7_000, 10, 30)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Keep tests in one process if they share a fixture of their module, load lighteval, or are in one file of the core or an extra.

    A fixture is then created once, and lighteval is loaded once. Fewer groups are faster: xdist searches all earlier groups after each test.
    `tryfirst`: before xdist reads the groups.
    """
    # If a machine lacks what a kept parameter needs, the other parameters of its test run in its place.
    missing = {without_parameters(test) for test in missing_parameters({item.nodeid for item in items})}
    for item in items:
        if is_nightly(item.nodeid) and without_parameters(item.nodeid) not in missing:
            item.add_marker(pytest.mark.nightly)
        if isinstance(item, pytest.Function) and item.get_closest_marker("xdist_group") is None:
            definitions = item._fixtureinfo.name2fixturedefs.values()
            if "lighteval" in item.nodeid:
                item.add_marker(pytest.mark.xdist_group("lighteval"))
            elif item.nodeid.startswith(("tests/bridge", "tests/extras")) or any(
                each[-1].scope in ("class", "module") for each in definitions
            ):
                item.add_marker(pytest.mark.xdist_group(item.nodeid.partition("::")[0]))
    _name_groups(items)


def _name_groups(items: Sequence[pytest.Item]) -> None:
    """Put a test's group behind its name, by which xdist keeps groups together. xdist 3.8 does so itself, but writes to a field that pytest has no
    more since 9.2: every process would make every module's fixtures, and load lighteval.
    """
    for item in items:
        mark = item.get_closest_marker("xdist_group")
        if mark is not None and hasattr(item, "_id") and getattr(item.config.option, "loadgroup", False):
            name = f"{item.nodeid}@{mark.kwargs.get('name') or mark.args[0]}"
            item._id = type(item._id).parse(name)


def pytest_unconfigure() -> None:
    """End the processes that fork for commands: they are started when a test first needs one."""
    if (forked := sys.modules.get("tests.support.forked")) is not None:
        forked.stop()


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Limit the snippet workers of a run to one, unless the test's file is about snippets. No test gets the `--snippets` of the last one.

    A call that has waited for a quarter of a second starts a second worker. On a busy machine the first call can take longer than
    that, and a worker costs a third of a CPU second.
    """
    host.MOST_WORKERS = MOST_WORKERS if "snippet" in item.nodeid.partition("::")[0] else 1
    host.run_in_process(False)
    fork_server.skip_hidden_results()


@pytest.fixture
def snippet_workers() -> None:
    """Allow as many snippet workers as a user's command has."""
    host.MOST_WORKERS = MOST_WORKERS


@pytest.fixture(autouse=True)
def nothing_known() -> Iterator[None]:
    """Secrets of one test are ordinary texts in the next."""
    yield
    if (secrets := sys.modules.get("aigo_bridge.redaction.secrets")) is not None:
        secrets.KNOWN.forget()


@pytest.fixture
def frozen_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """For tests of frozen objects: count them."""
    monkeypatch.setattr(gc, "get_freeze_count", FREEZE_COUNT)


@pytest.fixture
def own_heap() -> None:
    """For tests that limit CPU time: collecting garbage among what other tests have loaded (torch …) is not counted."""
    gc.collect()
    gc.freeze()


@pytest.fixture
def tasks() -> Path:
    """Folder of the shipped tasks."""
    return TASKS


@pytest.fixture
def aigo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """`aigo-bridge` in this process, in an empty folder."""
    monkeypatch.chdir(tmp_path)
    return called


@pytest.fixture
def command(tmp_path: Path) -> Run:
    """A command of the test environment in a process of its own, in an empty folder."""
    from tests.support.forked import finished

    def run(name: str, *args: object, cwd: Path = tmp_path, timeout: float = 120, **env: str) -> Finished:
        done = finished([name, *args], cwd=cwd, env={**os.environ, **env}, timeout=timeout)
        return Finished(done.returncode, done.stdout, done.stderr)

    return run


@pytest.fixture
def result_of() -> Callable[[Path], dict[str, Any]]:
    """A result log as plain JSON, after it was found valid."""
    from aigo_bridge.results.validating import validate_log

    def load(path: Path) -> dict[str, Any]:
        assert validate_log(path) == []
        data: dict[str, Any] = orjson.loads(path.read_bytes())
        return data

    return load


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    """A model endpoint that speaks OpenAI's chat completion protocol, on 127.0.0.1."""
    server = Endpoint()
    server.start()
    yield server
    server.stop()
