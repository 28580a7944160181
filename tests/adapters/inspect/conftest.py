"""Inspect logs for these tests."""

import asyncio
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def logs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Return one real log for each scenario, by name."""
    from inspect_ai.model import _retry
    from tests.support.inspect_logs import rare as rare_logs
    from tests.support.inspect_logs import scripted as scripted_logs

    folder = tmp_path_factory.mktemp("inspect-logs")
    found: dict[str, Path] = {}
    for name in scripted_logs.TASKS:
        log = scripted_logs.run(name, folder)
        assert log.status == "success", (name, log.error)
        found[name] = Path(log.location)
        if name == "plain":
            found["edited"] = scripted_logs.edited(log, folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("INSPECT_CACHE_DIR", str(folder / "cache"))
        # Inspect waits at least three seconds between attempts.
        patch.setattr(_retry, "_sleep", lambda seconds: asyncio.sleep(0))
        for name in rare_logs.RARE:
            log = rare_logs.run(name, folder)
            assert log.status == "success", (name, log.error)
            found[name] = Path(log.location)
            if name == "cache hits":
                found["scored again"] = rare_logs.scored_again(log, folder)
                found["invalidated"] = rare_logs.invalidated(log, folder)
    found["agents.json"] = Path(scripted_logs.run("agents", folder, log_format="json").location)
    return found
