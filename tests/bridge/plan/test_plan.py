"""Fingerprints that distinguish models of the same name."""

from __future__ import annotations

from pathlib import Path

from aigo_bridge.plan.plan import fingerprint_of, mixed


def test_provider_model_fingerprint_depends_only_on_its_name() -> None:
    assert fingerprint_of("openai/gpt-4.1") == fingerprint_of("openai/gpt-4.1")
    assert fingerprint_of("openai/gpt-4.1") != fingerprint_of("openai/gpt-4.1-mini")


def test_model_file_content_changes_the_fingerprint(tmp_path: Path) -> None:
    for name in (f"scripted/{tmp_path}/m.jsonl", f"{tmp_path}/m.jsonl", f"{tmp_path}/m.jsonl#key"):
        (tmp_path / "m.jsonl").write_text("a")
        before = fingerprint_of(name)
        (tmp_path / "m.jsonl").write_text("b")
        assert fingerprint_of(name) != before, name


def test_weight_files_change_the_fingerprint(tmp_path: Path) -> None:
    (tmp_path / "weights.bin").write_text("a")
    for name in (f"transformers/{tmp_path}", f"lighteval/transformers/{tmp_path},dtype=float16"):
        before = fingerprint_of(name)
        assert fingerprint_of(name) == before
        (tmp_path / "weights.bin").write_text((tmp_path / "weights.bin").read_text() + "b")
        assert fingerprint_of(name) != before, name


def test_missing_model_file_still_has_a_fingerprint(tmp_path: Path) -> None:
    assert fingerprint_of(f"scripted/{tmp_path}/none.jsonl") == fingerprint_of(
        f"scripted/{tmp_path}/none.jsonl"
    )


def test_run_resumed_with_changed_model_gets_a_new_fingerprint() -> None:
    old, new = {"": "a", "judge": "j"}, {"": "b", "judge": "j"}

    both = mixed(old, new)

    assert both["judge"] == "j"
    assert both[""] not in ("a", "b")
    assert mixed(new, new) == new
    assert mixed({}, new) == new
