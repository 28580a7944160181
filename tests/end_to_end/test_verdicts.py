"""`verify` starts with one consistent verdict and lists the passed checks if a level has failed."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.support.commands import REPOSITORY, Finished, Run

from aigo_trust.verification.levels import TITLES

pytestmark = pytest.mark.engine

RESULT = "out/capitals.tasklog.json"
TASK = REPOSITORY / "examples/capitals"
Change = Callable[[Path], None]


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Unchanged run with its recording, attestation and a disclosed sample."""
    from typer.testing import CliRunner

    from aigo_bridge.cli import app

    folder = tmp_path_factory.mktemp("recorded")
    model = f"scripted/{TASK}/answers.jsonl"
    result, key = folder / RESULT, folder / "key.pem"
    for command in (
        ["run", TASK, "--model", model, "--out", folder / "out", "--record", folder / "run.cassette"],
        ["attest", result, "--new-key", key],
        ["attest", result, "--disclose", "2", "--out", folder / "one.json"],
    ):
        assert CliRunner().invoke(app, list(map(str, command))).exit_code == 0
    return folder


@pytest.fixture
def folder(recorded: Path, tmp_path: Path) -> Path:
    shutil.copytree(recorded, tmp_path, dirs_exist_ok=True)
    return tmp_path


def _replaced(before: str, after: str) -> Change:
    def change(folder: Path) -> None:
        file = folder / RESULT
        text = file.read_text()
        assert before in text
        file.write_text(text.replace(before, after, 1))

    return change


def _without_provenance(change: Change) -> Change:
    def changed(folder: Path) -> None:
        change(folder)
        (folder / "out/capitals.provenance.json").unlink()
        (folder / "out/capitals.intoto.json").unlink()

    return changed


def _same(folder: Path) -> None:
    """Change nothing."""


SCORE = _replaced('"is_correct":0.0', '"is_correct":1.0')
METRIC = _replaced('"Accuracy":0.75', '"Accuracy":0.5')
ANSWER = _replaced('"text":"Lima","annotations"', '"text":"Cusco","annotations"')
VERDICTS: list[tuple[str, Change, str, str, list[str]]] = [
    (
        "altered score",
        SCORE,
        "",
        "FAILED: altered after it was written",
        ["3 of 4 samples are as `run` wrote"],
    ),
    (
        "altered metric",
        METRIC,
        "",
        "FAILED: altered after it was written",
        ["4 of 4 samples are as `run` wrote"],
    ),
    (
        "altered metric, signed",
        METRIC,
        "--key key.pub.pem",
        "FAILED: altered after it was written",
        ["the file is a valid result log"],
    ),
    (
        "altered metric alone",
        _without_provenance(METRIC),
        "",
        "FAILED: its metrics do not follow from its samples' scores",
        ["the file is a valid result log"],
    ),
    (
        "altered answer alone",
        _without_provenance(ANSWER),
        "--recording run.cassette",
        "FAILED: it has answers that were not recorded",
        ["answers of 3 trials are in run.cassette"],
    ),
    (
        "no attestation for the key",
        lambda folder: (folder / "out/capitals.intoto.json").unlink(),
        "--key key.pub.pem",
        "FAILED: no attestation was found for the signer that was asked for",
        ["result, task, config, rows and code match the provenance"],
    ),
]


@pytest.mark.parametrize(
    ("change", "options", "verdict", "holds"), [row[1:] for row in VERDICTS], ids=[row[0] for row in VERDICTS]
)
def test_failed_result_has_one_verdict_and_lists_passed_checks(
    aigo: Run, folder: Path, change: Change, options: str, verdict: str, holds: list[str]
) -> None:
    change(folder)
    finished = aigo("verify", RESULT, *options.split())
    assert finished.code == 1
    checked, _, reliable = finished.out.partition("you can still rely on:")
    assert checked.splitlines()[0] == verdict
    for statement in holds:
        assert statement in reliable
    _contradicts_nothing(checked)


def _contradicts_nothing(checked: str) -> None:
    """Check that no level passes a check that FAILED has denied."""
    failed = [part for part in checked.split("\n  ") if not part.startswith(" ")]
    blocks = checked.split("\n  ")
    for block in failed:
        if " FAILED" in block:
            following = blocks[blocks.index(block) + 1]
            assert following.strip().startswith("- "), "the finding comes first"
            assert not any(title == following.strip() for title in TITLES.values())


def test_signature_with_another_key_fails(aigo: Run, folder: Path) -> None:
    aigo("attest", "--new-key", "other.pem")
    finished = aigo("verify", RESULT, "--key", "other.pub.pem")
    assert finished.code == 1
    assert finished.out.startswith("FAILED: the signature does not belong to this result")
    assert "the signature holds" not in finished.out


def test_verdict_is_proved_with_all_materials(aigo: Run, folder: Path) -> None:
    log = next((folder / "out").glob("*.eval"))
    options = [
        "--task",
        TASK,
        "--rerun-scorers",
        "--recording",
        "run.cassette",
        "--log",
        log,
        "--key",
        "key.pub.pem",
    ]
    finished = aigo("verify", RESULT, *options)
    assert (finished.code, finished.out.splitlines()[0]) == (0, "verified")


def test_cassette_of_another_task_is_not_compared(aigo: Run, folder: Path) -> None:
    cassette = folder / "run.cassette"
    text = (TASK / "task.yaml").read_text().replace("key: capitals\ndisplay", "key: towns\ndisplay")
    (folder / "capitals.jsonl").write_bytes((TASK / "capitals.jsonl").read_bytes())
    (folder / "towns.yaml").write_text(text)
    aigo("run", "towns.yaml", "--model", f"scripted/{TASK}/answers.jsonl", "--out", "towns")
    finished = aigo("verify", "towns/towns.tasklog.json", "--recording", cassette)
    assert finished.code == 3
    assert "lacks a run of this task; its runs are of 'capitals'" in finished.out


@pytest.mark.parametrize("verb", ["verify", "show"])
def test_disclosed_sample_is_shown_as_text(aigo: Run, folder: Path, verb: str) -> None:
    options = ["--key", "key.pub.pem"] if verb == "verify" else []
    finished = aigo(verb, "one.json", *options)
    assert finished.code == 0
    lines = [" ".join(line.split()) for line in finished.out.splitlines()]
    for fact in (
        "task Capitals (capitals)",
        "metric Accuracy (string_equals): 0.75",
        "sample 2",
        "question What is the capital of Australia? Answer with its name only.",
        "answer Sydney",
        "score is_correct (string_equals): 0.0",
    ):
        assert fact in lines
    assert any(line.startswith("model scripted/") for line in lines)


def _imported(aigo: Run, log: str) -> Finished:
    assert aigo("import", REPOSITORY / "tests/golden" / log, "--out", "imported").code == 0
    (result,) = Path("imported").glob("*.tasklog.json")
    return aigo("verify", result)


@pytest.mark.parametrize("log", ["inspect/0.3.240.eval"])
def test_intact_imported_log_exits_with_0_and_lists_unchecked_parts(aigo: Run, log: str) -> None:
    finished = _imported(aigo, log)
    assert finished.code == 0
    verdict = finished.out.splitlines()[0]
    assert verdict.startswith("partly verified: log")
    for name in ("digests", "native", "signature"):
        assert name in verdict.partition("not checked:")[2]
