"""Speed of the core types, as ratios to orjson on the same bytes.

    python benchmarks/core_types.py [--events 10000] [--repeat 5]

Times are the best of several runs, garbage collection included.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import orjson
from ratios import record

from aigo_bridge.dtypes import Trace


def stream(size: int) -> dict[str, Any]:
    """Return a trace of small events of four kinds."""
    events: list[dict[str, Any]] = []
    for index in range(size):
        if index % 4 == 1:
            events.append(
                {
                    "type": "function_call_event",
                    "call_id": f"c{index}",
                    "function": "search",
                    "arguments": '{"a": 1}',
                    "result": "ok",
                    "status": "completed",
                }
            )
        elif index % 4 == 2:
            events.append({"type": "custom", "name": "state", "data": {"step": index}})
        else:
            role = "user" if index % 8 == 0 else "assistant"
            content = [{"type": "text", "text": f"hello world {index}"}]
            item = {
                "type": "message",
                "id": f"m{index}",
                "status": "completed",
                "role": role,
                "content": content,
            }
            events.append({"type": "message_event", "item": item})
    return {"items": [], "events": events}


def best(action: Callable[[], object], repeat: int) -> float:
    """Return the seconds of the fastest run."""
    times = []
    for _ in range(repeat):
        start = time.process_time()
        action()
        times.append(time.process_time() - start)
    return min(times)


def import_time(repeat: int) -> float:
    """Return the seconds that `import aigo_bridge.dtypes` adds to an interpreter with pydantic."""
    code = (
        "import time, pydantic.main; start = time.perf_counter(); import aigo_bridge.dtypes; "
        "print(time.perf_counter() - start)"
    )
    command = [sys.executable, "-c", code]
    return min(float(subprocess.run(command, capture_output=True, check=True).stdout) for _ in range(repeat))


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=10_000)
    parser.add_argument("--repeat", type=int, default=5)
    settings = parser.parse_args()

    data = stream(settings.events)
    text = orjson.dumps(data)
    loads = best(lambda: orjson.loads(text), settings.repeat)
    dumps = best(lambda: orjson.dumps(data), settings.repeat)
    trace = Trace.model_validate(data)
    whole = Trace.from_events(trace.events or [])
    assert json.loads(trace.model_dump_json()) == data

    rows: list[tuple[str, Callable[[], object], float]] = [
        ("validate plain data", lambda: Trace.model_validate(data), loads),
        ("validate JSON text", lambda: Trace.model_validate_json(text), loads),
        ("the same with an unknown field", lambda: Trace.model_validate({**data, "x": 1}), loads),
        ("from_events", lambda: Trace.from_events(trace.events or []), loads),
        ("dump to plain data", trace.model_dump, dumps),
        ("dump to JSON text", trace.model_dump_json, dumps),
        ("turns", lambda: whole.turns, loads),
        ("get_function_call_pairs", whole.get_function_call_pairs, loads),
    ]
    print(f"{settings.events} events, {len(text) / 1e6:.1f} MB")
    print(f"{'orjson.loads':32} {loads * 1e3:9.2f} ms")
    print(f"{'orjson.dumps':32} {dumps * 1e3:9.2f} ms")
    for name, action, floor in rows:
        seconds = best(action, settings.repeat)
        print(f"{name:32} {seconds * 1e3:9.2f} ms {seconds / floor:8.1f} x")
        record(name, seconds / floor)
    print(f"{'import aigo_bridge.dtypes':32} {import_time(settings.repeat) * 1e3:9.2f} ms")


if __name__ == "__main__":
    main()
