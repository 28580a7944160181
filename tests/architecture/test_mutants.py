"""The faults of `make mutants` match the current source, and every package has one."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.architecture.sources import ROOT, SOURCES
from tests.mutants import Fault, faults

FAULTS = faults()
FEWEST = 60


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: f"{fault.file}: {fault.fault}")
def test_a_fault_changes_one_line_and_names_tests(fault: Fault) -> None:
    text = (ROOT / fault.file).read_text("utf-8")
    assert fault.apply_to(text) != text
    assert [test for test in fault.tests if not (ROOT / test.partition("::")[0]).exists()] == []


def test_every_core_package_adapter_and_extra_has_a_fault() -> None:
    names = [source.name.split(".") for source in SOURCES.values()]
    core = {f"aigo_bridge/{name[1]}" for name in names if name[0] == "aigo_bridge" and len(name) > 2}
    others = {name[0] for name in names} - {"aigo_bridge"}
    files = [Path(fault.file).parts for fault in FAULTS]

    assert len({(fault.file, fault.line, fault.fault) for fault in FAULTS}) == len(FAULTS) >= FEWEST
    assert (
        sorted((core | others) - {"/".join(file[1:3]) for file in files} - {file[1] for file in files}) == []
    )


def test_fault_without_exactly_one_matching_line_is_refused() -> None:
    fault = Fault("a.py", "x = 1", "x = 2", ())
    assert fault.apply_to("if y:\n    x = 1\n") == "if y:\n    x = 2\n"
    for text in ("x = 3\n", "x = 1\nx = 1\n"):
        with pytest.raises(ValueError, match="expected once"):
            fault.apply_to(text)
