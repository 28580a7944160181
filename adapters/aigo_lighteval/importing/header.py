"""Reader of a run's results file, with limits, and the parts that one task's result needs."""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from aigo_bridge.access.bounds import Bounds
from aigo_bridge.codes import Code
from aigo_bridge.errors import EvidenceError
from aigo_bridge.importing.places import FileLocation
from aigo_bridge.redaction.redactor import Redactor
from aigo_bridge.text.json_text import DEEPEST, dumps, without_depths

Json = dict[str, Any]
BY_TASK = {"summary_tasks": "summary_task", "versions": "version"}
"""Tables by task in the results file, and the name of one task's entry."""
_SPLIT = re.compile(r"[^A-Za-z0-9]+")


@dataclass(frozen=True)
class Header:
    """Content of the results file; empty if the file is missing."""

    general: Json = field(default_factory=dict)
    """Content of `config_general`."""
    results: Json = field(default_factory=dict)
    """Metrics by task, including averages over tasks."""
    tasks: Json = field(default_factory=dict)
    """Configurations by task."""
    rest: Json = field(default_factory=dict)
    """All other content of the file."""
    size: int = 0
    """File size in bytes."""

    @property
    def model(self) -> str | None:
        """Return the model name; `None` if the file does not contain it."""
        config = self.general.get("model_config")
        for name in (
            self.general.get("model_name"),
            config.get("model_name") if isinstance(config, dict) else None,
        ):
            if isinstance(name, str) and name:
                return name
        return None

    @property
    def model_config(self) -> Json:
        """Return the model's configuration; empty if the file does not contain it."""
        config = self.general.get("model_config")
        return config if isinstance(config, dict) else {}

    @property
    def runtime(self) -> float | None:
        """Return the runtime in seconds. Start and end are clock readings without a date."""
        try:
            seconds = float(str(self.general.get("total_evaluation_time_secondes")))
        except ValueError:
            return None
        return seconds if math.isfinite(seconds) and seconds >= 0 else None

    def within(self, bounds: Bounds, tasks: int) -> Header:
        """Return this header without parts that would fill the disk, because every task's result repeats
        them.

        Args:
            bounds: limits; `growth` limits the repeated content.
            tasks: number of results.
        """
        common = {name: part for name, part in self.rest.items() if name not in BY_TASK}
        if len(dumps([self.general, common])) * tasks <= bounds.room(self.size):
            return self
        kept = {} if self.model is None else {"model_name": self.model}
        return replace(self, general=kept, rest={k: v for k, v in self.rest.items() if k in BY_TASK})

    def averages(self, task: str) -> Json:
        """Return the averages that include a task: over all tasks and over its group."""
        group = re.split(r"[:|]", task.rsplit("|", 2)[-2] if "|" in task else task)[0]
        return {
            name: value
            for name in ("all", *self._group_averages.get(group, ()))
            if (value := self.results.get(name)) is not None
        }

    @cached_property
    def _group_averages(self) -> dict[str, list[str]]:
        """Return the names of averages by group, which is the first part of a task name."""
        averages: dict[str, list[str]] = {}
        for name in self.results:
            if is_average(name) and name != "all":
                averages.setdefault(name.split(":_average")[0].rsplit("|", 1)[-1], []).append(name)
        return averages

    def task_names(self) -> list[str]:
        """Return the tasks that have metrics, in file order."""
        return [name for name in self.results if not is_average(name)]


def is_average(name: str) -> bool:
    """Return whether a name in the results is an average over tasks: `all`, `mmlu:_average|5`."""
    return name == "all" or bool(re.search(r":_average([|:]\d+)?$", name))


def plain_name(name: str) -> str:
    """Return a task name without special characters. Some files write `:` for `|`, and moved files use other
    characters.
    """
    return _SPLIT.sub("_", name)


def own_part(table: Any, name: str) -> Any:
    """Return a task's entry in a table; `None` if missing."""
    if not isinstance(table, dict):
        return None
    if name in table:
        return table[name]
    plain = plain_name(name)
    same = [key for key in table if plain_name(str(key)) == plain]
    return table[same[0]] if len(same) == 1 else None


def read_header(location: str, bounds: Bounds, redaction: Redactor, *, redact: bool) -> tuple[Json, Header]:
    """Return the content of the results file, and its parts.

    Raises:
        EvidenceError: the file cannot be read, is not a results file, or exceeds the bounds.
    """
    place = FileLocation.of(location)
    try:
        data = place.read(bounds.member_bytes)
    except OSError as error:
        raise EvidenceError(f"cannot read the results file: {error}", code=Code.UNREADABLE_LOG) from error
    bounds.check_document(location, data)
    data = redaction.json(data)
    try:
        content = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise EvidenceError(f"the results file is not JSON: {error}", code=Code.NOT_A_LOG) from error
    if not isinstance(content, dict) or not isinstance(content.get("results"), dict):
        raise EvidenceError(
            "'results' is missing or is not an object, so it is not a lighteval file", code=Code.NOT_A_LOG
        )
    if without_depths(content):
        raise EvidenceError(
            f"the results file is nested more than {DEEPEST} levels deep", code=Code.NOT_A_LOG
        )
    if redact:
        content = redaction.settings(content)
    parts = {name: content.pop(name, None) for name in ("config_general", "results", "config_tasks")}
    objects = {name: part if isinstance(part, dict) else {} for name, part in parts.items()}
    odd = {name: part for name, part in parts.items() if part is not None and not isinstance(part, dict)}
    header = Header(
        objects["config_general"], objects["results"], objects["config_tasks"], {**content, **odd}, len(data)
    )
    return {**content, **parts}, header
