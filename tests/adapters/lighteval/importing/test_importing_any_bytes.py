"""Details with changed bytes: the import ends with a report, and its output is valid."""

from __future__ import annotations

import os
import random
import zipfile
from pathlib import Path

import pytest
from tests.adapters.lighteval.importing.results import imported, load
from tests.support.commands import REPOSITORY

ROUNDS = int(os.environ.get("AIGO_FUZZ_EXAMPLES", "30"))


@pytest.mark.parametrize("task", ["demo:gen|2", "choice|0", "samples|0"])
def test_details_with_changed_bytes_give_valid_output(task: str, tmp_path: Path) -> None:
    with zipfile.ZipFile(REPOSITORY / "tests" / "golden" / "lighteval" / "0.13.0.zip") as archive:
        archive.extractall(tmp_path / "run")
    (path,) = (path for path in (tmp_path / "run").rglob("*.parquet") if task in path.name)
    whole = path.read_bytes()
    # The bytes are fixed, because a reader that crashes the process would end the tests.
    rng = random.Random(task)
    codes = set()
    for _ in range(ROUNDS):
        data = bytearray(whole)
        first = rng.choice((0, len(data) * 2 // 3))
        for _ in range(rng.choice((1, 2, 20))):
            data[rng.randrange(first, len(data))] = rng.randrange(256)
        if rng.random() < 0.1:
            data = data[: rng.randrange(len(data))] + data[-8:]
        path.write_bytes(data)
        code, (report,) = imported(path, tmp_path / "out")
        codes.add(code)
        assert report.output is not None
        log = load(report.output)
        assert (log.status == "success") == (code == 0) == (not log.errors)
        assert log.evidence is not None
        assert log.evidence.metrics
        assert len(log.evidence.samples or []) == 5 or code == 3
    assert codes == {0, 3}
