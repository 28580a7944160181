"""Settings after the name of a model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from aigo_bridge.codes import Code
from aigo_bridge.errors import SampleError, UsageError
from aigo_lighteval.models.generation import named_model, server_options, with_settings


@pytest.mark.parametrize(
    ("text", "name", "options"),
    [
        ("openai/gpt", "openai/gpt", {}),
        ("openai/gpt,temperature=0", "openai/gpt", {"temperature": 0}),
        ("openai/gpt, temperature = 0.5 ,top_k=3", "openai/gpt", {"temperature": 0.5, "top_k": 3}),
        ("openai/a,b,seed=1", "openai/a,b", {"seed": 1}),
        ("openai/gpt,temperature=none", "openai/gpt", {"temperature": None}),
        ("openai/gpt,max_tokens=5,stop_seqs=END", "openai/gpt", {"max_tokens": 5, "stop": ["END"]}),
        ('openai/gpt,stop_tokens=["a,b","\\n"],seed=1', "openai/gpt", {"stop": ["a,b", "\n"], "seed": 1}),
        (
            'openai/gpt,generation_parameters={temperature:0.7,top_p:0.9,stop_tokens:["x: y"]}',
            "openai/gpt",
            {"temperature": 0.7, "top_p": 0.9, "stop": ["x: y"]},
        ),
        (
            "m/x,frequency_penalty=-1,presence_penalty=-0.5",
            "m/x",
            {"frequency_penalty": -1, "presence_penalty": -0.5},
        ),
        ("m/x,min_p=0.1,repetition_penalty=1.5", "m/x", {"min_p": 0.1, "repetition_penalty": 1.5}),
    ],
)
def test_model_settings_are_parsed(text: str, name: str, options: dict[str, Any]) -> None:
    named = named_model(text)
    assert named.name == name
    assert server_options(named) == options


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ("temprature=0", "unknown setting 'temprature'; expected one of temperature, top_p"),
        ("early_stopping=1", "unknown setting 'early_stopping'"),
        ("temperature=warm", "temperature: found 'warm', expected a number from 0, or none"),
        ("temperature=nan", "temperature: found 'nan'"),
        ("temperature=-1", "expected a number from 0, or none"),
        ("max_tokens=0", "max_new_tokens: found '0', expected a whole number from 1"),
        ("seed=1.5", "seed: found '1.5', expected a whole number from 0"),
        ("stop_tokens=[1]", r"stop_tokens: found '\[1\]', expected a text"),
        ("max_tokens=1,max_new_tokens=2", "'max_new_tokens' is set twice"),
        ("generation_parameters=warm", "generation_parameters: found 'warm', expected e.g."),
    ],
)
def test_invalid_settings_are_reported(settings: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        server_options(named_model(f"openai/gpt,{settings}"))


def test_all_wrong_settings_are_reported_together() -> None:
    with pytest.raises(UsageError, match=r"(?s)unknown setting 'a'.*seed: found 'x'"):
        server_options(named_model("openai/gpt,a=1,seed=x"))


def test_an_existing_file_is_not_a_setting(tmp_path: Path) -> None:
    file = tmp_path / "answers,seed=1"
    file.write_text("")
    assert named_model(f"scripted/{file}").settings == named_model(str(file)).settings == {}
    named = named_model(f"scripted/{file},seed=2")
    assert (named.name, named.settings) == (f"scripted/{file}", {"seed": "2"})


def test_task_requests_and_user_settings_must_not_conflict() -> None:
    settings = {"temperature": 0.5, "max_tokens": 9, "top_p": None}
    assert with_settings({}, settings, "solver") == {"temperature": 0.5, "max_tokens": 9}
    assert with_settings({"max_tokens": 3}, settings, "solver") == {"temperature": 0.5, "max_tokens": 3}
    with pytest.raises(SampleError, match=r"asks for temperature=1, the model string sets 0\.5") as caught:
        with_settings({"temperature": 1}, settings, "solver")
    assert caught.value.code == Code.LOST_OPTION
