"""The guide to running at scale and the page of storage addresses: example files are linked and valid, tables match the code."""

from __future__ import annotations

import re
import subprocess
from importlib import import_module
from pathlib import Path
from typing import Any

import yaml
from tests.support.commands import REPOSITORY
from tests.support.pages import page
from typer.main import get_command

from aigo_bridge.access.object_addresses import SCHEMES
from aigo_bridge.cli import VERBS
from aigo_scale.places import OUTPUTS, PLACES

PAGE = page(REPOSITORY / "docs" / "guides" / "run-at-scale.md")
STORAGE = (REPOSITORY / "docs" / "reference" / "storage.md").read_text()
EXAMPLES = REPOSITORY / "examples" / "scale"


def test_every_example_file_is_linked() -> None:
    linked = {Path(link).name for link in PAGE.links if "examples/scale" in link}
    assert linked == {path.name for path in EXAMPLES.iterdir()}


def test_yaml_examples_are_consistent() -> None:
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


def test_scheduler_scripts_are_valid_shell_with_resume() -> None:
    for name in ("local.sh", "slurm.sbatch", "ray-slurm.sbatch"):
        subprocess.run(["bash", "-n", str(EXAMPLES / name)], check=True)
        assert "--resume" in (EXAMPLES / name).read_text()


def test_address_table_matches_the_verbs() -> None:
    rows = []
    for verb, roles in PLACES.items():
        shown = {
            parameter.name: _shown(parameter)
            for parameter in get_command(import_module(VERBS[verb][0]).app).params
        }
        reads = [shown[name] for name, role in roles.items() if role not in OUTPUTS]
        writes = [shown[name] for name, role in roles.items() if role in OUTPUTS]
        writes += ["next to RESULT"] if "beside" in roles.values() else []
        rows.append(f"| `{verb}` | {', '.join(reads)} | {', '.join(writes)} |")
    assert "\n".join(["| verb | reads | writes |", "|---|---|---|", *rows, ""]) in STORAGE


def _shown(parameter: Any) -> str:
    names = [name for name in parameter.opts if name.startswith("--")]
    return (
        f"`{names[0]}`"
        if names
        else re.sub(r"[\[\]… ].*", "", parameter.metavar.lstrip("[")).replace("|", "\\|")
    )


def test_every_scheme_is_in_the_storage_table() -> None:
    for scheme in SCHEMES.values():
        (row,) = [line for line in STORAGE.splitlines() if line.startswith(f"| `{scheme.name}://")]
        assert f"extra `{scheme.extra}`" in row
        assert row.endswith("| yes |") is scheme.keeps_leases
