"""Parquet tables contain the evidence, and duckdb and pyarrow read them."""

from pathlib import Path

import duckdb

from aigo_inspect.importing.api import import_log
from aigo_inspect.importing.importing import ImportOptions, import_file


def test_tables_equal_the_evidence(logs: dict[str, Path], tmp_path: Path) -> None:
    result = import_file(logs["agents"], tmp_path / "agents", ImportOptions(output_format="parquet"))
    assert result.output is not None
    assert sorted(file.name for file in result.output.iterdir()) == [
        *("events.parquet", "messages.parquet", "result.json", "samples.parquet", "scores.parquet")
    ]
    evidence = import_log(logs["agents"]).evidence
    assert evidence is not None
    trials = [trial for sample in evidence.samples or [] for trial in sample.trials]

    def rows(query: str) -> list[tuple[object, ...]]:
        relation = duckdb.sql(query.replace("$", f"{result.output}/"))
        assert relation is not None
        found: list[tuple[object, ...]] = relation.fetchall()
        return found

    assert rows("select sample_id, trial from '$samples.parquet'") == [
        (str(t.sample_id), t.index + 1) for t in trials
    ]
    assert rows("select count(*) from '$events.parquet'") == [
        (sum(len(t.solver.output.trace.events) for t in trials),)  # type: ignore[union-attr, arg-type, misc]
    ]
    assert rows("select count(*) from '$messages.parquet'") == [
        (sum(len(t.solver.output.trace.items) for t in trials),)  # type: ignore[union-attr, misc]
    ]
    scores = rows(
        "select scorer, name, value, text from '$scores.parquet' where sample_id = 'a/b' and trial = 1"
    )
    assert ("includes", "includes", None, "C") in scores
    assert ("lengths", "chars", 1.0, "1") in scores
    assert rows("select distinct role from '$messages.parquet' where type = 'message' order by 1") == [
        *(("assistant",), ("system",), ("user",))
    ]
    again = import_file(logs["agents"], tmp_path / "agents", ImportOptions(output_format="parquet"))
    assert again.exit_code == 0
    assert len(list(tmp_path.iterdir())) == 2
