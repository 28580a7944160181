"""Invalid provenance files are rejected with a reason."""

from __future__ import annotations

from pathlib import Path

import pytest

from aigo_bridge.codes import Code
from aigo_bridge.errors import EvidenceError
from aigo_trust.provenance.record import FORMAT, read_provenance


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (None, "the file does not exist"),
        ("", "cannot be read"),
        ("[" * 100_000, "cannot be read"),
        ("[]", "found format None, expected"),
        ('{"format": "x"}', "found format 'x', expected"),
        (f'{{"format": "{FORMAT}", "digest": "{"0" * 64}"}}', "was modified"),
    ],
)
def test_missing_or_invalid_provenance_is_rejected(content: str | None, problem: str, tmp_path: Path) -> None:
    file = tmp_path / "a.provenance.json"
    if content is not None:
        file.write_text(content, "utf-8")

    with pytest.raises(EvidenceError) as caught:
        read_provenance(file)

    assert problem in str(caught.value)
    assert caught.value.code == Code.BROKEN_PROVENANCE
