"""Rows in a spill file equal the rows in memory."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

from aigo_bridge.datasets.files import load_file
from aigo_bridge.datasets.rows import Selection
from aigo_bridge.datasets.spill_files import LazySequence, SpillFile


def test_spilled_values_are_read_in_any_order_by_two_readers() -> None:
    spilled = SpillFile()
    values = [{"n": n, "text": "ä" * n, "nan": math.inf, "big": 2**70} for n in range(5)]
    for value in values:
        spilled.append(value)
    assert len(spilled) == 5
    assert list(spilled.read(1, 3)) == values[1:3]
    assert list(zip(spilled.read(0, 5), spilled.read(0, 5), strict=True)) == [(v, v) for v in values]


@pytest.mark.parametrize("size", [1, 1000, 20_000, 65_536, 200_000])
def test_spilled_values_of_any_size_are_read_from_any_position(size: int) -> None:
    spilled = SpillFile()
    values = [f"{number:03}" * (size // 3 + number % 3) for number in range(40)]
    for value in values:
        spilled.append(value)
    assert list(spilled.read(0, 40)) == values
    assert list(spilled.read(7, 39)) == values[7:39]
    assert list(spilled.read(39, 40)) == values[39:]
    assert list(spilled.read(5, 5)) == []


def test_lazy_sequence_is_indexed_like_a_list() -> None:
    numbers = LazySequence(5, lambda start, stop: iter(range(start, stop)))
    listed = list(range(5))
    assert list(numbers) == listed
    assert [numbers[0], numbers[-1]] == [0, 4]
    for part in (slice(1, 3), slice(3, 1), slice(None, None, 2), slice(-2, None), slice(None, None, -1)):
        assert numbers[part] == listed[part]
    with pytest.raises(IndexError):
        numbers[5]
    assert list(numbers.mapped(lambda number: number * 2)) == [0, 2, 4, 6, 8]


@pytest.mark.parametrize("selection", [{}, {"num_samples": 3}, {"num_samples": 3, "subsampling": "random"}])
@pytest.mark.parametrize("kind", ["jsonl", "csv"])
def test_rows_on_disk_equal_the_rows_in_memory(
    selection: dict[str, object], kind: str, tmp_path: Path
) -> None:
    path = tmp_path / f"rows.{kind}"
    if kind == "csv":
        path.write_text(
            "sample_id,n,late\n" + "".join(f"q{n},{n},{'x' if n > 4 else ''}\n" for n in range(7))
        )
    else:
        rows = [{"sample_id": f"q{n}", "n": n, **({"late": "ä"} if n > 4 else {})} for n in range(7)]
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    memory = load_file(path, Selection(**selection))  # type: ignore[arg-type]
    disk = load_file(path, Selection(**selection, on_disk=True))  # type: ignore[arg-type]
    assert repr(list(disk.rows)) == repr(list(memory.rows))
    assert (disk.columns, disk.total, disk.digest, len(disk)) == (
        memory.columns,
        memory.total,
        memory.digest,
        len(memory),
    )
