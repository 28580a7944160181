"""Untrusted bundles: members stay in the folder, and limits apply before unpacking."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest
from tests.support.results import metric, question, result, write_result

from aigo_bridge.codes import Code
from aigo_bridge.engine.provenance import ResultOrigin
from aigo_bridge.errors import EvidenceError
from aigo_trust.provenance.record import write_provenance
from aigo_trust.verification import bundling
from aigo_trust.verification.bundling import Contents, open_bundle, write_bundle
from aigo_trust.verification.materials import Materials
from aigo_trust.verification.opening import verify_any


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    log = result([question(number, "a", "a") for number in range(3)], [metric({"accuracy": 1.0})])
    path = write_result(tmp_path / "r.tasklog.json", log)
    write_provenance(path, ResultOrigin("run", "inspect"))
    write_bundle(Contents(path, Materials()), tmp_path / "b.zip")
    return tmp_path / "b.zip"


def with_member(bundle: Path, name: str, content: bytes = b"x", *, mode: int = 0o100644) -> Path:
    entry = zipfile.ZipInfo(name)
    entry.external_attr = mode << 16
    with zipfile.ZipFile(bundle, "a") as archive:
        archive.writestr(entry, content)
    return bundle


@pytest.mark.parametrize(
    ("name", "mode"),
    [
        ("../out.txt", 0o100644),
        ("/etc/out.txt", 0o100644),
        ("a/../../out.txt", 0o100644),
        ("a\\..\\out.txt", 0o100644),
        ("C:out.txt", 0o100644),
        ("link", 0o120777),
        ("result/", 0o040755),
        ("bundle.json", 0o100644),
    ],
)
@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_bundle_with_outside_or_special_members_is_rejected(
    name: str, mode: int, bundle: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "inside"
    folder.mkdir()
    with pytest.raises(EvidenceError, match="cannot be read as a bundle") as caught:
        open_bundle(with_member(bundle, name, mode=mode), folder)
    assert caught.value.code == Code.BROKEN_BUNDLE
    assert list(folder.iterdir()) == []
    assert not (tmp_path / "out.txt").exists()
    assert verify_any(bundle, Materials()).exit_code == 1


def test_bundle_limits_are_checked_before_unpacking(
    bundle: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bundling, "MOST_BYTES", 1000)
    with pytest.raises(EvidenceError, match="more than 1,000 bytes"):
        open_bundle(bundle, tmp_path / "a")
    monkeypatch.setattr(bundling, "MOST_MEMBERS", 1)
    with pytest.raises(EvidenceError, match="at most 1"):
        open_bundle(bundle, tmp_path / "a")


def test_member_missing_in_the_manifest_is_not_unpacked(bundle: Path, tmp_path: Path) -> None:
    opened = open_bundle(with_member(bundle, "result/added.bin", b"x" * 5_000), tmp_path / "a")
    assert [(finding.file, finding.message) for finding in opened.findings] == [
        ("result/added.bin", "was added to the bundle")
    ]
    assert not (tmp_path / "a" / "result" / "added.bin").exists()


@pytest.mark.parametrize("members", [[1 << 28], [30 << 20] * 10])
def test_zip_bomb_is_rejected_before_unpacking(members: list[int], bundle: Path, tmp_path: Path) -> None:
    """Try one unlisted member of 256 MB, and ten members that are each within the limits."""
    with zipfile.ZipFile(bundle, "a", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for number, size in enumerate(members):
            with archive.open(f"log/bomb{number}", "w", force_zip64=True) as file:
                for _ in range(size >> 20):
                    file.write(bytes(1 << 20))
    (tmp_path / "a").mkdir()
    with pytest.raises(EvidenceError, match=r"looks like a zip bomb|members have more than"):
        open_bundle(bundle, tmp_path / "a")
    assert list((tmp_path / "a").iterdir()) == []
    assert verify_any(bundle, Materials()).exit_code == 1


def test_bundle_of_equal_contents_is_byte_identical(bundle: Path, tmp_path: Path) -> None:
    write_bundle(Contents(tmp_path / "r.tasklog.json", Materials()), tmp_path / "c.zip")
    assert (tmp_path / "c.zip").read_bytes() == bundle.read_bytes()


@pytest.mark.parametrize("content", [b"PK\x03\x04", b"PK\x03\x04" + b"\0" * 100])
def test_a_file_that_is_not_a_zip_is_reported(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "b.zip").write_bytes(content)
    assert verify_any(tmp_path / "b.zip", Materials()).exit_code == 1


def test_result_that_cannot_be_reported_is_a_finding(bundle: Path, tmp_path: Path) -> None:
    altered = tmp_path / "altered.zip"
    with zipfile.ZipFile(bundle) as before, zipfile.ZipFile(altered, "w") as after:
        for name in before.namelist():
            content = before.read(name)
            if name.startswith("result/r.tasklog"):
                assert b'"format_version":"v1"' in content
                content = content.replace(b'"format_version":"v1"', b'"format_version":"v7"')
            after.writestr(name, content)

    verification = verify_any(altered, Materials())

    assert verification.exit_code == 1
    findings = "\n".join(str(finding) for level in verification.levels for finding in level.findings)
    assert "report.html: a report of the result cannot be written" in findings
    assert "format_version" in findings
