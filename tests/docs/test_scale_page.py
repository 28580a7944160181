"""The page "Past one machine": its commands run, its files are there and say what they should."""

from __future__ import annotations

import shlex
import shutil
import subprocess
from pathlib import Path

import yaml
from tests.support.commands import REPOSITORY, Run
from tests.support.pages import page

PAGE = page(REPOSITORY / "docs" / "scale.md")
EXAMPLES = REPOSITORY / "examples" / "scale"


def test_its_commands_run_as_typed(tmp_path: Path, aigo: Run) -> None:
    shutil.copytree(REPOSITORY / "examples", tmp_path / "examples")
    commands = [command for block in PAGE.blocks for command, _ in block.commands]
    assert len(commands) == 3
    for command in commands:
        program, *arguments = shlex.split(command)
        assert program == "aigo-bridge"
        done = aigo(*arguments)
        assert done.code in (0, 1), done.err
    assert "4 samples completed" in done.out


def test_every_example_is_on_the_page() -> None:
    linked = {Path(link).name for link in PAGE.links if "examples/scale" in link}
    assert linked == {path.name for path in EXAMPLES.iterdir()}


def test_examples_that_are_yaml_are_valid() -> None:
    names = ("kubernetes.yaml", "kubernetes-merge.yaml")
    jobs = [yaml.safe_load((EXAMPLES / name).read_text()) for name in names]
    assert [job["metadata"]["name"] for job in jobs] == ["aigo-shards", "aigo-merge"]
    completions = jobs[0]["spec"]["completions"]
    (container,) = jobs[0]["spec"]["template"]["spec"]["containers"]
    assert f"+ 1))/{completions}" in container["args"][0]
    matrix = yaml.safe_load((EXAMPLES / "github-matrix.yml").read_text())
    shards = matrix["jobs"]["shard"]["strategy"]["matrix"]["shard"]
    assert shards == list(range(1, len(shards) + 1))
    assert f"}}}}/{len(shards)} " in matrix["jobs"]["shard"]["steps"][3]["run"]


def test_the_scripts_of_schedulers_are_shell() -> None:
    for name in ("local.sh", "slurm.sbatch"):
        subprocess.run(["bash", "-n", str(EXAMPLES / name)], check=True)
        assert "--resume" in (EXAMPLES / name).read_text()
