"""The local sandbox as Inspect knows sandboxes: `aigo_local`.

Files are kept on the side of the runner and copied into `/work` for each command; what a command writes is gone when it ends.
"""

from __future__ import annotations

import tempfile
from pathlib import Path, PurePosixPath
from typing import Literal, overload

from inspect_ai.util import (
    ExecResult,
    OutputLimitExceededError,
    SandboxEnvironment,
    SandboxEnvironmentConfigType,
    sandboxenv,
)

from aigo_inspect.sandbox.jailing import JailLimits, run_jailed

NAME = "aigo_local"


@sandboxenv(name=NAME)
class LocalSandbox(SandboxEnvironment):
    """Linux namespaces: no network, read-only root, own `/tmp` and `/work`, limits on everything."""

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="aigo-sandbox-", ignore_cleanup_errors=True)

    @classmethod
    async def sample_init(
        cls, task_name: str, config: SandboxEnvironmentConfigType | None, metadata: dict[str, str]
    ) -> dict[str, SandboxEnvironment]:
        """One sandbox for each sample."""
        return {"default": cls()}

    @classmethod
    async def sample_cleanup(
        cls,
        task_name: str,
        config: SandboxEnvironmentConfigType | None,
        environments: dict[str, SandboxEnvironment],
        interrupted: bool,
    ) -> None:
        """Remove the sample's files."""
        for each in environments.values():
            each.as_type(cls).remove()

    async def exec(
        self,
        cmd: list[str],
        input: str | bytes | None = None,  # noqa: A002  # Inspect's name
        cwd: str | None = None,
        env: dict[str, str] | None = None,
        user: str | None = None,
        timeout: int | None = None,
        timeout_retry: bool = True,
        concurrency: bool = True,
    ) -> ExecResult[str]:
        """Run a command in `/work`, for at most `timeout` seconds (30 without).

        Raises:
            TimeoutError: it took longer.
            OutputLimitExceededError: it wrote more than a megabyte.
            PermissionError: another user is asked for; there is but one.
            JailRefusedError: there can be no sandbox here.
        """
        if user is not None:
            raise PermissionError(f"found the user {user!r}, expected none: the sandbox has but one")
        limits = JailLimits() if timeout is None else JailLimits(seconds=timeout)
        result = await run_jailed(
            cmd,
            stdin=input.encode() if isinstance(input, str) else input or b"",
            folder=Path(self._folder.name),
            cwd=cwd or ".",
            environment=env,
            limits=limits,
        )
        stdout, stderr = (text.decode(errors="replace") for text in (result.stdout, result.stderr))
        if result.ended == "time":
            raise TimeoutError(f"took longer than {limits.seconds:g} s")
        if result.ended == "output":
            raise OutputLimitExceededError(f"{limits.output_bytes:,} bytes", stdout or stderr)
        if result.ended == "memory":
            return ExecResult(False, 137, stdout, f"{stderr}\nused more than {limits.memory_bytes:,} bytes")
        code = result.code if result.code is not None else 1
        return ExecResult(code == 0, code if code >= 0 else 128 - code, stdout, stderr)

    def remove(self) -> None:
        """Remove its files."""
        self._folder.cleanup()

    async def write_file(self, file: str, contents: str | bytes) -> None:
        """Put a file where commands find it in `/work`."""
        path = self._path(file)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(contents.encode() if isinstance(contents, str) else contents)

    @overload
    async def read_file(self, file: str, text: Literal[True] = True) -> str: ...

    @overload
    async def read_file(self, file: str, text: Literal[False]) -> bytes: ...

    async def read_file(self, file: str, text: bool = True) -> str | bytes:
        """A file that was put there."""
        content = self._path(file).read_bytes()
        return content.decode() if text else content

    def _path(self, file: str) -> Path:
        path = PurePosixPath("/work", file)
        if ".." in path.parts or not path.is_relative_to("/work"):
            raise PermissionError(f"found {file!r}, expected a path below /work")
        return Path(self._folder.name, path.relative_to("/work"))
