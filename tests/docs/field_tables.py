"""Write the field tables of the reference pages from the classes that read and write the files.

python -m tests.docs.field_tables          writes the tables
python -m tests.docs.field_tables --check  fails if a table is not current
"""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

from pydantic import BaseModel
from tests.support.commands import REPOSITORY
from tests.support.pages import Page, Section

from aigo_bridge import dtypes
from aigo_bridge.spec.base import OneOf
from aigo_bridge.spec.datasets import DatasetGeneratorSpec, DatasetSpec
from aigo_bridge.spec.schema import description
from aigo_bridge.spec.task import TaskSpec
from aigo_bridge.spec.wording import TAGS, default_words, field_words, meaning, tag_of_model

BEGIN, END = "<!-- fields: {} -->", "<!-- end of fields -->"
_TABLE = re.compile(r"<!-- fields: (\w+) -->\n(.*?)<!-- end of fields -->", re.DOTALL)


@dataclass(frozen=True)
class Tables:
    """Classes that a group of pages describes."""

    paths: tuple[Path, ...]
    roots: tuple[type[BaseModel], ...]
    has_defaults: bool = True
    """Whether people write these files, and want to know what they may leave out; else a program does, which writes nulls."""
    elsewhere: tuple[type[BaseModel], ...] = ()
    """Classes without a table, which the page names and leaves to others; with all that is only below them."""

    @property
    def pages(self) -> list[Page]:
        """Read the pages."""
        return [Page(path, path.read_text(encoding="utf-8")) for path in self.paths]

    @property
    def classes(self) -> dict[str, type[BaseModel]]:
        """Return the possible classes of these file types by name."""
        found: dict[str, type[BaseModel]] = {}
        waiting = list(self.roots)
        while waiting:
            model = waiting.pop(0)
            if model.__name__ not in found and model not in self.elsewhere:
                model.model_rebuild()
                found[model.__name__] = model
                waiting += [each for info in model.model_fields.values() for each in _models(info.annotation)]
        return found

    @property
    def bases(self) -> dict[str, type[BaseModel]]:
        """Return shared base classes; fields of a base with its own table are only in that table."""
        found = [base for model in self.classes.values() for base in model.__mro__[1:]]
        return {base.__name__: base for base in found if getattr(base, "model_fields", None)}


REFERENCE = REPOSITORY / "docs" / "reference"
TASK_FORMAT = Tables(
    tuple(
        REFERENCE / "task-format" / f"{name}.md"
        for name in ("README", "solvers", "scorers", "metrics", "datasets", "actions")
    ),
    (TaskSpec, DatasetSpec, DatasetGeneratorSpec),
)
TASKLOG = Tables(
    (REFERENCE / "result-log.md",),
    (dtypes.TaskResultLog,),
    has_defaults=False,
    elsewhere=(
        dtypes.StoredTask,
        dtypes.StoredModel,
        dtypes.StoredDataset,
        dtypes.EvaluationConfig,
        # Of older logs; what is written has traces.
        dtypes.SingleSolverOutput,
        dtypes.GroupedSolverOutput,
        # Details of what a provider said about a text.
        dtypes.UrlCitationBody,
        dtypes.TextCitationBody,
        dtypes.LogProb,
    ),
)
GROUPS = (TASK_FORMAT, TASKLOG)


def _models(annotation: Any) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    arguments = get_args(annotation)
    if choice := next((argument for argument in arguments if isinstance(argument, OneOf)), None):
        yield from choice.types.values()
        return
    for argument in arguments:
        yield from _models(argument)


def _is_alternative(model: type[BaseModel]) -> bool:
    """Return whether a class is one of several alternatives, selected by a tag or a filter operation."""
    return tag_of_model(model) is not None or "op" in model.model_fields


def marked(pages: Iterable[Page]) -> dict[str, Section]:
    """Return the classes that have a table, by name, with the section of the table."""
    return {
        name: section
        for page in pages
        for section in page.sections
        for name, _ in _TABLE.findall(section.body)
    }


class Writer:
    """Writer of the tables of one page in a group."""

    def __init__(self, tables: Tables, page: Page, others: Iterable[Page] = ()):
        self._tables = tables
        self._page = page
        pages = (page, *(other for other in others if other.path != page.path))
        self._marked = marked(pages)
        self._homes = {name: each for each in pages for name in marked([each])}

    @property
    def text(self) -> str:
        """Return the page with current tables."""
        classes = self._tables.bases | self._tables.classes
        if unknown := set(self._marked) - set(classes):
            raise SystemExit(f"{self._page.path.name}: no such class: {', '.join(sorted(unknown))}")
        return _TABLE.sub(
            lambda match: f"{BEGIN.format(match[1])}\n{self._table(classes[match[1]])}{END}", self._page.text
        )

    def _table(self, model: type[BaseModel]) -> str:
        """Return the fields of a class with their values, defaults and meanings."""
        names = self._fields(model)
        if not names:
            return "No additional fields.\n"
        head = ["field", "value", *(["default"] if self._tables.has_defaults else []), "meaning"]
        rows = [f"| {' | '.join(head)} |", "|---" * len(head) + "|"]
        for name in names:
            info = model.model_fields[name]
            value = field_words(info, self._link, with_null=not self._tables.has_defaults)
            cells = [f"`{info.alias or name}`", value]
            if self._tables.has_defaults:
                cells.append(default_words(info))
            cells.append(self._meaning(model, name))
            rows.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
        return "\n".join(rows) + "\n"

    def _fields(self, model: type[BaseModel]) -> list[str]:
        """Return the fields for the table of a class, without the tag and fields of a base with its own table."""
        bases = [
            base
            for base in model.__mro__[1:]
            if issubclass(base, BaseModel) and base.__name__ in self._marked
        ]
        elsewhere = {name for base in bases for name in base.model_fields} - set(
            inspect.get_annotations(model)
        )
        tags = TAGS if tag_of_model(model) is not None else ()
        return [name for name in model.model_fields if name not in elsewhere and name not in tags]

    def _link(self, model: type[BaseModel]) -> str:
        """Return the link to a class: its own section, the chapter of alternatives, or the section of its owner."""
        section = self._marked.get(model.__name__)
        if section is None:
            return "mapping"
        title = section.chapter if section.level > 2 and _is_alternative(model) else section.title
        if title == model.__name__ and not self._tables.has_defaults:
            text = f"`{title}`"
        else:
            text = "mapping" if title.startswith("`") and tag_of_model(model) is None else title.lower()
        home = self._homes[model.__name__]
        name = "" if home is self._page else home.path.name
        return f"[{text}]({name}#{home.anchor(title)})"

    def _meaning(self, model: type[BaseModel], name: str) -> str:
        if self._tables.has_defaults:
            return meaning(model, name)
        return re.sub(r"\s+", " ", description(model, name) or "").strip().replace("`None`", "null")


def stale(tables: Tables) -> dict[Path, str]:
    """Return the pages whose tables are not current, with their current text."""
    pages = tables.pages
    texts = {page.path: Writer(tables, page, pages).text for page in pages}
    return {page.path: texts[page.path] for page in pages if texts[page.path] != page.text}


if __name__ == "__main__":
    outdated = {path: text for group in GROUPS for path, text in stale(group).items()}
    if sys.argv[1:] == ["--check"]:
        names = ", ".join(path.name for path in outdated)
        sys.exit(f"field tables are not current: make field-tables ({names})" if outdated else 0)
    for path, text in outdated.items():
        path.write_text(text, encoding="utf-8")
