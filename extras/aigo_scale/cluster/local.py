"""Ray, for as long as a command needs it: a cluster of this machine, or one that is there."""

from __future__ import annotations

import os
import shutil
import signal
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from aigo_bridge.codes import Code
from aigo_bridge.errors import UsageError
from aigo_bridge.process.extras import package

_STORE_BYTES = 80 * 2**20
"""Of Ray's object store: nothing large goes through it."""

_QUIET = {
    "RAY_USAGE_STATS_ENABLED": "0",  # nobody is told of a run
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
    "RAY_ENABLE_UV_RUN_RUNTIME_ENV": "0",
    "RAY_worker_niceness": "0",  # workers are the whole of the command, and no background to it
}


@contextmanager
def connected(address: str | None, workers: int | None) -> Iterator[Any]:
    """Ray, connected; what this command has started ends with the block.

    Args:
        address: of a cluster; `None`: one of this machine is started.
        workers: CPUs of that; `None`: all.

    Raises:
        UsageError: Ray is not installed, or there is no cluster.
    """
    for name, value in _QUIET.items():
        os.environ.setdefault(name, value)
    ray = package("ray", "--on ray (extra 'ray')", "ray")
    if address is not None and address.startswith("ray://"):
        raise UsageError(
            f"--ray-address: found {address!r}, expected HOST:PORT or auto: the command runs on a node of the"
            " cluster, whose end the cluster notices",
            code=Code.WRONG_OPTION,
        )
    heard = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    folder = None if address is not None else tempfile.mkdtemp(prefix="aigo-ray-", dir=_short())
    options: dict[str, Any] = {"log_to_driver": False, "logging_level": "ERROR", "configure_logging": True}
    if address is None:
        count = workers or os.cpu_count() or 1
        options |= {"num_cpus": count, "include_dashboard": False, "object_store_memory": _STORE_BYTES}
    try:
        try:
            ray.init(
                address=address or "local", **options, **({} if folder is None else {"_temp_dir": folder})
            )
        except (ConnectionError, RuntimeError, ValueError) as error:
            where = "a cluster of this machine" if address is None else repr(address)
            raise UsageError(
                f"--ray-address: {where} cannot be reached: {str(error)[:300]}", code=Code.WRONG_OPTION
            ) from error
        _hear(heard)
        _hush(ray)
        yield ray
    finally:
        with suppress(Exception):
            ray.shutdown()
        _hear(heard)
        if folder is not None:
            shutil.rmtree(folder, ignore_errors=True)


def _short() -> str | None:
    """A folder whose name leaves room for those of sockets, which are short."""
    usual = tempfile.gettempdir()
    return usual if len(usual) < 20 or not Path("/tmp").is_dir() else "/tmp"  # noqa: S108  # mkdtemp makes one of its own in it


def _hush(ray: Any) -> None:
    """Ray prints lines of a lost node's log onto standard output; the driver tells of it itself."""
    # There is no other way to have it quiet; without this name nothing is changed.
    if hasattr(ray._private.worker, "print_to_stdstream"):  # noqa: SLF001
        ray._private.worker.print_to_stdstream = lambda *_, **__: None  # noqa: SLF001


def _hear(handlers: dict[signal.Signals, Any]) -> None:
    """Ray hears signals in its own way; those of the command are its own."""
    with suppress(ValueError):  # not in the main thread: nobody has changed them
        for number, handler in handlers.items():
            signal.signal(number, handler)
