"""Write docs/reference/gallery.md and its pictures, one for each shipped task: `make gallery ARGS=gsm8k`."""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

import yaml
from tools.pictures import ROOT, TARGET, Scene, browser_of_pages, command, report, small

TASKS = ROOT / "tasks" / "aigo_tasks"
PAGE = ROOT / "docs" / "reference" / "gallery.md"
PICTURES = TARGET / "gallery"
JUDGE = "openai$gpt-4-1-mini"
"""The key that shipped tasks have for a judge."""

HEAD = """# Gallery

This page shows a result of each task in the [task library](task-library.md): the report of the command above
the picture, with scripted answers and sample rows. Right and wrong answers are mixed on purpose.
`tasks/aigo_tasks/TASK/README.md` explains how a task is scored. `make gallery` writes this page.
"""


@dataclass(frozen=True)
class Exhibit:
    """A shipped task that is shown."""

    name: str
    title: str
    description: str
    arguments: tuple[str, ...]
    """Of `aigo-bridge run`."""


def exhibits() -> list[Exhibit]:
    """All of them, by name."""
    return [_exhibit(folder) for folder in sorted(TASKS.iterdir()) if (folder / "README.md").is_file()]


def _exhibit(folder: Path) -> Exhibit:
    lines = (folder / "task.yaml").read_text("utf-8").splitlines()
    # Values at the top of the file alone: its other parts may include files.
    head = dict(line.split(": ", 1) for line in lines if line.startswith(("display_name: ", "description: ")))
    place = folder.relative_to(ROOT).as_posix()
    arguments = [f"aigo_tasks/{folder.name}"]
    if (folder / "answers.jsonl").is_file():
        arguments += ["--model", f"scripted/{place}/answers.jsonl"]
    if (folder / "judge.jsonl").is_file():
        arguments += ["--model-map", f"{JUDGE}=scripted/{place}/judge.jsonl"]
    texts = {key: str(yaml.safe_load(text)) for key, text in head.items()}
    return Exhibit(folder.name, texts["display_name"], texts.get("description", ""), tuple(arguments))


def section(exhibit: Exhibit) -> str:
    """Return the section of a task."""
    words = " ".join(f"'{each}'" if "$" in each else each for each in exhibit.arguments)
    return f"""
## {exhibit.title}

{exhibit.description}

```console
$ aigo-bridge run {words} --report
```

![{exhibit.title}](../pictures/gallery/{exhibit.name}.png)
"""


def page() -> str:
    """Return the whole page."""
    return HEAD + "".join(section(exhibit) for exhibit in exhibits())


def picture(scene: Scene, exhibit: Exhibit) -> bytes:
    """A sample of its report; of a task without a conversation, the summary."""
    out = scene.folder / "results" / exhibit.name
    command("run", *exhibit.arguments, "--report", "--out", str(out), folder=ROOT)
    if any(word.startswith("scripted/") for word in exhibit.arguments):
        log = json.loads((out / f"{exhibit.name}.tasklog.json").read_bytes())
        sample = log["evidence"]["samples"][0]["sample_id"]
        return report(scene, exhibit.name, place=f"sample={quote(str(sample))}", ready=".chat")
    return report(scene, exhibit.name, ready="table")


def main(names: Sequence[str]) -> None:
    """Make the page, and the pictures of these tasks or of all."""
    PICTURES.mkdir(exist_ok=True)
    chosen = [exhibit for exhibit in exhibits() if not names or exhibit.name in names]
    with tempfile.TemporaryDirectory() as folder, browser_of_pages() as browser:
        scene = Scene(Path(folder), browser)
        for exhibit in chosen:
            (PICTURES / f"{exhibit.name}.png").write_bytes(small(picture(scene, exhibit)))
    PAGE.write_text(page(), "utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
