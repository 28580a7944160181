"""Golden logs of every tool are imported and verified at each level without false alarms."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest
from tests.support.commands import REPOSITORY, Run

from aigo_trust.verification.levels import Verification
from aigo_trust.verification.materials import Materials
from aigo_trust.verification.verifying import verify

GOLDEN = REPOSITORY / "tests/golden"
LOGS = [
    *sorted((GOLDEN / "inspect").glob("*.eval")),
    *sorted((GOLDEN / "inspect").glob("*.json")),
    *sorted((GOLDEN / "lighteval").glob("*.zip")),
    *sorted((GOLDEN / "lm_eval").glob("*.zip")),
]


def findings_of(verification: Verification) -> list[str]:
    return [str(finding) for level in verification.levels for finding in level.findings]


@pytest.mark.parametrize("log", LOGS, ids=lambda log: f"{log.parent.name}-{log.name}")
def test_imported_golden_log_is_verified_as_proved(log: Path, aigo: Run, tmp_path: Path) -> None:
    if log.suffix == ".zip":
        with zipfile.ZipFile(log) as archive:
            archive.extractall(tmp_path / "log")
        location = tmp_path / "log"
    else:
        location = log
    done = aigo("import", location, "--provenance", "--out", "out")
    assert done.code == 0, done.err
    results = sorted((tmp_path / "out").glob("*.tasklog.json"))
    assert results
    for result in results:
        # The native log of a folder's results is named by none of them alone.
        native = str(log) if log.suffix != ".zip" else None
        verification = verify(result, Materials(log=native))
        assert findings_of(verification) == [], result.name
        assert verify(result, Materials()).exit_code == 0, "nothing was asked for that could not be checked"
        verdicts = {level.name: level.verdict for level in verification.levels}
        assert verdicts["log"] == verdicts["digests"] == "proved", result.name
        assert verdicts["native"] == ("cannot be checked" if native is None else "proved")
        assert verdicts["metrics"] in ("proved", "cannot be checked"), result.name
