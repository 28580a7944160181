"""The guide and the reference for log import: their examples run, and their tables match the code."""

import re
import subprocess
import sys
from dataclasses import fields
from pathlib import Path

import pytest
from tests.support.commands import REPOSITORY

import aigo_inspect
from aigo_bridge.access.bounds import DEFAULT_BOUNDS

GUIDE = (REPOSITORY / "docs" / "guides" / "import-logs.md").read_text()
REFERENCE = (REPOSITORY / "docs" / "reference" / "log-import.md").read_text()
EXAMPLES = re.findall(r"^```python\n(.*?)^```$", GUIDE, re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize("example", EXAMPLES)
def test_documented_examples_run(
    logs: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, example: str
) -> None:
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "log.eval").write_bytes(logs["plain"].read_bytes())
    monkeypatch.chdir(tmp_path)
    exec(compile(example, "docs/guides/import-logs.md", "exec"), {})


def test_the_documents_contain_examples() -> None:
    assert len(EXAMPLES) == 3


def test_every_bound_is_documented_with_its_default() -> None:
    rows = dict(re.findall(r"^\| `(\w+)`(?:, `\w+`)? \| ([^|]+) \|", REFERENCE, re.MULTILINE))
    for field in fields(DEFAULT_BOUNDS):
        assert f"`{field.name}`" in REFERENCE, field.name
    for name in ("members", "events", "smallest", "context_messages", "damaged", "seconds"):
        assert float(rows[name].replace(",", "")) == getattr(DEFAULT_BOUNDS, name), name


def test_every_public_name_is_exported_and_documented() -> None:
    for name in aigo_inspect.__all__:
        assert callable(getattr(aigo_inspect, name))
        assert f"`{name}`" in GUIDE, name
        assert name in dir(aigo_inspect)
    with pytest.raises(AttributeError, match="has no attribute 'import_logg'"):
        _ = aigo_inspect.import_logg


def test_importing_the_package_loads_few_modules() -> None:
    code = "import sys, aigo_inspect; print(*(n for n in ('inspect_ai', 'pydantic', 'orjson', 'aigo_bridge') if n in sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""


def test_reading_a_log_does_not_import_inspect() -> None:
    code = "import sys, aigo_inspect; aigo_inspect.import_log, aigo_inspect.import_logs; print('inspect_ai' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
