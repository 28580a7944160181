"""Make the pictures of docs/pictures from shipped examples: `python tools/pictures.py [FOLDER] [STATE…]`.

Each state of the pages has a picture on a desktop screen, and one in dark colours and on a phone.
"""

from __future__ import annotations

import io
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

ROOT = Path(__file__).resolve().parents[1]
TARGET = ROOT / "docs" / "pictures"
STATES_FOLDER = "states"
"""Folder of the pictures in dark colours and on a phone."""
TASKS = "tasks/aigo_tasks"
WIDTH, HEIGHT = 1000, 640
PHONE = 400
COLUMNS = 100
"""Width of a terminal."""
COLORS = 64
"""Number of colours of a picture, so that the file stays small."""


@dataclass(frozen=True)
class Scene:
    """Results and browser for the pictures."""

    folder: Path
    """Folder with the results of all runs."""
    browser: Browser


@dataclass(frozen=True)
class Run:
    """Run of a shipped example."""

    task: str
    arguments: tuple[str, ...] = ()


_CAPITALS, _HP, _CTF = "examples/capitals", f"{TASKS}/hp-trivia", f"{TASKS}/ctf-small"
RUNS = {
    "first": Run(_CAPITALS, ("--model", f"scripted/{_CAPITALS}/answers.jsonl")),
    "second": Run(_CAPITALS, ("--model", "scripted/better.jsonl")),
    "gsm8k-small": Run(f"{TASKS}/gsm8k", ("--model", "scripted/small.jsonl")),
    "gsm8k-large": Run(f"{TASKS}/gsm8k", ("--model", "scripted/large.jsonl")),
    "arc-small": Run(f"{TASKS}/arc", ("--model", "scripted/small.jsonl")),
    "arc-large": Run(f"{TASKS}/arc", ("--model", "scripted/large.jsonl")),
    "failed": Run(f"{TASKS}/gsm8k", ("--model", "scripted/busy.jsonl")),
    "agent": Run(_CTF, ("--model", f"scripted/{_CTF}/answers.jsonl")),
    "judged": Run(
        _HP,
        (
            *("--model", f"scripted/{_HP}/answers.jsonl"),
            *("--model-map", f"openai$gpt-4-1-nano=scripted/{_HP}/judge.jsonl"),
        ),
    ),
}
"""Runs by the folder of their results."""
BETTER = {
    "48 seats": "48 − 12 = 36\n#### 36",
    "A coat": "#### 60",
    "renewable source": "ANSWER: B",
    "lays eggs": "ANSWER: C",
}
"""Answers that the larger model gets right."""
BUSY = ("250 eggs", "cherries", "90 litres")
"""Questions that a busy server does not answer."""


def _bridge() -> str:
    return str(Path(sys.executable).with_name("aigo-bridge"))


def command(*arguments: str, folder: Path) -> str:
    """Return the output of `aigo-bridge` with the colours of a terminal."""
    colours = {"FORCE_COLOR": "1", "COLUMNS": str(COLUMNS)}
    done = subprocess.run(
        [_bridge(), *arguments],
        cwd=folder,
        env={**os.environ, **colours},
        check=False,
        capture_output=True,
        text=True,
    )
    assert done.returncode in (0, 1, 3), done.stderr  # 1 and 3: some samples failed
    return done.stdout


def run_all(folder: Path) -> None:
    """Run all examples in copies, so that no picture contains a path of this machine."""
    for name in ("examples", _HP, _CTF, f"{TASKS}/gsm8k", f"{TASKS}/arc"):
        shutil.copytree(ROOT / name, folder / name)
    answers = (folder / _CAPITALS / "answers.jsonl").read_text("utf-8")
    (folder / "better.jsonl").write_text(answers.replace("Sydney", "Canberra"), "utf-8")
    small = "".join((folder / TASKS / name / "answers.jsonl").read_text("utf-8") for name in ("gsm8k", "arc"))
    large = _rules((text, {"text": answer}) for text, answer in BETTER.items())
    busy = _rules((text, {"error": "quota exceeded", "status": 403}) for text in BUSY)
    slow = _rules([("250 eggs", {"text": "#### 5", "delay": 3600})])
    for name, rules in {"small": "", "large": large, "busy": busy, "slow": slow}.items():
        (folder / f"{name}.jsonl").write_text(rules + small, "utf-8")
    for name, run in RUNS.items():
        command("run", run.task, *run.arguments, "--report", "--out", f"results/{name}", folder=folder)
    matrix = [f"results/{name}" for name in ("gsm8k-small", "gsm8k-large", "arc-small", "arc-large")]
    (folder / "results" / "all").mkdir()
    command("report", *matrix, "--out", "results/all/report.html", folder=folder)


def _rules(replies: Iterator[tuple[str, dict[str, object]]] | Sequence[tuple[str, dict[str, object]]]) -> str:
    return "".join(
        json.dumps({"match": {"contains": text}, "reply": reply}) + "\n" for text, reply in replies
    )


@contextmanager
def tab_of(browser: Browser) -> Iterator[Page]:
    """Open a tab of the size of a picture."""
    context = browser.new_context(viewport={"width": WIDTH, "height": HEIGHT}, color_scheme="light")
    yield context.new_page()
    context.close()


def report(scene: Scene, run: str, place: str = "", ready: str = ".cards") -> bytes:
    """Return a picture of a view of a report."""
    page = scene.folder / "results" / run / "report.html"
    with tab_of(scene.browser) as tab:
        tab.goto(f"{page.as_uri()}#{place}")
        tab.wait_for_selector(ready)
        return tab.screenshot()


@dataclass(frozen=True)
class State:
    """State of the pages that is shown."""

    title: str
    run: str
    """Folder of the report; "" for the pages of `view`."""
    place: str = ""
    """Place behind the `#`."""
    ready: str = ".cards"
    """Selector of an element that must be there."""
    clicks: tuple[str, ...] = ()
    """Elements to click, in order."""
    at: str = ""
    """Element to scroll to; "" for the top."""


STATES = {
    "start": State("Start page of several results", "all", ready=".matrix"),
    "charts": State("Charts of several results", "all", ready=".matrix", at="details.section"),
    "result": State("A result", "judged"),
    "failures": State(
        "Why samples failed", "failed", ready=".alarm", at="table:has-text('Failures by cause')"
    ),
    "samples": State(
        "Samples with a filter", "judged", "samples&where=score%20%3C%200.5", ready=".rows .line"
    ),
    "sample": State("A sample", "gsm8k-small", "sample=6", ready=".chat"),
    "judge": State(
        "Prompt and reply of a judge",
        "judged",
        "sample=3",
        ready=".chat",
        clicks=("details.judge > summary",),
        at="#scores",
    ),
    "agent": State("Transcript of an agent", "agent", "sample=xor", ready=".chat", at="#transcript"),
    "comparison": State("Comparison of two models", "all", "compare=0,1", ready=".pairs-of-samples"),
    "pair": State(
        "A pair of answers",
        "all",
        "compare=0,1",
        ready=".diff",
        clicks=(".pairs-of-samples .link >> nth=0",),
    ),
    "view": State("Folder with a run in progress", "", ready="table.folder"),
    "running": State("A run in progress", "", ready=".running", clicks=("tr:has(.progress) th a",)),
}


def pictures_of(scene: Scene, state: State, address: str = "") -> tuple[bytes, bytes]:
    """Return the picture of a state on a desktop screen, and the one in dark colours and on a phone."""
    page = scene.folder / "results" / state.run / "report.html"
    with tab_of(scene.browser) as tab:
        tab.goto(address or f"{page.as_uri()}#{state.place}")
        if address:
            tab.wait_for_selector("table.folder")
            tab.locator("table.folder").get_by_text("not read").last.wait_for(state="detached")
            tab.locator(".progress[aria-valuenow='2']").first.wait_for()
        for each in state.clicks:
            tab.locator(each).first.click()
        tab.wait_for_selector(state.ready)
        shots = [_shot(tab, state, *look) for look in LOOKS]
    return shots[0], _side_by_side(shots[1:])


LOOKS = ((WIDTH, "light"), (WIDTH, "dark"), (PHONE, "light"), (PHONE, "dark"))


def _shot(tab: Page, state: State, width: int, scheme: str) -> bytes:
    tab.set_viewport_size({"width": width, "height": HEIGHT})
    tab.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
    tab.wait_for_timeout(300)  # the table of samples makes its cards in the next frames
    if state.at:
        tab.locator(state.at).first.evaluate("(element) => element.scrollIntoView()")
    else:
        tab.evaluate("scrollTo(0, 0)")
    tab.wait_for_timeout(200)
    return tab.screenshot()


def _side_by_side(shots: Sequence[bytes]) -> bytes:
    from PIL import Image

    images = [Image.open(io.BytesIO(shot)).convert("RGB") for shot in shots]
    gap = 12
    whole = Image.new("RGB", (sum(image.width + gap for image in images) - gap, HEIGHT), "#808080")
    left = 0
    for image in images:
        whole.paste(image, (left, 0))
        left += image.width + gap
    out = io.BytesIO()
    whole.save(out, "PNG")
    return out.getvalue()


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """Serve a folder with results and a run in progress."""
    (folder / "served").mkdir()
    for name in ("gsm8k-small", "gsm8k-large", "arc-small"):
        shutil.copytree(folder / "results" / name, folder / "served" / name)
    arguments = ("--model", "scripted/slow.jsonl", "--out", "served/gsm8k-slow", "--max-connections", "1")
    with (
        subprocess.Popen(
            [_bridge(), "run", f"{TASKS}/gsm8k", *arguments],
            cwd=folder,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        ) as run,
        subprocess.Popen(
            [_bridge(), "view", "served"], cwd=folder, stdout=subprocess.PIPE, text=True
        ) as process,
    ):
        try:
            assert process.stdout is not None
            yield [process.stdout.readline() for _ in range(2)][1].split()[1]
        finally:
            process.terminate()
            os.killpg(run.pid, signal.SIGKILL)


def terminal(scene: Scene, *arguments: str) -> bytes:
    """Return a picture of the output of a command."""
    from rich.console import Console
    from rich.text import Text

    console = Console(record=True, width=160, file=io.StringIO())
    console.print(Text(f"$ aigo-bridge {' '.join(arguments)}", style="bold"), soft_wrap=True)
    console.print(Text.from_ansi(command(*arguments, folder=scene.folder)), soft_wrap=True)
    lines = console.export_html(inline_styles=True, code_format="<pre>{code}</pre>")
    style = (
        "pre { font: 13px/1.45 'DejaVu Sans Mono', monospace; margin: 0; padding: 14px; width: fit-content }"
    )
    with tab_of(scene.browser) as tab:
        tab.set_content(f"<!doctype html><meta charset=utf-8><style>{style}</style>{lines}")
        return tab.locator("pre").first.screenshot()


def plot(scene: Scene, theme: str) -> bytes:
    """Return a chart."""
    out = scene.folder / "plot.png"
    results = [f"results/{name}" for name in ("gsm8k-small", "gsm8k-large", "arc-small", "arc-large")]
    command("plot", *results, "-o", str(out), "--theme", theme, folder=scene.folder)
    return out.read_bytes()


_FIRST, _SECOND = (f"results/{name}/capitals.tasklog.json" for name in ("first", "second"))
OTHERS: dict[str, Callable[[Scene], bytes]] = {
    "show": lambda scene: terminal(scene, "show", _FIRST, "--worst", "1"),
    "compare": lambda scene: terminal(scene, "compare", _FIRST, _SECOND),
    "plot": lambda scene: plot(scene, "paper"),
    "plot-dark": lambda scene: plot(scene, "dark"),
}
PICTURES = (*STATES, *OTHERS)


def small(data: bytes) -> bytes:
    """Return a picture with few colours, as wide as the pictures of the states."""
    from PIL import Image

    image = Image.open(io.BytesIO(data)).convert("RGB")
    image.thumbnail((2 * WIDTH if image.height == HEIGHT else WIDTH, 4 * HEIGHT))
    out = io.BytesIO()
    image.quantize(COLORS).save(out, "PNG", optimize=True)
    return out.getvalue()


@contextmanager
def browser_of_pages() -> Iterator[Browser]:
    """Start the machine's Chromium."""
    from playwright.sync_api import sync_playwright

    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-gpu"])
        yield browser
        browser.close()


def main(folder: str = str(TARGET), *names: str) -> None:
    """Make these pictures, or all."""
    target = Path(folder)
    (target / STATES_FOLDER).mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as results, browser_of_pages() as browser:
        scene = Scene(Path(results), browser)
        run_all(scene.folder)
        with served(scene.folder) as address:
            for name in names or PICTURES:
                if name in STATES:
                    state = STATES[name]
                    desktop, others = pictures_of(scene, state, "" if state.run else address)
                    (target / f"{name}.png").write_bytes(small(desktop))
                    (target / STATES_FOLDER / f"{name}.png").write_bytes(small(others))
                else:
                    (target / f"{name}.png").write_bytes(small(OTHERS[name](scene)))


if __name__ == "__main__":
    main(*sys.argv[1:])
