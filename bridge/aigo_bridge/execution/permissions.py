"""Permissions of task code that exceed the jail, and the permissions that the user has granted.

An author declares the need in the task file. The user allows it once for this version of the code and
config. The permission is stored in the user's own configuration, never in a file that comes with a task.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from aigo_bridge.codes import Code
from aigo_bridge.errors import UsageError
from aigo_bridge.process.temporary import draft_of
from aigo_bridge.snippets.process import reached

if TYPE_CHECKING:
    from aigo_bridge.plan.plan import TaskPlan
    from aigo_bridge.snippets import SnippetHost

NEEDS = ("network",)
"""Permissions that can be granted."""

_ALLOWED_NOW: set[str] = set()


def allow(needs: Iterable[str]) -> None:
    """Grant permissions to the tasks of this process and remember them for each task.

    Raises:
        UsageError: a permission is unknown.
    """
    wanted = set(needs)
    unknown = sorted(wanted - set(NEEDS))
    if unknown:
        raise UsageError(
            f"--allow: found {unknown[0]!r}, expected {' or '.join(NEEDS)}", code=Code.WRONG_OPTION
        )
    _ALLOWED_NOW.clear()
    _ALLOWED_NOW.update(wanted)


def is_allowed(plan: TaskPlan) -> bool:
    """Return whether the task code may use the permission that the task declares."""
    needed = plan.task.needs
    return needed is None or needed in _ALLOWED_NOW or needed in _remembered().get(_digest(plan), ())


def snippet_host(plan: TaskPlan) -> SnippetHost:
    """Return the host for a plan's code, with the permissions that the user granted to the task."""
    from aigo_bridge.snippets import SnippetHost, SnippetLimits

    return SnippetHost(SnippetLimits(network=plan.task.needs == "network" and is_allowed(plan)))


class SharedHosts:
    """Hosts for the plans of a run. Plans with equal code and permissions share a host."""

    def __init__(self) -> None:
        self._hosts: dict[tuple[str, bool], SnippetHost] = {}

    def of_plan(self, plan: TaskPlan) -> SnippetHost:
        """Return the host for the code of a plan."""
        host = snippet_host(plan)
        return self._hosts.setdefault((_digest(plan), host.limits.network), host)

    def close(self) -> None:
        """Stop the workers of all hosts."""
        for host in self._hosts.values():
            host.close()


def resolve_permissions(plan: TaskPlan) -> TaskPlan:
    """Return a plan that is about to run, with the confinement level of its code.

    Raises:
        UsageError: the code needs a permission that was not granted.
        SnippetsRefusedError: the code cannot be confined as required.
    """
    from aigo_bridge.planning.planning import has_snippets

    if not has_snippets(plan.definition):
        return plan
    require_allowed([plan])
    if plan.task.needs is not None:
        _remember(plan, plan.task.needs)
    return replace(plan, snippets=reached().level)


def require_allowed(plans: Iterable[TaskPlan]) -> None:
    """Raise an error for plans without the permissions they need. The error covers all plans, because one
    `--allow` applies to all.

    Raises:
        UsageError: a permission is missing.
    """
    from aigo_bridge.planning.planning import has_snippets

    lacking = [plan for plan in plans if has_snippets(plan.definition) and not is_allowed(plan)]
    if not lacking:
        return
    tasks = {_digest(plan): plan.task for plan in lacking}
    (digest, task), *more = tasks.items()
    if not more:
        raise UsageError(
            f"task {task.key!r}: the code needs the {task.needs}, which is not allowed yet. "
            f"If you trust the task, run the command again with `--allow {task.needs}` "
            f"(remembered for this version, {digest[:12]})",
            code=Code.NOT_ALLOWED,
        )
    named = ", ".join(f"{task.key!r} ({digest[:12]})" for digest, task in tasks.items())
    needs = sorted({str(task.needs) for task in tasks.values()})
    raise UsageError(
        f"tasks {named}: the code needs the {' and the '.join(needs)}, which is not "
        "allowed yet. If you trust all tasks, run the command again with "
        f"{' '.join(f'`--allow {need}`' for need in needs)} (remembered until a task "
        "changes)",
        code=Code.NOT_ALLOWED,
    )


def _digest(plan: TaskPlan) -> str:
    """Return the SHA-256 checksum of everything that determines which code runs: the task and its config."""
    from aigo_bridge.plan.plan import document_of

    content = {"task": document_of(plan.task), "config": dict(plan.config)}
    text = json.dumps(content, sort_keys=True, ensure_ascii=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()


def _file() -> Path | None:
    base = os.environ.get("XDG_CONFIG_HOME", "")
    if not Path(base).is_absolute():
        try:
            base = str(Path.home() / ".config")
        except RuntimeError:  # The user does not have a home folder.
            return None
    return Path(base) / "aigo-bridge" / "allowed.json"


def _remembered() -> dict[str, list[str]]:
    """Return task digest → granted permissions. An unreadable file grants nothing."""
    file = _file()
    if file is None:
        return {}
    try:
        remembered = json.loads(file.read_bytes())
    except (OSError, ValueError, RecursionError):
        return {}
    if not isinstance(remembered, dict):
        return {}
    return {digest: needs for digest, needs in remembered.items() if isinstance(needs, list)}


def _remember(plan: TaskPlan, need: str) -> None:
    remembered, file = _remembered(), _file()
    digest = _digest(plan)
    if file is None or need in remembered.get(digest, ()):
        return
    remembered[digest] = sorted({*remembered.get(digest, ()), need})
    with suppress(OSError):  # The permission still applies to this run.
        file.parent.mkdir(parents=True, exist_ok=True)
        with draft_of(file) as draft:
            draft.write_text(json.dumps(remembered, indent=2) + "\n", encoding="utf-8")
            draft.replace(file)
