"""Runs on both engines do not use the network. From the first import on, they resolve no names and open no
connections.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest
from tests.conformance.features import features, ready
from tests.support.commands import REPOSITORY
from tests.support.plugins import NOTHING_REGISTERED

pytestmark = pytest.mark.xdist_group("conformance")

WATCH = """
    import ipaddress, sys

    reached = []

    def is_local(address):
        # Anything but an internet address is a file of this machine.
        if not isinstance(address, tuple) or not isinstance(address[0], (str, bytes)):
            return True
        host = address[0].decode() if isinstance(address[0], bytes) else address[0]
        try:
            return host in ("localhost", "") or ipaddress.ip_address(host).is_loopback
        except ValueError:
            return False

    def watch(event, args):
        if event in ("socket.connect", "socket.sendto", "socket.sendmsg"):
            address = args[1]
        elif event in ("socket.getaddrinfo", "socket.gethostbyname", "socket.gethostbyaddr"):
            address = args if args[0] is not None else ("",)
        else:
            return
        if not is_local(address):
            reached.append(f"{event} {address}")
            raise OSError(f"no network here: {event} {address}")

    sys.addaudithook(watch)
"""

RUN = """
    import json
    from pathlib import Path
    import aigo_bridge

    statuses = {}
    for engine in ("inspect", "lighteval"):
        plan = aigo_bridge.plan_task(sys.argv[1])
        out = Path(sys.argv[2]) / engine
        models = json.loads(sys.argv[4])
        statuses[engine] = aigo_bridge.run(plan, sys.argv[3], model_map=models, engine=engine, out=out).status
    print(json.dumps({"reached": reached, "statuses": statuses}))
"""


def watched(program: str, *args: str, folder: Path) -> Any:
    """Run a program in a folder without caches, with its network access recorded. Return its last output line
    as JSON.
    """
    path = os.pathsep.join([str(REPOSITORY), NOTHING_REGISTERED])
    settings = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("HF_", "TRANSFORMERS_")) and "PROXY" not in name.upper()
    }
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(WATCH) + textwrap.dedent(program), *args],
        cwd=folder,
        env={**settings, "HOME": str(folder), "HF_HOME": str(folder / "hf"), "PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=170,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    return json.loads(done.stdout.splitlines()[-1])


def test_a_run_on_both_engines_uses_no_network(tmp_path: Path) -> None:
    """The task has a judge and a snippet, and the home folder has no caches."""
    (feature,) = [
        each for each in features() if each.id == "solvers: multi turn, generate_message by another model"
    ]
    made = ready(feature, tmp_path / "task")
    told = watched(
        RUN,
        str(tmp_path / "task" / "task.yaml"),
        str(tmp_path / "out"),
        made.settings["model"],
        json.dumps(made.settings["model_map"]),
        folder=tmp_path,
    )
    assert told == {"reached": [], "statuses": {"inspect": "success", "lighteval": "success"}}


def test_network_access_is_detected(tmp_path: Path) -> None:
    """The recorder reports names and addresses, but not connections to this machine."""
    program = """
    import json, socket, threading, urllib.request
    for host in ("example.org", "192.0.2.1"):
        try:
            urllib.request.urlopen(f"http://{host}/", timeout=1)
        except OSError:
            pass
    server = socket.create_server(("127.0.0.1", 0))
    socket.create_connection(server.getsockname()).close()
    socket.create_connection(("localhost", server.getsockname()[1])).close()
    print(json.dumps(reached))
    """
    told = watched(program, folder=tmp_path)
    assert len(told) == 2
    assert "example.org" in told[0]
    assert "192.0.2.1" in told[1]
