"""Leases: one process at a time writes to a folder, and leases of killed processes expire."""

from __future__ import annotations

import pytest
from tests.support.storage import BUCKET, S3

from aigo_bridge.access.object_addresses import parse
from aigo_bridge.codes import Code
from aigo_bridge.errors import UsageError
from aigo_scale.storage.leases import LEASE, Lease, lease_seconds

FOLDER = parse(f"s3://{BUCKET}/out")


def test_second_lease_on_a_folder_is_rejected(s3: S3) -> None:
    notes: list[str] = []
    first = Lease(FOLDER)
    first.get(notes.append)
    assert first.is_sole
    assert notes == []
    second = Lease(FOLDER)

    def note(text: str) -> None:
        notes.append(text)
        first.renew()

    with pytest.raises(UsageError, match="another process writes into s3://bucket/out") as caught:
        second.get(note)
    assert caught.value.code == Code.PLACE_IN_USE
    assert "next check in" in notes[0]
    assert len(s3.names(f"out/{LEASE}")) == 1
    first.give_back()
    assert s3.names() == []


def test_lease_of_a_killed_process_expires_and_is_deleted(s3: S3) -> None:
    Lease(FOLDER).renew()  # this process never renews its lease
    notes: list[str] = []
    later = Lease(FOLDER)
    later.get(notes.append)
    assert len(notes) == 1
    assert len(s3.names()) == 1
    assert later.is_sole


def test_a_concurrent_writer_is_detected(s3: S3) -> None:
    lease = Lease(FOLDER)
    lease.get(print)
    Lease(FOLDER).renew()
    assert not lease.is_sole


@pytest.mark.parametrize("text", ["soon", "0", "-1", "nan", "1e9"])
def test_lease_seconds_outside_the_limits_are_rejected(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setenv("AIGO_BRIDGE_LEASE_SECONDS", text)
    with pytest.raises(UsageError, match="expected 1 to 3600") as caught:
        lease_seconds()
    assert caught.value.code == Code.WRONG_LIMIT
