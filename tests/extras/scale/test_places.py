"""Every path parameter declares how it treats a storage address, or why it rejects one."""

from __future__ import annotations

from importlib import import_module

from typer.main import get_command

from aigo_bridge.cli import VERBS
from aigo_scale.places import PLACES, REFUSED, is_path

NOT_PLACES = {
    ("new", "part"): "a word",
    ("new", "name"): "a name",
    ("run", "model"): "a model, `scripted/FILE` of this machine",
    ("run", "model_map"): "models",
    ("export", "model_key"): "keys of the platform",
    ("export", "task_key"): "keys of the platform",
    ("explain", "model"): "a model",
    ("explain", "model_map"): "models",
    ("generate", "model_map"): "models",
    ("score", "model_map"): "models",
    ("parity", "model_map"): "models",
    ("probe", "model_map"): "models",
    ("power", "rates"): "numbers",
    ("list", "engine"): "a name",
    ("import", "source"): "a name",
}


def test_every_path_parameter_is_in_exactly_one_table() -> None:
    stray, paths = [], set()
    for verb, (module, _) in VERBS.items():
        command = get_command(import_module(module).app)
        for parameter in command.params:
            is_flag = getattr(parameter, "is_flag", False)
            if not is_flag and is_path(parameter):
                paths.add((verb, parameter.name))
                name = parameter.name
                in_tables = (
                    name in PLACES.get(verb, {}),
                    name in REFUSED.get(verb, {}),
                    (verb, name) in NOT_PLACES,
                    name == "allow_file",  # a permission for local files
                )
                if sum(in_tables) != 1:
                    stray.append((verb, name))
    assert stray == []
    listed = {(verb, name) for rows in (PLACES, REFUSED) for verb, names in rows.items() for name in names}
    assert listed - paths == set()
