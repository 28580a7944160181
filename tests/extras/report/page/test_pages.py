"""Page bundle: content security policy, reproducible build and sample filters."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import subprocess
from pathlib import Path

import pytest
from tests.support.commands import REPOSITORY
from tests.support.frontend import FRONTEND, node

from aigo_report.page.pages import BUNDLE, STYLE, asset, packed, policy


def test_content_security_policy_contains_script_and_style_checksums() -> None:
    text = policy(b"run()", b"a{}")

    digest = base64.b64encode(hashlib.sha256(b"run()").digest()).decode()
    assert f"script-src 'sha256-{digest}'" in text
    assert "default-src 'none'" in text
    assert "unsafe" not in text
    assert "connect-src" not in text


@pytest.mark.parametrize("name", [BUNDLE, STYLE])
def test_bundle_contains_no_closing_tags_or_external_addresses(name: str) -> None:
    text = asset(name).decode("ascii")

    assert not re.search(r"</(script|style)|<!--", text, re.IGNORECASE)
    # XML namespaces are names and are not loaded.
    assert {
        address for address in re.findall(r"https?://[\w./]+", text) if "www.w3.org" not in address
    } == set()


def test_packing_equal_data_is_deterministic() -> None:
    assert packed(b"x" * 1000) == packed(b"x" * 1000)


def test_committed_bundle_equals_a_build_of_the_source(tmp_path: Path) -> None:
    subprocess.run([node(), "build.mjs", str(tmp_path)], cwd=FRONTEND, check=True, capture_output=True)

    for name in (BUNDLE, STYLE):
        assert (tmp_path / name).read_bytes() == asset(name), f"{name}: `make frontend` builds it anew"


CASES = REPOSITORY / "tests" / "support" / "filters.json"
SCRIPT = """
import { buildSync } from "esbuild";
import { readFileSync } from "node:fs";
const { outputFiles: [{ text }] } = buildSync({ entryPoints: ["src/filter.ts"], bundle: true, format: "esm", write: false });
const { parseFilter } = await import("data:text/javascript;base64," + Buffer.from(text).toString("base64"));
const { samples, cases, errors } = JSON.parse(readFileSync(process.argv[1], "utf-8"));
const ids = (where) => { const test = parseFilter(where); return samples.filter((sample) => test((name) => sample[name])).map((sample) => sample.id); };
const refused = (where) => { try { ids(where); return false; } catch (error) { return error.message.startsWith("expected") || error.message.startsWith("unexpected"); } };
console.log(JSON.stringify({ found: cases.map(({ where }) => ids(where)), refused: errors.map(refused) }));
"""


def test_page_filters_select_samples_and_report_syntax_errors() -> None:
    cases = json.loads(CASES.read_text("utf-8"))
    done = subprocess.run(
        [node(), "--input-type=module", "-e", SCRIPT, str(CASES)],
        cwd=FRONTEND,
        check=True,
        capture_output=True,
        text=True,
    )
    outcome = json.loads(done.stdout)

    assert dict(zip((case["where"] for case in cases["cases"]), outcome["found"], strict=True)) == {
        case["where"]: case["ids"] for case in cases["cases"]
    }
    assert outcome["refused"] == [True] * len(cases["errors"])
