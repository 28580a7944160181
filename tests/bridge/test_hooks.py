"""Hooks: every row of the table names an object of an extra, and an object of a wrong class is rejected."""

from __future__ import annotations

from importlib import import_module

import pytest

from aigo_bridge import hooks


@pytest.mark.parametrize("name", sorted(hooks.HOOKS))
def test_every_row_names_an_object_of_an_extra(name: str) -> None:
    module, _, attribute = hooks.HOOKS[name].partition(":")
    assert not module.startswith("aigo_bridge")
    value = getattr(import_module(module), attribute)
    assert hooks.load_hook(name, type(value)) is value


def test_object_of_another_class_is_refused() -> None:
    with pytest.raises(
        TypeError, match=r"hook 'report': aigo_report.terminal:REPORT is a RunReport, not str"
    ):
        hooks.load_hook("report", str)
