"""Choice of a sandbox for code that a model wrote: docker if it works, otherwise Linux namespaces.

This module does not import Inspect; `environment` does.
"""

from __future__ import annotations

import subprocess
from concurrent.futures import ThreadPoolExecutor
from functools import cache

import anyio

from aigo_bridge.plan.plan import TaskPlan
from aigo_bridge.sandbox.jailing import JailLimits, JailRefusedError, JailResult, run_jailed

__all__ = ["available", "needs_sandbox"]


_PROBE = """
import os
for path in ("/probe", "/usr/probe"):
    try:
        open(path, "w")
    except OSError:
        continue
    raise SystemExit("the root can be written to")
if len(open("/proc/net/dev").readlines()) > 3:
    raise SystemExit("there is a network")
open("file", "w").write("x")
print("jailed")
"""


def needs_sandbox(plan: TaskPlan) -> bool:
    """Return whether a plan runs code that a model wrote, as an agent's tool or to score an answer."""
    return plan.entity != "system" and (
        plan.runs_tools or any(scorer.runs_answers for scorer in plan.benchmark.scorers)
    )


@cache
def available() -> tuple[str | None, str]:
    """Return Inspect's name of the sandbox that works on this machine, and the reason for the choice.

    The name is `None` if there is no working sandbox. The check starts a real program, so it can take several
    seconds.
    """
    engine = _docker()
    if engine is None:
        return "docker", "docker answers"
    try:
        # Inspect may call this from inside its event loop, so the probe runs in another thread.
        with ThreadPoolExecutor(max_workers=1) as thread:
            result = thread.submit(anyio.run, _probe).result()
    except JailRefusedError as error:
        return None, f"{engine}; {error}"
    if result.stdout.strip() != b"jailed":
        stderr = result.stderr.decode(errors="replace").strip()[-200:]
        return (
            None,
            f"{engine}; the local sandbox does not isolate code: {stderr or f'ended by {result.ended}'}",
        )
    return "aigo_local", f"{engine}; Linux namespaces work"


async def _probe() -> JailResult:
    return await run_jailed(["python3", "-I", "-c", _PROBE], limits=JailLimits(seconds=20))


def _docker() -> str | None:
    """Return the reason why docker does not work; `None` if it works."""
    try:
        done = subprocess.run(
            ["docker", "info", "--format", "{{.ServerVersion}}"],  # noqa: S607  # Inspect finds docker the same way
            capture_output=True,
            text=True,
            timeout=10,
            check=False,
        )
    except FileNotFoundError:
        return "docker is not installed"
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"docker does not respond ({type(error).__name__})"
    if done.returncode != 0 or not done.stdout.strip():
        return "docker does not respond"
    return None
