"""Invalid and duplicate ids and epochs: each trial gets a distinct index, and changes are counted."""

import json
from pathlib import Path
from typing import Any

import pytest
from tests.support.inspect_logs.malformed import zipped
from tests.support.inspect_logs.small import header, imported, indices, said, sample

from aigo_inspect.logs.index import name_of
from aigo_inspect.logs.reader import open_log

HEAD = header(None, total=0)


def document(samples: list[dict[str, Any]], indent: int | None) -> bytes:
    return json.dumps({**json.loads(HEAD), "samples": samples}, indent=indent).encode()


@pytest.mark.parametrize("epoch", ["2", None, 1.5, 0, -3, True, [], 10**30, {}])
def test_a_missing_epoch_comes_from_the_member_name(epoch: Any, tmp_path: Path) -> None:
    result = imported(zipped({"header.json": HEAD, "samples/a_epoch_2.json": sample("a", epoch)}), tmp_path)
    assert (result.exit_code, indices(result)) == (0, [("a", 1)])
    assert [count for kind, count in result.loss.changed.items() if kind.startswith("sample epoch")] == [1]


@pytest.mark.parametrize("found", [1.5, [], {}, None, True, "other", 7])
def test_a_missing_id_comes_from_the_member_name(found: Any, tmp_path: Path) -> None:
    result = imported(zipped({"header.json": HEAD, "samples/a_epoch_1.json": sample(found)}), tmp_path)
    assert (result.exit_code, indices(result)) == (0, [("a", 0)])
    assert [count for kind, count in result.loss.changed.items() if kind.startswith("sample id")] == [1]


def test_ids_keep_their_type_and_windows_slashes_are_accepted(tmp_path: Path) -> None:
    parts = {
        "samples/7_epoch_1.json": sample(7),
        "samples/8_epoch_1.json": sample("8"),
        "samples/a/b_epoch_1.json": sample("a\\b"),
        "samples/ü/x_epoch_1.json": sample("ü/x"),
        f"samples/{name_of('n' * 20_000)}_epoch_1.json": sample("n" * 20_000),
    }
    head = header([7, "8", "a\\b", "ü/x", "n" * 20_000], total=5)
    result = imported(zipped({"header.json": head, **parts}), tmp_path)
    assert {found for found, _ in indices(result)} == {7, "8", "a\\b", "ü/x", "n" * 20_000}
    assert said(result) == ""
    assert result.loss.changed == {}


def test_two_members_with_the_same_sample_id_stay_distinct(tmp_path: Path) -> None:
    parts = {"samples/a_epoch_1.json": sample("a"), "samples/b_epoch_1.json": sample("a")}
    result = imported(zipped({"header.json": HEAD, **parts}), tmp_path)
    assert indices(result) == [("a", 0), ("b", 0)]
    assert sum(result.loss.changed.values()) == 1


@pytest.mark.parametrize("name", ["samples/a_epoch_0.json", f"samples/a_epoch_{'9' * 5000}.json"])
def test_an_invalid_epoch_in_a_name_is_replaced_by_a_free_one(name: str, tmp_path: Path) -> None:
    parts = {"samples/a_epoch_1.json": sample("a"), name: sample("a")}
    result = imported(zipped({"header.json": HEAD, **parts}), tmp_path)
    assert sorted(indices(result)) == [("a", 0), ("a", 1)]
    assert sum(result.loss.changed.values()) == 1


@pytest.mark.parametrize("indent", [None, 2])
@pytest.mark.parametrize(
    "epochs", [[1, "2"], [1, 1], [1, None], [1, 0], [-1, 1], [2, float("nan")], [1, 10**30]]
)
def test_trials_of_a_json_log_get_distinct_indices(
    epochs: list[Any], indent: int | None, tmp_path: Path
) -> None:
    samples = [json.loads(sample("a", epoch)) for epoch in epochs]
    result = imported(document(samples, indent), tmp_path)
    assert result.exit_code == 0
    assert sorted(indices(result)) == [("a", 0), ("a", 1)]
    assert [count for kind, count in result.loss.changed.items() if kind.startswith("sample epoch")] == [1]


def test_thousands_of_samples_with_one_id_are_numbered_quickly(tmp_path: Path) -> None:
    result = imported(document([json.loads(sample("a"))] * 4_000, None), tmp_path)
    assert [index for _, index in indices(result)] == list(range(4_000))
    assert sum(result.loss.changed.values()) == 3_999


@pytest.mark.parametrize("indent", [None, 2])
def test_an_invalid_id_in_a_json_log_is_damage(indent: int | None, tmp_path: Path) -> None:
    ids: tuple[Any, ...] = (1.5, [], {}, None, True, "", "a")
    samples = [json.loads(sample(found)) for found in ids]
    result = imported(document(samples, indent), tmp_path)
    # An empty text is a valid id, as in Inspect.
    assert sorted(indices(result)) == [("", 0), ("1.5", 0), ("a", 0)]
    assert len(result.damage) == 4
    assert "for the sample's id, expected a text or an integer" in said(result)


@pytest.mark.parametrize("layout", ["eval", "json", "compact"])
def test_an_empty_sample_id_is_valid(layout: str, tmp_path: Path) -> None:
    ids = ["", "a"]
    samples = [sample(found, epoch) for epoch in (1, 2) for found in ids]
    head = json.loads(header(ids, total=4))
    head["eval"]["config"]["epochs"] = 2
    reduced = [{"scorer": "s", "samples": [{"sample_id": found, "value": 1} for found in ids]}]
    if layout == "eval":
        names = [f"samples/{found}_epoch_{epoch}.json" for epoch in (1, 2) for found in ids]
        beside = {"header.json": json.dumps(head).encode(), "reductions.json": json.dumps(reduced).encode()}
        data = zipped({**beside, **dict(zip(names, samples, strict=True))})
    else:
        whole = {**head, "samples": [json.loads(found) for found in samples], "reductions": reduced}
        data = json.dumps(whole, indent=2 if layout == "json" else None).encode()
    result = imported(data, tmp_path)
    assert (result.exit_code, said(result)) == (0, "")
    assert sorted(indices(result)) == [("", 0), ("", 1), ("a", 0), ("a", 1)]
    assert result.loss.kept["reduced score"] == 2
    assert not [kind for kind in result.loss.changed if "sample" in kind]


@pytest.mark.parametrize("gone", ["", "a"])
def test_a_lost_sample_is_reported_if_an_id_is_empty(gone: str, tmp_path: Path) -> None:
    summaries = json.dumps([{"id": found, "epoch": 1} for found in ("", "a", "b")]).encode()
    samples = {f"samples/{found}_epoch_1.json": sample(found) for found in ("", "a", "b") if found != gone}
    head = header(None, results={})
    result = imported(zipped({"header.json": head, "summaries.json": summaries, **samples}), tmp_path)
    assert (result.exit_code, len(result.damage)) == (3, 1)
    assert f"sample {gone!r}, epoch 1" in said(result)


@pytest.mark.parametrize("content", [b"{}", b'{"id": "a", "epoch": 1}'])
def test_an_empty_sample_is_damage(content: bytes, tmp_path: Path) -> None:
    parts = {"samples/a_epoch_1.json": content, "samples/b_epoch_1.json": sample("b")}
    result = imported(zipped({"header.json": HEAD, **parts}), tmp_path)
    assert (result.exit_code, indices(result)) == (3, [("b", 0)])
    assert "the sample is empty" in said(result)


def test_malformed_fields_are_kept_and_counted(tmp_path: Path) -> None:
    head = {**json.loads(HEAD), "results": 5}
    odd = sample("a", scores=5, metadata="x", events_data={"messages": 4})
    result = imported(
        zipped({"header.json": json.dumps(head).encode(), "samples/a_epoch_1.json": odd}), tmp_path
    )
    assert sorted(kind for kind in result.loss.changed if "unexpected kind" in kind) == [
        f"{name} of an unexpected kind: kept under 'malformed'"
        for name in ("events_data", "metadata", "results", "scores")
    ]
    text = result.output.read_text() if result.output is not None else ""
    assert '"malformed":{"scores":5,"metadata":"x","events_data":{"messages":4}}' in text


def test_the_fast_parser_gives_samples_the_same_names(logs: dict[str, Path], tmp_path: Path) -> None:
    with open_log(logs["plain"]) as log:
        parts = {name: log.read_raw(name) or b"" for name in log.members()}
    (name,) = [name for name in parts if name.startswith("samples/")]
    moved = {"header.json": HEAD, "samples/zz_epoch_3.json": parts[name]}
    result = imported(zipped(moved), tmp_path)
    assert indices(result) == [("zz", 2)]
    assert {" ".join(kind.split()[:2]) for kind in result.loss.changed} >= {"sample id", "sample epoch"}
