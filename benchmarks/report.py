"""Cost of writing a report page, and response time of a browser that opens it.

    python benchmarks/report.py [--megabytes 1024] [--samples 1000] [--rows 20000]

70 MB are 20,000 samples.

The floor of writing is reading the samples as plain data and compressing them. The floor of opening a page is
opening a page with one sample. Without Chromium, only writing is measured.
"""

from __future__ import annotations

import argparse
import base64
import multiprocessing
import shutil
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson
from ratios import record
from result_log_io import FRAME, VARIANTS, measured, repeated, sample

from aigo_bridge.results.reading import read_log
from aigo_bridge.results.writing import write_log
from aigo_report.page import sources_of, write_report

if TYPE_CHECKING:
    from playwright.sync_api import Browser

GOALS = {
    "peak MB": 300.0,
    "page MB": 12.0,
    "write s": 4.0,
    "usable s": 1.5,
    "paint s": 2.0,
    "answer ms": 150.0,
}


def usual(index: int) -> dict[str, Any]:
    """Return a unique sample of about 10 kB."""
    variants = [sample(index * 3 + part) for part in range(3)]
    for other in variants[1:]:
        trace, further = (one["trials"][0]["solver"]["output"]["trace"] for one in (variants[0], other))
        trace["items"] += further["items"]
    return variants[0]


def short(index: int) -> dict[str, Any]:
    """Return a question and its answer."""
    one = sample(index % VARIANTS)
    for member in (one, one["trials"][0]):
        member["sample_id"] = str(index)
    items = one["trials"][0]["solver"]["output"]["trace"]["items"]
    items[:] = items[:2]
    for item in items:
        item["content"][0]["text"] = item["content"][0]["text"][:120]
    return one


def write_plain(path: Path, samples: Iterator[dict[str, Any]]) -> Path:
    """Write a result log."""
    write_log(path, samples, finish=FRAME)
    return path


def floor_of_writing(path: Path, count: int) -> None:
    """Read samples as plain data and compress them as in a page."""
    from zlib_ng import gzip_ng

    data = bytearray()
    for one in read_log(path).raw_samples():
        data += orjson.dumps(one)
        if len(data) > 1 << 18:
            base64.b64encode(gzip_ng.compress(bytes(data), 6))
            data.clear()


def write_page(path: Path, count: int) -> None:
    """Write the report."""
    assert write_report(sources_of([path]), path.with_name("large.html")).samples == count


def memory_of(step: Callable[[Path, int], None], path: Path, count: int) -> float:
    """Return the peak megabytes of a step in its own process, including pages of mapped files."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(_memory_of, (step, path, count))


def _memory_of(step: Callable[[Path, int], None], path: Path, count: int) -> float:
    peak, ended = 0.0, threading.Event()

    def watch() -> None:
        nonlocal peak
        while not ended.wait(0.02):
            lines = Path("/proc/self/status").read_text().splitlines()
            fields = dict(line.split(":", 1) for line in lines)
            peak = max(peak, int(fields["VmRSS"].split()[0]) / 1e3)

    watcher = threading.Thread(target=watch)
    watcher.start()
    step(path, count)
    ended.set()
    watcher.join()
    return peak


def show(name: str, value: float, goal: str) -> None:
    print(f"{name:40} {value:10.2f} {goal.rpartition(' ')[2]:3} (goal {GOALS[goal]:g})")


def measure_writing(folder: Path, megabytes: int) -> None:
    """Measure time and memory of a large result."""
    count = megabytes * 1_000_000 // len(orjson.dumps(sample(0)))
    path = folder / "large.tasklog.json"
    write_log(path, repeated([orjson.dumps(sample(index)) for index in range(VARIANTS)], count), finish=FRAME)
    floor, _ = measured(floor_of_writing, path, count)
    seconds, _ = measured(write_page, path, count)
    size = path.stat().st_size / 1e6
    print(f"{count} samples, {size:.0f} MB: {seconds / floor:.2f} x the floor")
    show("time of the report", seconds, "write s")
    if sys.platform == "linux":
        show("memory of the report", memory_of(write_page, path, count), "peak MB")
    record("write", seconds / floor)
    path.unlink()


@contextmanager
def browser() -> Iterator[Browser]:
    """Start headless Chromium."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        arguments = ["--no-sandbox", "--disable-gpu"]
        started = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=arguments)
        yield started
        started.close()


def seconds_to_open(chromium: Browser, page: Path, times: int = 3) -> float:
    """Return the shortest time until the table of samples is usable."""
    best = float("inf")
    for _ in range(times):
        tab = chromium.new_page()
        start = time.perf_counter()
        tab.goto(f"{page.as_uri()}#samples")
        tab.wait_for_selector(".rows .line")
        best = min(best, time.perf_counter() - start)
        tab.close()
    return best


PAINTED = """() => new Promise(resolve => new PerformanceObserver(list => {
  for (const entry of list.getEntriesByName("first-contentful-paint")) resolve(entry.startTime / 1000);
}).observe({ type: "paint", buffered: true }))"""


def seconds_to_paint(chromium: Browser, page: Path, times: int = 3) -> float:
    """Return the time until the page shows something, at best."""
    best = float("inf")
    for _ in range(times):
        tab = chromium.new_page()
        tab.goto(page.as_uri())
        best = min(best, tab.evaluate(PAINTED))
        tab.close()
    return best


ANSWER = """async (text) => {
  const search = document.querySelector("#search"), frame = () => new Promise(requestAnimationFrame);
  const before = document.querySelector("output").textContent, start = performance.now();
  search.value = text;
  search.dispatchEvent(new InputEvent("input", { bubbles: true }));
  const waits = () => document.querySelector("output").textContent === before;
  while (waits() && performance.now() - start < 10000) await frame();
  return performance.now() - start;
}"""
SCROLL = """async () => {
  const grid = document.querySelector(".grid"), frame = () => new Promise(requestAnimationFrame);
  let blank = 0;
  for (let place = 0; place < 60; place++) {
    grid.scrollTop = place * (grid.scrollHeight / 60);
    await frame(); await frame();
    const box = grid.getBoundingClientRect();
    blank += document.elementFromPoint(box.left + 40, box.top + box.height / 2).closest(".line") === null;
  }
  return blank;
}"""


def measure_pages(folder: Path, samples: int, rows: int) -> None:
    """Measure the response time of a browser."""
    pages: dict[str, Path] = {}
    for name, make, number in (("one", short, 1), ("usual", usual, samples), ("rows", short, rows)):
        log = write_plain(folder / f"{name}.tasklog.json", (make(index) for index in range(number)))
        pages[name] = write_report(sources_of([log]), folder / f"{name}.html").path
    show(f"page of {samples} samples", pages["usual"].stat().st_size / 1e6, "page MB")
    with browser() as chromium:
        floor = seconds_to_open(chromium, pages["one"])
        for name, row, kind in (
            ("usual", "open", f"{samples} samples"),
            ("rows", "open rows", f"{rows} rows"),
        ):
            seconds = seconds_to_open(chromium, pages[name])
            show(f"{kind}, until usable", seconds, "usable s")
            record(row, seconds / floor)
        floor, seconds = (seconds_to_paint(chromium, pages[name]) for name in ("one", "rows"))
        show(f"{rows} rows, first paint", seconds, "paint s")
        record("first paint", seconds / floor)
        tab = chromium.new_page()
        tab.goto(f"{pages['rows'].as_uri()}#samples")
        tab.wait_for_selector(".rows .line")
        answers = [tab.evaluate(ANSWER, text) for text in ("lazy dog", "1999", "")]
        show(f"{rows} rows, search", max(answers), "answer ms")
        print(f"{rows} rows, places without a row while scrolling: {tab.evaluate(SCROLL)}")


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--megabytes", type=int, default=1024)
    parser.add_argument("--samples", type=int, default=1_000)
    parser.add_argument("--rows", type=int, default=20_000)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        measure_writing(Path(folder), options.megabytes)
        if shutil.which("chromium") is None:
            print("no Chromium: pages are not opened", file=sys.stderr)
        else:
            measure_pages(Path(folder), options.samples, options.rows)


if __name__ == "__main__":
    main()
