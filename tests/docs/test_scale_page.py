"""The page "Past one machine": its commands run, its files are there and say what they should."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
from importlib import import_module
from pathlib import Path
from typing import Any

import yaml
from tests.support.commands import REPOSITORY, Run
from tests.support.pages import page
from typer.main import get_command

from aigo_bridge.access.object_addresses import SCHEMES
from aigo_bridge.cli import VERBS
from aigo_bridge.cli.storage.places import OUTPUTS, PLACES

PAGE = page(REPOSITORY / "docs" / "guides" / "run-at-scale.md")
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
    assert "4 samples scored" in done.out


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
    for name in ("local.sh", "slurm.sbatch", "ray-slurm.sbatch"):
        subprocess.run(["bash", "-n", str(EXAMPLES / name)], check=True)
        assert "--resume" in (EXAMPLES / name).read_text()


def test_the_table_of_addresses_is_that_of_the_verbs() -> None:
    """To write it anew: print what is expected."""
    rows = []
    for verb, roles in PLACES.items():
        shown = {
            parameter.name: _shown(parameter)
            for parameter in get_command(import_module(VERBS[verb][0]).app).params
        }
        reads = [shown[name] for name, role in roles.items() if role not in OUTPUTS]
        writes = [shown[name] for name, role in roles.items() if role in OUTPUTS]
        writes += ["beside RESULT"] if "beside" in roles.values() else []
        rows.append(f"| `{verb}` | {', '.join(reads)} | {', '.join(writes)} |")
    text = (REPOSITORY / "docs" / "guides" / "run-at-scale.md").read_text()
    assert "\n".join(["| verb | reads | writes |", "|---|---|---|", *rows, ""]) in text


def _shown(parameter: Any) -> str:
    names = [name for name in parameter.opts if name.startswith("--")]
    return (
        f"`{names[0]}`"
        if names
        else re.sub(r"[\[\]… ].*", "", parameter.metavar.lstrip("[")).replace("|", "\\|")
    )


def test_every_scheme_is_on_the_page() -> None:
    text = (REPOSITORY / "docs" / "guides" / "run-at-scale.md").read_text()
    for scheme in SCHEMES.values():
        (row,) = [line for line in text.splitlines() if line.startswith(f"| `{scheme.name}://")]
        assert f"extra `{scheme.extra}`" in row
        assert row.endswith("| yes |") is scheme.keeps_leases
