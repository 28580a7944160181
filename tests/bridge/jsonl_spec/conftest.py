"""Files of task records."""

from __future__ import annotations

from pathlib import Path

import pytest

from aigo_bridge.jsonl_spec import fixture_file as shipped


@pytest.fixture
def fixture_file() -> Path:
    """Return the file of the ten shipped task records."""
    return shipped()


@pytest.fixture
def bad_file() -> Path:
    """Return the file of shipped records that violate every rule once."""
    return shipped("tasks_bad.jsonl")
