"""Goldens ignore only random values, and report every other difference."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import zstandard
from tests.golden.outputs.case import case
from tests.golden.outputs.comparing import difference
from tests.golden.outputs.reading import Outcome, read
from tests.golden.outputs.steady import Steady

RESULT = "out/quiz.tasklog.json"
IDS = ("2fqRXnMAeWfBMqa8NrvATC", "C4WniatS582wg3vabYt2tc")


@pytest.mark.parametrize(
    ("expected", "found", "told"),
    [
        ("=== a.json\n{}\n", "=== a.json\n{ }\n", "=== a.json, line 1, column 2"),
        (
            "$ aigo-bridge list\nexit 0\n--- stderr\nfour of 4\n",
            "$ aigo-bridge list\nexit 0\n--- stderr\n4 of 4\n",
            "--- stderr of '$ aigo-bridge list', line 1",
        ),
        ("=== a\n1\n=== b\n2\n", "=== a\n1\n=== b\n2\n=== c\n", "new: c"),
        ("=== a\n1\n=== b\n2\n", "=== a\n1\n", "missing: b"),
        ("=== a\n0.75\n", "=== a\n0.750\n", "differs: a"),
    ],
)
def test_a_difference_is_reported_with_its_position(expected: str, found: str, told: str) -> None:
    assert difference(expected, expected) == ""
    assert told in difference(expected, found)


@pytest.mark.parametrize(
    "text",
    [
        '{"b":1,"a":2}',
        '{"a": 0.30000000000000004 , "b":1e3}',
        '{"text":"on 2026-11-22T20:17:41Z"}',
        '{"execution":{"started_at":"soon","runtime":null,"model_usage":{"num_samples":3}}}',
        '{"items":[{"id":"","call_id":"call_0"}]}',
        '{"sample_id":"WfqRXnMAeWfBMqa8NrvATC"}',
        "no JSON {",
    ],
)
def test_deterministic_output_stays_unchanged(text: str) -> None:
    assert Steady({}).text(RESULT, text) == text


def test_random_values_are_replaced_and_equal_ids_stay_equal() -> None:
    steady = Steady({"/tmp/x": "<folder>"})
    begin, end = IDS
    events = f'{{"events":[{{"id":"{begin}","span_id":"{end}"}},{{"id":"{end}","timestamp":"2026-11-22T20:17:41.8Z"}}]}}'
    assert steady.text(RESULT, events) == (
        '{"events":[{"id":"<id 1>","span_id":"<id 2>"},{"id":"<id 2>","timestamp":"<time>"}]}'
    )
    assert steady.text(RESULT, '{"execution":{"runtime":1.5,"started_at":1795378779}}') == (
        '{"execution":{"runtime":<seconds>,"started_at":<time>}}'
    )
    assert steady.text("stderr", "error: /tmp/x/task.yaml:3") == "error: <folder>/task.yaml:3"


def test_tracebacks_keep_the_exception_without_frames() -> None:
    traceback = """\
  + Exception Group Traceback (most recent call last):
  |   File "/lib/run.py", line 2977, in attempt
  |     async with create_task_group() as tg:
  | ExceptionGroup: unhandled errors (1 sub-exception)
  +-+---------------- 1 ----------------
    | Traceback (most recent call last):
    |   File "/lib/plan.py", line 1, in solve
    |     raise SampleError("down")
    |           ^^^^^^^^^^^^^^^^^^^
    | aigo_bridge.errors.SampleError: down
    +------------------------------------

During handling of the above exception, another exception occurred:

Traceback (most recent call last):
  File "/lib/run.py", line 2988, in attempt
    raise inner
  [Previous line repeated 2 more times]
aigo_bridge.errors.SampleError: down
"""
    stands = """\
  + Exception Group Traceback (most recent call last):
  | ExceptionGroup: unhandled errors (1 sub-exception)
  +-+---------------- 1 ----------------
    | Traceback (most recent call last):
    | aigo_bridge.errors.SampleError: down
    +------------------------------------

During handling of the above exception, another exception occurred:

Traceback (most recent call last):
aigo_bridge.errors.SampleError: down
"""
    event = {"events": [{"traceback": traceback}], "traceback": traceback}
    found = json.loads(Steady({}).text(RESULT, json.dumps(event)).replace("\n⋯", ""))
    assert found == {"events": [{"traceback": stands}], "traceback": traceback}


def test_log_positions_are_ignored_and_log_text_is_compared() -> None:
    message = '{"message":"down","created":1795382302148.6,"filename":"run.py","module":"run","lineno":2555}'
    assert Steady({}).text(RESULT, f'{{"events":[{{"data":{{"message":{message}}}}}]}}') == (
        '{"events":[{"data":{"message":{"message":"down","created":<time>,"filename":"<source>",'
        '"module":"<source>","lineno":<line>}}}]}'
    )


def test_files_that_differ_by_time_and_id_are_sorted_by_write_order(
    tmp_path: Path,
) -> None:
    second, first = (f"2026-11-23T00-53-09-00-00_quiz_{each}.json" for each in IDS)
    after = {first: b"1\n", "a.json": b"2\n", second: b"3\n"}
    assert read(case("quiz", {}), Outcome(tmp_path, [], {}, after)).split("\n")[:-1] == [
        *("=== <time>_quiz_<id 1>.json", "1", "=== <time>_quiz_<id 2>.json", "3", "=== a.json", "2"),
    ]


def test_the_number_of_compression_frames_is_not_a_difference(tmp_path: Path) -> None:
    pack = zstandard.ZstdCompressor().compress
    packed = ({"a.json.zst": content} for content in (pack(b"{}\n[]\n"), pack(b"{}\n") + pack(b"[]\n")))
    one, two = (read(case("quiz", {}), Outcome(tmp_path, [], {}, after)) for after in packed)
    assert one == two == "=== a.json\n{}\n[]\n"


def test_long_lines_are_broken_where_json_has_commas() -> None:
    text = '{"a":"' + "x, " * 80 + '","b":[1,2]}'
    broken = Steady({}).text(RESULT, text)
    assert broken.count("\n⋯") == 2
    assert broken.replace("\n⋯", "") == text
