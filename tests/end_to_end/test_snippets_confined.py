"""Isolation levels of task code: options, messages, permissions and the evidence."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest
from tests.support.commands import Run
from tests.support.containers import CONTAINERS
from tests.support.containers import command as in_container

from aigo_bridge.errors import EvidenceError, UsageError
from aigo_bridge.evaluation.task import plan
from aigo_bridge.execution.permissions import SharedHosts, allow, is_allowed, resolve_permissions
from aigo_bridge.plan.logged_plan import logged_plan
from aigo_bridge.plan.plan import SNIPPET_LEVELS, PlanOrigin
from aigo_bridge.snippets.process import LEVELS

TASK = """\
key: pages
display_name: Pages
description: Its scorer reads a page.
NEEDS
definition:
  dataset: {key: rows}
  solver:
    type: single_turn_solver
    input_builder: {type: chat_completion, input_messages: [{role: user, content: "{{ sample.q }}"}]}
  scorers:
    - type: python
      metrics: [{type: mean, key: length, field: length, name: length}]
      compute_scores_snippet: |
        import urllib.request
        def compute_scores(sample, solver_output):
            if not sample["q"].startswith("http"):
                return {"length": 1.0}
            return {"length": float(len(urllib.request.urlopen(sample["q"], timeout=5).read()))}
"""


@pytest.fixture(autouse=True)
def configuration(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """User configuration that is separate for each test."""
    folder = tmp_path / "configuration"
    monkeypatch.setenv("XDG_CONFIG_HOME", str(folder))
    allow([])
    yield folder
    allow([])


@pytest.fixture
def page() -> Iterator[str]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b"four")

        def log_message(self, *_: object) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()
    server.server_close()


def write(folder: Path, asked: str, needs: str = "") -> None:
    folder.mkdir(exist_ok=True)
    (folder / "task.yaml").write_text(TASK.replace("NEEDS\n", needs))
    (folder / "rows.jsonl").write_text(json.dumps({"q": asked}) + "\n")
    (folder / "model.jsonl").write_text('{"default": true, "reply": "x"}\n')


RUN = ("run", "task.yaml", "--model", "scripted/model.jsonl", "--json")


@pytest.mark.parametrize("engine", ["inspect", "lighteval"])
def test_isolation_level_is_kept_in_the_evidence(aigo: Run, tmp_path: Path, engine: str) -> None:
    write(tmp_path, "x")
    done = aigo(*RUN, "--engine", engine)
    assert (done.code, done.json["snippets"]) == (0, "jailed"), done.err
    assert done.err == ""
    written = Path(done.json["result"])
    assert json.loads(written.read_bytes())["app_version"].endswith(" (snippets jailed)")
    assert aigo("import", done.json["native_log"], "--out", "again").code == 0
    (again,) = (tmp_path / "again").glob("*.tasklog.json")
    assert again.read_bytes() == written.read_bytes()


def test_plans_and_workers_have_the_same_isolation_levels() -> None:
    assert LEVELS == SNIPPET_LEVELS


def test_a_worker_loads_neither_plans_nor_pydantic() -> None:
    """Loading them would dominate the start time of a worker."""
    done = subprocess.run(
        [sys.executable, "-c", "import sys, aigo_bridge.snippets.worker; print(*sys.modules)"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert {"aigo_bridge.plan.plan", "pydantic", "jinja2"} & set(done.stdout.split()) == set()


def test_unknown_isolation_level_in_a_log_is_refused(tmp_path: Path) -> None:
    write(tmp_path, "x")
    header = json.loads(json.dumps(plan(PlanOrigin(str(tmp_path / "task.yaml"))).header()))
    assert "snippets" not in header
    with pytest.raises(EvidenceError, match="its level of snippets is 'perfect'"):
        logged_plan({**header, "snippets": "perfect"})


def test_tasks_without_code_have_no_isolation_level(aigo: Run, tmp_path: Path) -> None:
    write(tmp_path, "x")
    text = (tmp_path / "task.yaml").read_text().split("    - type: python")[0]
    (tmp_path / "task.yaml").write_text(text + "    - {type: string_equals, ground_truth: x}\n")
    done = aigo(*RUN)
    assert done.code == 0, done.err
    assert "snippets" not in done.json
    assert "snippets" not in json.loads(Path(done.json["result"]).read_bytes())["app_version"]


def test_doctor_reports_the_isolation_level(aigo: Run) -> None:
    (check,) = [each for each in aigo("doctor", "--json").json["checks"] if each["subject"] == "snippets"]
    assert check["state"] == "ok"
    assert check["found"].startswith("jailed: no network, no home, no other processes")


def test_the_network_has_to_be_declared(aigo: Run, tmp_path: Path, page: str) -> None:
    write(tmp_path, page)
    done = aigo(*RUN, "--allow", "network")
    assert done.code == 1
    assert "snippets cannot use the network: declare `needs: network`" in done.out


def test_network_permission_is_valid_for_unchanged_code_only(
    aigo: Run, tmp_path: Path, page: str, configuration: Path
) -> None:
    write(tmp_path, page, "needs: network\n")
    # A configuration that comes with the task grants no permission.
    (tmp_path / ".config" / "aigo-bridge").mkdir(parents=True)
    refused = aigo(*RUN)
    assert refused.code == 2
    assert "task 'pages': the code needs the network" in refused.err
    assert "--allow network" in refused.err
    assert not (tmp_path / "out").exists()

    assert (
        "the code of the task needs the network (not allowed yet; run it with --allow network)"
        in aigo("explain", "task.yaml").out
    )

    allowed = aigo(*RUN, "--allow", "network")
    assert (allowed.code, allowed.json["metrics"][0]["value"]) == (0, 4.0), allowed.err
    assert allowed.json["snippets"] == "jailed"
    kept = json.loads((configuration / "aigo-bridge" / "allowed.json").read_text())
    assert list(kept.values()) == [["network"]]

    assert "the code of the task needs the network (allowed)" in aigo("explain", "task.yaml").out
    assert aigo("explain", "task.yaml", "--json").json["needs"] == "network"
    assert aigo(*RUN).code == 0

    (tmp_path / "task.yaml").write_text(
        (tmp_path / "task.yaml").read_text().replace("timeout=5", "timeout=6")
    )
    assert aigo(*RUN).code == 2


def test_all_tasks_that_need_the_network_are_named_before_it_is_allowed(
    aigo: Run, tmp_path: Path, configuration: Path
) -> None:
    write(tmp_path, "x", "needs: network\n")
    for name in ("other", "third"):
        text = (tmp_path / "task.yaml").read_text().replace("key: pages", f"key: {name}")
        (tmp_path / f"{name}.yaml").write_text(text)
    (tmp_path / "run.yaml").write_text(
        "evaluation:\n  key: all\n  display_name: All\n  description: ''\n  task_specifications:\n"
        "    - {task_key: pages, model_key: m}\n    - {task_key: other, model_key: m}\n    - {task_key: third, model_key: m}\n"
        "tasks: [{$ref: task.yaml}, {$ref: other.yaml}, {$ref: third.yaml}]\n"
    )
    assert aigo(*RUN, "--allow", "network").code == 0

    refused = aigo("run", "run.yaml", "--model", "scripted/model.jsonl")

    assert refused.code == 2
    assert "'other' (" in refused.err
    assert "'third' (" in refused.err
    assert "'pages'" not in refused.err
    assert len(json.loads((configuration / "aigo-bridge" / "allowed.json").read_text())) == 1
    assert aigo("run", "run.yaml", "--model", "scripted/model.jsonl", "--allow", "network").code == 0


def test_damaged_configuration_grants_no_permission(tmp_path: Path, configuration: Path) -> None:
    write(tmp_path, "x", "needs: network\n")
    made = plan(PlanOrigin(str(tmp_path / "task.yaml")))
    file = configuration / "aigo-bridge" / "allowed.json"
    file.parent.mkdir(parents=True)
    for kept in ("{", "[]", '{"x": 1}', "[" * 100_000, "\xff"):
        file.write_bytes(kept.encode("latin-1"))
        assert not is_allowed(made)
        with pytest.raises(UsageError):
            resolve_permissions(made)
        allow(["network"])
        resolve_permissions(made)
        allow([])
        assert is_allowed(made)


def test_code_with_network_access_reaches_no_unix_sockets(aigo: Run, tmp_path: Path, page: str) -> None:
    write(tmp_path, page, "needs: network\n")
    text = (tmp_path / "task.yaml").read_text()
    (tmp_path / "task.yaml").write_text(
        text.replace("import urllib.request\n", "import socket, urllib.request\n").replace(
            "if not sample", "socket.socket(socket.AF_UNIX)\n            if not sample"
        )
    )
    done = aigo(*RUN, "--allow", "network")
    assert done.code == 1
    assert "PermissionError" in done.out


def test_unknown_permissions_are_refused(aigo: Run, tmp_path: Path) -> None:
    write(tmp_path, "x")
    level = aigo(*RUN, "--snippets", "chroot")
    assert (level.code, "expected jailed, worker or in-process" in level.err) == (2, True)
    need = aigo(*RUN, "--allow", "everything")
    assert (need.code, "expected network" in need.err) == (2, True)
    write(tmp_path, "x", "needs: telepathy\n")
    assert aigo("validate", "task.yaml").code == 1
    write(tmp_path, "x", "needs: network\n")
    assert aigo("validate", "task.yaml").code == 0
    strict = aigo("validate", "task.yaml", "--dialect", "aigo-3.17")
    assert (strict.code, "'needs' is an aigo-bridge extension" in strict.out) == (1, True)


def ran(name: str, folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    """Start a run like a user in a simulated container, from a shell with a key."""
    write(folder, "x")
    folder.chmod(0o777)
    tool = str(Path(sys.executable).parent / "aigo-bridge")
    shell = ("sh", "-c", '"$@"; exit $?', "sh", tool, *RUN, *options)
    line = in_container(CONTAINERS[name], *shell, alone=True)
    environment = {
        **os.environ,
        "OPENAI_API_KEY": "sk-this-must-not-be-seen",
        "HOME": str(folder),
        "TMPDIR": str(folder),
    }
    return subprocess.run(line, cwd=folder, env=environment, capture_output=True, text=True, timeout=120)


def opened(folder: Path) -> Path:
    for each in (folder, *folder.parents):
        if each != Path("/") and each.stat().st_uid == os.geteuid():
            each.chmod(each.stat().st_mode | 0o055)
    return folder


@pytest.mark.xdist_group("containers")
def test_without_landlock_the_run_reports_the_missing_jail(tmp_path: Path) -> None:
    done = ran("no Landlock", opened(tmp_path))
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["snippets"] == "worker"
    assert "note: snippets run without a jail, in separate processes: Landlock: not offered" in done.stderr


@pytest.mark.xdist_group("containers")
def test_snippets_are_refused_without_isolation(tmp_path: Path) -> None:
    done = ran("a user without namespaces, no Landlock", opened(tmp_path))
    assert done.returncode == 2
    assert "error: snippets cannot be confined on this machine (Landlock: not offered" in done.stderr
    assert "--snippets in-process" in done.stderr
    assert not (tmp_path / "out").exists()


def test_required_permissions_are_reported_before_runs_and_recomputation(
    aigo: Run, tmp_path: Path, page: str, configuration: Path
) -> None:
    write(tmp_path, page, "needs: network\n")
    assert (
        "the code of the task needs the network; run it with --allow network"
        in aigo("validate", "task.yaml").out
    )
    assert aigo("validate", "task.yaml", "--format", "json").json[0]["needs"] == "network"

    log = aigo(*RUN, "--allow", "network").json["native_log"]
    (configuration / "aigo-bridge" / "allowed.json").unlink()
    again = ("import", log, "--out", "again", "--recompute", "task.yaml")
    refused = aigo(*again)
    assert (refused.code, "--allow network" in refused.out) == (3, True)
    assert aigo(*again, "--allow", "network").code == 0


def test_plans_of_equal_code_and_permissions_share_their_workers(tmp_path: Path, configuration: Path) -> None:
    write(tmp_path, "x", "needs: network\n")
    first, second = (plan(PlanOrigin(str(tmp_path / "task.yaml"))) for _ in range(2))
    with contextlib.closing(SharedHosts()) as hosts:
        confined_host = hosts.of_plan(first)
        assert hosts.of_plan(second) is confined_host
        allow(["network"])
        allowed_host = hosts.of_plan(first)
        assert allowed_host is not confined_host
        assert allowed_host.limits.network
        file = tmp_path / "task.yaml"
        file.write_text(file.read_text().replace("import urllib.request", "import math, urllib.request"))
        assert hosts.of_plan(plan(PlanOrigin(str(tmp_path / "task.yaml")))) is not allowed_host
    allow([])
