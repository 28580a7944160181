"""Ray for the duration of a command: a cluster on this machine or an existing one."""

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
"""Size of Ray's object store in bytes. No large objects go through it."""

_QUIET = {
    "RAY_USAGE_STATS_ENABLED": "0",  # no usage reports
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
    "RAY_ENABLE_UV_RUN_RUNTIME_ENV": "0",
    "RAY_worker_niceness": "0",  # workers are the main work of the command, not background work
}


@contextmanager
def connected(address: str | None, workers: int | None) -> Iterator[Any]:
    """Connect to Ray. Everything that this command starts ends with the block.

    Args:
        address: address of a cluster; `None`: start one on this machine.
        workers: number of CPUs of the local cluster; `None`: all.

    Raises:
        UsageError: Ray is not installed, or the cluster is unreachable.
    """
    for name, value in _QUIET.items():
        os.environ.setdefault(name, value)
    ray = package("ray", "--on ray (extra 'ray')", "ray")
    if address is not None and address.startswith("ray://"):
        raise UsageError(
            f"--ray-address: found {address!r}, expected HOST:PORT or auto. Run the command on a node of the"
            " cluster, so that the cluster notices its end",
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
    """Return a temporary folder with a short path, because socket paths have a maximum length."""
    usual = tempfile.gettempdir()
    return usual if len(usual) < 20 or not Path("/tmp").is_dir() else "/tmp"  # noqa: S108  # mkdtemp creates a private folder in it


def _hush(ray: Any) -> None:
    """Stop Ray from printing a lost node's log to standard output. The driver reports the loss itself."""
    # Ray does not offer a setting for this. If the name is missing, the output is left unchanged.
    if hasattr(ray._private.worker, "print_to_stdstream"):  # noqa: SLF001
        ray._private.worker.print_to_stdstream = lambda *_, **__: None  # noqa: SLF001


def _hear(handlers: dict[signal.Signals, Any]) -> None:
    """Restore the command's signal handlers, which Ray replaces."""
    with suppress(ValueError):  # outside the main thread, the handlers are unchanged
        for number, handler in handlers.items():
            signal.signal(number, handler)
