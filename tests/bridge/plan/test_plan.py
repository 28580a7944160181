"""What tells models of the same name apart."""

from __future__ import annotations

from pathlib import Path

from aigo_bridge.plan.plan import fingerprint_of, mixed


def test_a_name_is_all_that_is_known_of_a_providers_model() -> None:
    assert fingerprint_of("openai/gpt-4.1") == fingerprint_of("openai/gpt-4.1")
    assert fingerprint_of("openai/gpt-4.1") != fingerprint_of("openai/gpt-4.1-mini")


def test_the_content_of_a_file_counts(tmp_path: Path) -> None:
    for name in (f"scripted/{tmp_path}/m.jsonl", f"{tmp_path}/m.jsonl", f"{tmp_path}/m.jsonl#key"):
        (tmp_path / "m.jsonl").write_text("a")
        before = fingerprint_of(name)
        (tmp_path / "m.jsonl").write_text("b")
        assert fingerprint_of(name) != before, name


def test_the_files_of_a_folder_of_weights_count(tmp_path: Path) -> None:
    (tmp_path / "weights.bin").write_text("a")
    for name in (f"transformers/{tmp_path}", f"lighteval/transformers/{tmp_path},dtype=float16"):
        before = fingerprint_of(name)
        assert fingerprint_of(name) == before
        (tmp_path / "weights.bin").write_text((tmp_path / "weights.bin").read_text() + "b")
        assert fingerprint_of(name) != before, name


def test_a_missing_or_unreadable_file_is_not_an_error_here(tmp_path: Path) -> None:
    assert fingerprint_of(f"scripted/{tmp_path}/none.jsonl") == fingerprint_of(
        f"scripted/{tmp_path}/none.jsonl"
    )


def test_a_run_resumed_with_a_changed_model_belongs_to_neither() -> None:
    old, new = {"": "a", "judge": "j"}, {"": "b", "judge": "j"}

    both = mixed(old, new)

    assert both["judge"] == "j"
    assert both[""] not in ("a", "b")
    assert mixed(new, new) == new
    assert mixed({}, new) == new
