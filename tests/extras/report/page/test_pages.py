"""The page: nothing in it but its own script applies, and what is committed is what the source builds."""

from __future__ import annotations

import base64
import hashlib
import re
import subprocess
from pathlib import Path

import pytest
from tests.support.frontend import FRONTEND, node

from aigo_report.page.pages import BUNDLE, STYLE, asset, packed, policy


def test_the_policy_names_the_script_and_the_style_by_their_digests() -> None:
    text = policy(b"run()", b"a{}")

    digest = base64.b64encode(hashlib.sha256(b"run()").digest()).decode()
    assert f"script-src 'sha256-{digest}'" in text
    assert "default-src 'none'" in text
    assert "unsafe" not in text
    assert "connect-src" not in text


@pytest.mark.parametrize("name", [BUNDLE, STYLE])
def test_the_bundle_ends_no_element_and_names_no_address(name: str) -> None:
    text = asset(name).decode("ascii")

    assert not re.search(r"</(script|style)|<!--", text, re.IGNORECASE)
    # Namespaces of XML are names: nothing is loaded from them.
    assert {
        address for address in re.findall(r"https?://[\w./]+", text) if "www.w3.org" not in address
    } == set()


def test_equal_data_are_equal_texts() -> None:
    assert packed(b"x" * 1000) == packed(b"x" * 1000)


def test_the_committed_bundle_is_what_the_source_builds(tmp_path: Path) -> None:
    subprocess.run([node(), "build.mjs", str(tmp_path)], cwd=FRONTEND, check=True, capture_output=True)

    for name in (BUNDLE, STYLE):
        assert (tmp_path / name).read_bytes() == asset(name), f"{name}: `make frontend` builds it anew"
