"""Make the pictures of docs/pictures anew, from shipped examples: `python tools/pictures.py [FOLDER]`."""

from __future__ import annotations

import io
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

ROOT = Path(__file__).resolve().parents[1]
TARGET = ROOT / "docs" / "pictures"
TASKS = "tasks/aigo_tasks"
WIDTH, HEIGHT = 1000, 640
COLUMNS = 100
"""Of a terminal."""
COLORS = 64
"""Of a picture: a page has few, and the file stays small."""


@dataclass(frozen=True)
class Scene:
    """What a picture is taken of."""

    folder: Path
    """With the results of all runs."""
    browser: Browser


@dataclass(frozen=True)
class Run:
    """A run of a shipped example."""

    task: str
    arguments: tuple[str, ...] = ()


_CAPITALS, _HP = "examples/capitals", f"{TASKS}/hp-trivia"
RUNS = {
    "evaluation": Run(f"{_CAPITALS}/run.yaml"),
    "first": Run(_CAPITALS, ("--model", f"scripted/{_CAPITALS}/answers.jsonl")),
    "second": Run(_CAPITALS, ("--model", "scripted/better.jsonl")),
    "judged": Run(
        _HP,
        (
            *("--model", f"scripted/{_HP}/answers.jsonl"),
            *("--model-map", f"openai$gpt-4-1-nano=scripted/{_HP}/judge.jsonl"),
        ),
    ),
}
"""Folder of the results → how they come about."""


def command(*arguments: str, folder: Path) -> str:
    """What `aigo-bridge` prints, with the colours of a terminal."""
    line = [str(Path(sys.executable).with_name("aigo-bridge")), *arguments]
    colours = {"FORCE_COLOR": "1", "COLUMNS": str(COLUMNS)}
    done = subprocess.run(
        line, cwd=folder, env={**os.environ, **colours}, check=True, capture_output=True, text=True
    )
    return done.stdout


def run_all(folder: Path) -> None:
    """The results that pictures are of, in copies of the examples: no picture has a path of this machine."""
    for name in ("examples", _HP):
        shutil.copytree(ROOT / name, folder / name)
    answers = (folder / _CAPITALS / "answers.jsonl").read_text("utf-8")
    (folder / "better.jsonl").write_text(answers.replace("Sydney", "Canberra"), "utf-8")
    for name, run in RUNS.items():
        command("run", run.task, *run.arguments, "--report", "--out", f"results/{name}", folder=folder)


@contextmanager
def tab_of(browser: Browser, scheme: str) -> Iterator[Page]:
    """A tab of the size of a picture."""
    context = browser.new_context(
        viewport={"width": WIDTH, "height": HEIGHT}, color_scheme="dark" if scheme == "dark" else "light"
    )
    yield context.new_page()
    context.close()


def report(scene: Scene, run: str, place: str = "", ready: str = ".bars", scheme: str = "light") -> bytes:
    """A view of the report of a run: the place behind the `#`, and what has to be there."""
    page = scene.folder / "results" / run / "report.html"
    with tab_of(scene.browser, scheme) as tab:
        tab.goto(f"{page.as_uri()}#{place}")
        tab.wait_for_selector(ready)
        return tab.screenshot()


def view(scene: Scene) -> bytes:
    """The folder of all runs, as it is served."""
    line = [str(Path(sys.executable).with_name("aigo-bridge")), "view", "results"]
    with (
        subprocess.Popen(line, cwd=scene.folder, stdout=subprocess.PIPE, text=True) as process,
        tab_of(scene.browser, "light") as tab,
    ):
        try:
            assert process.stdout is not None
            address = [process.stdout.readline() for _ in range(2)][1].split()[1]
            tab.goto(address)
            tab.wait_for_selector("table.folder")
            tab.locator(".folder").get_by_text("not read").last.wait_for(state="detached")
            return tab.screenshot()
        finally:
            process.terminate()


def terminal(scene: Scene, *arguments: str) -> bytes:
    """What a command prints."""
    from rich.console import Console
    from rich.text import Text

    console = Console(record=True, width=160, file=io.StringIO())
    console.print(Text(f"$ aigo-bridge {' '.join(arguments)}", style="bold"), soft_wrap=True)
    console.print(Text.from_ansi(command(*arguments, folder=scene.folder)), soft_wrap=True)
    lines = console.export_html(inline_styles=True, code_format="<pre>{code}</pre>")
    style = (
        "pre { font: 13px/1.45 'DejaVu Sans Mono', monospace; margin: 0; padding: 14px; width: fit-content }"
    )
    with tab_of(scene.browser, "light") as tab:
        tab.set_content(f"<!doctype html><meta charset=utf-8><style>{style}</style>{lines}")
        return tab.locator("pre").first.screenshot()


def plot(scene: Scene) -> bytes:
    """A chart."""
    out = scene.folder / "plot.png"
    command("plot", "results/first", "results/second", "-o", str(out), folder=scene.folder)
    return out.read_bytes()


_FIRST, _SECOND = (f"results/{name}/capitals.tasklog.json" for name in ("first", "second"))
PICTURES: dict[str, Callable[[Scene], bytes]] = {
    "report-summary": partial(report, run="evaluation"),
    "report-samples": partial(report, run="judged", place="samples", ready=".rows .line", scheme="dark"),
    "report-sample": partial(report, run="evaluation", place="sample=2", ready=".chat"),
    "view": view,
    "show": lambda scene: terminal(scene, "show", _FIRST, "--worst", "1"),
    "compare": lambda scene: terminal(scene, "compare", _FIRST, _SECOND),
    "plot": plot,
}


def small(data: bytes) -> bytes:
    """A picture with few colours."""
    from PIL import Image

    out = io.BytesIO()
    Image.open(io.BytesIO(data)).convert("RGB").quantize(COLORS).save(out, "PNG", optimize=True)
    return out.getvalue()


@contextmanager
def browser_of_pages() -> Iterator[Browser]:
    """The machine's Chromium."""
    from playwright.sync_api import sync_playwright

    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-gpu"])
        yield browser
        browser.close()


def main(target: Path = TARGET) -> None:
    """Make them all."""
    with tempfile.TemporaryDirectory() as folder, browser_of_pages() as browser:
        run_all(Path(folder))
        scene = Scene(Path(folder), browser)
        for name, picture in PICTURES.items():
            (target / f"{name}.png").write_bytes(small(picture(scene)))


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
