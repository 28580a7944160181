"""The checkpoint file of answers after a kill, on a full disk or with a second run."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aigo_bridge.dtypes import ChatCompletionInput
from aigo_bridge.execution.checkpoint import Asker, Checkpoint, CheckpointCall
from aigo_bridge.models.protocol import ModelRequest

IDENTITY = ["task", "model"]


def request(text: str = "q") -> ModelRequest:
    return ModelRequest(ChatCompletionInput.model_validate({"messages": [{"role": "user", "content": text}]}))


def call(
    checkpoint: Checkpoint, text: str = "q", *, trial: int = 0, who: str = "solver", times: int = 1
) -> CheckpointCall:
    asker = Asker(checkpoint, None, "s", trial, who)
    return [asker.call("", "m", request(text)) for _ in range(times)][-1]


def kept(folder: Path) -> Path:
    """Write a checkpoint with three answers."""
    checkpoint = Checkpoint(folder, IDENTITY, goes_on=False)
    for number in range(3):
        call(checkpoint, f"q{number}").keep(b'{"said": "%d"}' % number)
    checkpoint.close()
    return checkpoint.path


def answers(folder: Path) -> list[object]:
    checkpoint = Checkpoint(folder, IDENTITY, goes_on=True)
    found = [call(checkpoint, f"q{number}").answer() for number in range(3)]
    checkpoint.close()
    return found


def test_stored_answers_are_found_by_call_identity(tmp_path: Path) -> None:
    checkpoint = Checkpoint(tmp_path, IDENTITY, goes_on=False)
    call(checkpoint).keep(b"1")
    call(checkpoint, times=2).keep(b"2")
    call(checkpoint, trial=1).keep(b"3")
    call(checkpoint, who="judge").keep(b"4")
    checkpoint.close()

    checkpoint = Checkpoint(tmp_path, IDENTITY, goes_on=True)
    assert checkpoint.num_answers == 4
    assert call(checkpoint).answer() == 1
    assert call(checkpoint, times=2).answer() == 2
    assert call(checkpoint, times=3).answer() is None
    assert call(checkpoint, trial=1).answer() == 3
    assert call(checkpoint, who="judge").answer() == 4
    assert call(checkpoint, "other").answer() is None
    checkpoint.close()


@pytest.mark.parametrize("cut", [1, 2, 20])
def test_a_truncated_last_line_is_ignored(tmp_path: Path, cut: int) -> None:
    path = kept(tmp_path)
    path.write_bytes(path.read_bytes()[:-cut])
    expected = [{"said": "0"}, {"said": "1"}, {"said": "2"} if cut == 1 else None]
    assert answers(tmp_path) == expected
    # Lines written afterwards are complete.
    checkpoint = Checkpoint(tmp_path, IDENTITY, goes_on=True)
    call(checkpoint, "q2").keep(b'{"said": "new"}')
    checkpoint.close()
    assert answers(tmp_path) == [{"said": "0"}, {"said": "1"}, {"said": "new"}]


@given(place=st.integers(min_value=0), byte=st.integers(0, 255))
def test_damaged_byte_loses_only_the_affected_lines(
    tmp_path_factory: pytest.TempPathFactory, place: int, byte: int
) -> None:
    folder = tmp_path_factory.mktemp("checkpoint")
    path = kept(folder)
    content = bytearray(path.read_bytes())
    content[place % len(content)] = byte
    path.write_bytes(content)
    found = answers(folder)
    right = [{"said": str(number)} for number in range(3)]
    assert all(answer in (None, wanted) for answer, wanted in zip(found, right, strict=True))
    assert sum(answer is None for answer in found) <= 2


def test_failed_trial_is_removed_and_can_be_stored_again(tmp_path: Path) -> None:
    checkpoint = Checkpoint(tmp_path, IDENTITY, goes_on=False)
    call(checkpoint).keep(b"1")
    call(checkpoint, trial=1).keep(b"2")
    checkpoint.forget("s", 0)
    call(checkpoint, "second").keep(b"3")
    checkpoint.close()
    checkpoint = Checkpoint(tmp_path, IDENTITY, goes_on=True)
    assert [
        call(checkpoint).answer(),
        call(checkpoint, trial=1).answer(),
        call(checkpoint, "second").answer(),
    ] == [
        None,
        2,
        3,
    ]
    checkpoint.close()


def test_other_plans_and_models_have_other_checkpoints(tmp_path: Path) -> None:
    kept(tmp_path)
    other = Checkpoint(tmp_path, ["task", "other"], goes_on=True)
    assert other.num_answers == 0
    other.close()


def test_concurrent_second_run_stores_nothing(tmp_path: Path) -> None:
    first = Checkpoint(tmp_path, IDENTITY, goes_on=False)
    second = Checkpoint(tmp_path, IDENTITY, goes_on=False)
    call(second).keep(b"2")
    assert call(second).answer() is None
    second.remove()
    call(first).keep(b"1")
    first.close()
    checkpoint = Checkpoint(tmp_path, IDENTITY, goes_on=True)
    assert call(checkpoint).answer() == 1
    checkpoint.remove()
    assert not list(tmp_path.iterdir())


def test_an_unwritable_folder_is_not_an_error(tmp_path: Path) -> None:
    checkpoint = Checkpoint(tmp_path / "missing", IDENTITY, goes_on=True)
    call(checkpoint).keep(b"1")
    assert call(checkpoint).answer() is None
    checkpoint.remove()
