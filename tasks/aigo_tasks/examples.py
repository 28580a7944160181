"""The rows that Inspect Evals shows before every question by default, for a task's parameter `examples`.

```console
$ python -m aigo_tasks.examples gsm8k > shown.json
$ aigo-bridge run aigo_tasks/gsm8k --full --model … --config examples="$(cat shown.json)"
```

They are others' data and do not come with the task. They are read from the Hugging Face hub at the task's
revision, by the package datasets: its order of shuffled rows decides which ones are shown.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import Any

SEED = 42


def shuffled(number: int) -> Callable[[Any], Any]:
    """The first rows of an order that is random, and everywhere the same."""
    return lambda dataset: dataset.shuffle(seed=SEED).select(range(number))


SHOWN: dict[str, tuple[dict[str, str], Callable[[Any], Any]]] = {
    "drop": (
        {"path": "EleutherAI/drop", "split": "train", "revision": "619386fc7ffe6dace3cc6d3483c69b164ebf6bf3"},
        shuffled(3),
    ),
    "gsm8k": (
        {
            "path": "openai/gsm8k",
            "data_dir": "main",
            "split": "train",
            "revision": "cc7b047b6e5bb11b4f1af84efc572db110a51b3c",
        },
        shuffled(10),
    ),
    "mbpp": (
        {
            "path": "google-research-datasets/mbpp",
            "name": "full",
            "split": "prompt",
            "revision": "4bb6404fdc6cacfda99d4ac4205087b89d32030c",
        },
        lambda dataset: dataset.filter(lambda row: row["task_id"] in (2, 3, 4)),
    ),
}
"""By task: what `load_dataset` is given, and which of its rows are shown."""


def examples(task: str) -> list[dict[str, Any]]:
    """The rows in the order in which they are shown."""
    from datasets import load_dataset

    source, choose = SHOWN[task]
    rows: list[dict[str, Any]] = choose(load_dataset(**source)).to_list()
    return rows


def main(arguments: list[str]) -> int:
    """Print them as JSON; the exit code."""
    if len(arguments) != 1 or arguments[0] not in SHOWN:
        sys.stderr.write(f"expected one of {', '.join(SHOWN)}, found {' '.join(arguments) or 'nothing'}\n")
        return 2
    try:
        rows = examples(arguments[0])
    except ImportError:
        sys.stderr.write("reading from the hub needs the package datasets: pip install 'datasets>=4'\n")
        return 2
    except (OSError, ValueError, RuntimeError) as error:
        sys.stderr.write(f"the rows of {SHOWN[arguments[0]][0]['path']} could not be read: {error}\n")
        return 2
    sys.stdout.write(json.dumps(rows) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
