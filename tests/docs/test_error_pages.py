"""Error pages: each example causes its error, and the page shows the printed message."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.docs.error_pages import DOCS, PROJECT, RUN, base, index, made, output, part, said
from tests.support.commands import REPOSITORY

from aigo_bridge.catalogue import CATALOGUE
from aigo_bridge.catalogue.text import page
from aigo_bridge.codes import Code

pytestmark = [pytest.mark.engine, pytest.mark.slow]
EXAMPLES = [code for code, entry in CATALOGUE.items() if entry.example is not None]


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder that examples change; they run in this process."""
    return base(tmp_path_factory.mktemp("errors"))


@pytest.mark.parametrize("code", EXAMPLES)
def test_example_causes_its_error_as_shown_on_the_page(code: Code, project: Path, tmp_path: Path) -> None:
    entry = CATALOGUE[code]
    text = output(entry, made(entry, project, tmp_path))
    assert f"[{code}]" in text
    assert (DOCS / "errors" / f"{code}.md").read_text("utf-8") == page(entry, part(entry, text))


def test_examples_without_their_mistake_are_valid(project: Path) -> None:
    assert "[AB" not in said(project, "validate task.yaml run.yaml result.tasklog.json")
    assert "[AB" not in said(project, f"{RUN} --out ../again")


def test_each_code_has_exactly_one_page() -> None:
    assert {path.stem for path in (DOCS / "errors").glob("*")} == set(Code)
    for code in set(Code) - set(EXAMPLES):
        assert (DOCS / "errors" / f"{code}.md").read_text("utf-8") == page(CATALOGUE[code])
    assert (DOCS / "errors.md").read_text("utf-8") == index()
    assert PROJECT.is_relative_to(REPOSITORY)
