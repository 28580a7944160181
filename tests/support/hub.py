"""Datasets as Inspect finds them without a network: in the caches of the Hub and of `datasets`, which their own code fills.

`python -m tests.support.hub HOME ANSWERS FOLDER…` runs the `eval.yaml` of each folder as `hf/org/<its name>` with Inspect itself, and prints for each
task what was asked, expected and scored. HOME is an empty folder, ANSWERS a JSON object: a text of the last message → the answer.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.support.commands import REPOSITORY

_COMMIT = "a" * 40


def run_by_inspect(home: Path, answers: dict[str, str], *folders: Path) -> dict[str, Any]:
    """Return `samples` (`prompt`, `target`, `scores`) in order and `metrics` by scorer, for each task name."""
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith(("HF_", "INSPECT_"))
    }
    environment |= {
        "HF_HOME": str(home / "hf"),
        "HF_HUB_OFFLINE": "1",
        "XDG_CACHE_HOME": str(home / "cache"),
        "XDG_DATA_HOME": str(home / "data"),
        "INSPECT_LOG_DIR": str(home / "logs"),
        "INSPECT_DISPLAY": "none",
    }
    command = [sys.executable, "-m", "tests.support.hub", str(home), json.dumps(answers), *map(str, folders)]
    ran = subprocess.run(
        command, cwd=REPOSITORY, env=environment, capture_output=True, text=True, timeout=150
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    outcome: dict[str, Any] = json.loads(ran.stdout.splitlines()[-1])
    return outcome


def _put(folder: Path, home: Path) -> str:
    """Fill the caches with a folder and return its name on the Hub."""
    import yaml
    from datasets.load import configure_builder_class, create_builder_configs_from_metadata_configs  # type: ignore[import-untyped]  # has no types
    from datasets.packaged_modules.json.json import Json  # type: ignore[import-untyped]  # has no types
    from datasets.utils.metadata import MetadataConfigs  # type: ignore[import-untyped]  # has no types

    name = folder.name
    stored = home / "hf" / "hub" / f"datasets--org--{name}"
    shutil.copytree(folder, stored / "snapshots" / _COMMIT)
    (stored / "refs").mkdir()
    (stored / "refs" / "main").write_text(_COMMIT)
    card = (folder / "README.md").read_text(encoding="utf-8")
    front = yaml.safe_load(card.split("---")[1])
    metadata = MetadataConfigs({entry.pop("config_name"): entry for entry in front["configs"]})
    configs, default = create_builder_configs_from_metadata_configs(
        "datasets.packaged_modules.json.json",
        metadata,
        base_path=str(folder),
        default_builder_kwargs={"hash": _COMMIT},
    )
    builder_class = configure_builder_class(Json, configs, default, name)
    for config in metadata:
        builder_class(
            config_name=config, hash=_COMMIT, dataset_name=name, base_path=str(folder)
        ).download_and_prepare()
    (home / "hf" / "datasets" / name).rename(
        home / "hf" / "datasets" / f"org___{name}"
    )  # as those of a repository are called
    return f"hf/org/{name}"


def _main(home: Path, answers: dict[str, str], folders: list[Path]) -> None:
    from inspect_ai import eval as run
    from inspect_ai.model import ModelOutput, ModelUsage, get_model

    def answer(messages: list[Any], *_: Any) -> ModelOutput:
        asked = "\n".join(message.text for message in messages)
        reply = next(text for part, text in answers.items() if part in asked)
        output = ModelOutput.from_content("mockllm/model", reply)
        output.usage = ModelUsage(
            input_tokens=1, output_tokens=1, total_tokens=2
        )  # counting them would ask the network
        return output

    outcome = {}
    for name in [_put(folder, home) for folder in folders]:
        for log in run(
            name, model=get_model("mockllm/model", custom_outputs=answer), log_dir=str(home / "logs")
        ):
            assert log.status == "success", log.error and log.error.message
            assert log.samples is not None
            assert log.results is not None
            outcome[log.eval.task.removeprefix("hf/org/")] = {
                "samples": [
                    {
                        "prompt": [(message.role, message.text) for message in sample.messages[:-1]],
                        "target": sample.target,
                        "scores": {key: score.value for key, score in (sample.scores or {}).items()},
                    }
                    for sample in sorted(log.samples, key=lambda sample: (sample.epoch, str(sample.id)))
                ],
                "metrics": {
                    score.name: {metric.name: metric.value for metric in score.metrics.values()}
                    for score in log.results.scores
                },
            }
    print(json.dumps(outcome))


if __name__ == "__main__":
    _main(Path(sys.argv[1]), json.loads(sys.argv[2]), [Path(folder) for folder in sys.argv[3:]])
