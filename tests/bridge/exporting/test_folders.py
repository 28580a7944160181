"""Exports are written completely or not at all, and never overwrite other files."""

from __future__ import annotations

import ast
import keyword
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aigo_bridge.errors import UsageError
from aigo_bridge.exporting.folders import MARK, new_content
from aigo_bridge.exporting.python_code import identifier, literal, module_name, text_literal, unique_names


def fill(draft: Path, text: str) -> None:
    (draft / "t").mkdir()
    (draft / "t" / "export.json").write_text(text)
    (draft / "t" / "samples.jsonl").write_text(text)
    (draft / "t.py").write_text(f'"""{MARK} {text}"""')
    (draft / "README.md").write_text(f"{MARK} {text}")


def export(out: Path, text: str, *, force: bool = False) -> None:
    with new_content(out, force=force) as draft:
        fill(draft, text)


def contents(folder: Path) -> dict[str, str]:
    return {
        path.relative_to(folder).as_posix(): path.read_text() for path in folder.rglob("*") if path.is_file()
    }


def test_new_folder_is_created_with_all_its_content_at_once(tmp_path: Path) -> None:
    with new_content(tmp_path / "a" / "b", force=False) as draft:
        fill(draft, "1")
        assert not (tmp_path / "a" / "b").exists()

    assert set(contents(tmp_path / "a")) == {"b/t/export.json", "b/t/samples.jsonl", "b/t.py", "b/README.md"}


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt])
def test_no_files_are_left_after_an_error(error: type[BaseException], tmp_path: Path) -> None:
    def interrupted(out: Path, *, force: bool) -> None:
        with new_content(out, force=force) as draft:
            fill(draft, "2")
            raise error

    with pytest.raises(error):
        interrupted(tmp_path / "out", force=False)
    assert list(tmp_path.iterdir()) == []
    export(tmp_path / "out", "1")
    with pytest.raises(error):
        interrupted(tmp_path / "out", force=True)
    assert [path.name for path in tmp_path.iterdir()] == ["out"]
    assert "2" not in "".join(contents(tmp_path / "out").values())


def test_an_empty_folder_is_used(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()

    export(tmp_path / "out", "1")

    assert len(contents(tmp_path / "out")) == 4


def test_symlink_to_a_folder_is_kept(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "out").symlink_to("real")

    export(tmp_path / "out", "1")

    assert (tmp_path / "out").is_symlink()
    assert len(contents(tmp_path / "real")) == 4


def test_folder_that_is_not_empty_is_refused(tmp_path: Path) -> None:
    export(tmp_path / "out", "1")

    with pytest.raises(UsageError, match=r"is not empty; .*--force"):
        export(tmp_path / "out", "2")

    assert "2" not in "".join(contents(tmp_path / "out").values())


def test_file_in_place_of_the_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "out").write_text("x")

    with pytest.raises(UsageError, match="is a file, expected a folder"):
        export(tmp_path / "out", "1", force=True)


def test_force_replaces_only_files_of_an_export(tmp_path: Path) -> None:
    """Run logs in the folder stay. Files that only the old export had are deleted."""
    export(tmp_path / "out", "1")
    (tmp_path / "out" / "t" / "old.yaml").write_text("1")
    (tmp_path / "out" / "logs").mkdir()
    (tmp_path / "out" / "logs" / "a.eval").write_text("log")

    export(tmp_path / "out", "2", force=True)

    found = contents(tmp_path / "out")
    assert found.pop("logs/a.eval") == "log"
    assert set(found) == {"t/export.json", "t/samples.jsonl", "t.py", "README.md"}
    assert all("2" in text for text in found.values())
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


@pytest.mark.parametrize("name", ["README.md", "t.py", "t"])
def test_files_that_an_export_did_not_write_are_not_replaced(name: str, tmp_path: Path) -> None:
    place = tmp_path / "out" / name
    place.parent.mkdir()
    if "." in name:
        place.write_text("mine")
    else:
        place.mkdir()
        (place / "mine.txt").write_text("mine")
    before = contents(tmp_path)

    with pytest.raises(UsageError, match=f"'{name}' in folder .* are not from an export"):
        export(tmp_path / "out", "1", force=True)

    assert contents(tmp_path) == before


# Names and literals


@pytest.mark.parametrize(
    ("key", "name"),
    [
        ("hp-trivia", "hp_trivia"),
        ("HP-Trivia", "hp_trivia"),
        ("1st", "_1st"),
        ("json", "json_task"),
        ("inspect_ai", "inspect_ai_task"),
        ("match", "match_task"),
        ("class", "class_"),
        ("a" * 250, "a" * 36),
        ("---", "___"),
    ],
)
def test_module_name_is_derived_from_the_key(key: str, name: str) -> None:
    assert module_name(key) == name


def test_taken_module_names_get_the_next_number() -> None:
    assert module_name("a-b", ["a_b", "a_b_2"]) == "a_b_3"
    assert unique_names(["a-b", "a_b", "a.b"], ["x"]) == {"a-b": "a_b_2", "a_b": "a_b", "a.b": "a_b_3"}


any_text = st.text(st.characters(exclude_categories=["Cs"]))


@settings(deadline=None)
@given(key=any_text)
def test_every_key_is_converted_to_an_identifier(key: str) -> None:
    name = identifier(key)

    assert name.isidentifier()
    assert not keyword.iskeyword(name)
    assert ast.parse(f"{name} = 1").body[0].targets[0].id == name  # type: ignore[attr-defined]  # an assignment
    assert module_name(key) not in sys.stdlib_module_names


@settings(deadline=None)
@given(keys=st.lists(any_text, unique=True, max_size=6), reserved=st.lists(st.sampled_from(["a", "_", "_2"])))
def test_module_names_are_unique(keys: list[str], reserved: list[str]) -> None:
    names = unique_names(keys, reserved)

    assert list(names) == keys
    assert len({*names.values(), *reserved}) == len(names) + len({*reserved})


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | any_text,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(any_text, inner, max_size=3),
    max_leaves=6,
)


@settings(deadline=None)
@given(value=values)
def test_literal_evaluates_to_the_value(value: object) -> None:
    source = literal(value)

    assert repr(ast.literal_eval(source)) == repr(value)
    assert all(char.isprintable() or char == "\n" for char in source)


@settings(deadline=None)
@given(text=any_text)
def test_text_literal_is_one_source_line(text: str) -> None:
    assert ast.literal_eval(text_literal(text)) == text
    assert "\n" not in text_literal(text)
