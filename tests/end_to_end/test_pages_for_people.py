"""A server answers with an HTML page: the sample error reports it with a hint."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.support.commands import REPOSITORY, Run
from tests.support.endpoint import Endpoint, Raw

PAGE = (
    "<!DOCTYPE html>\n<html><head><title>Sign in &amp; go on</title></head><body><p>Please</p></body></html>"
)


@pytest.mark.parametrize("engine", ["inspect", "lighteval"])
@pytest.mark.parametrize("status", [200, 404])
def test_html_reply_of_a_server_is_reported(
    aigo: Run, endpoint: Endpoint, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, engine: str, status: int
) -> None:
    monkeypatch.setenv("LOCAL_BASE_URL", endpoint.url)
    monkeypatch.setenv("LOCAL_API_KEY", "none")
    endpoint.answer = lambda _: Raw(
        (PAGE.encode(),), status=status, headers={"Content-Type": "text/html; charset=utf-8"}
    )
    task = REPOSITORY / "examples" / "capitals"

    done = aigo("run", task, "-n", 1, "--model", "openai-api/local/m", "--engine", engine, "--json")

    assert done.code == 1
    (error,) = done.json["errors"]
    said = f"{error['message']} {error['hint'] or ''}"
    assert f"answered {status} with a page of HTML, not with JSON: 'Sign in & go on'" in said
    assert "check the address" in said
    assert "attribute" not in said
