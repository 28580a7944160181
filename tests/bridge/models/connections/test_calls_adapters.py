"""Adapters written by users: the variables of their templates and the errors of invalid ones."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aigo_bridge.errors import TemplateError
from aigo_bridge.models.connections import CallError, CallInput, ModelInfo
from aigo_bridge.models.connections.calls import TemplateAdapter

INFO = ModelInfo("chat_completion", "m-1")

INPUT = """{
  "model": "{{ model_info.model_key }}", "kind": "{{ model_info.modality }}/{{ model_info.task }}",
  "turns": [
    {% for message in input.messages %}{"who": "{{ message.role }}", "says": {{ message.content | tojson }}}{{ "," if not loop.last }}
    {% endfor %}]
  {% if input.response_format is defined and input.response_format is not none %}
  , "form": {{ input.response_format | tojson }}{% endif %}
  {% for name, value in kwargs.items() %}, "{{ name }}": {{ value | tojson }}{% endfor %}
}"""

OUTPUT = """{% set texts = [] %}
{% for line in body.split('\\n') if line.startswith('data:') and '[DONE]' not in line %}
  {% set piece = line[5:] | fromjson %}
  {% if 'text' in piece %}{% set _ = texts.append(piece.text) %}{% endif %}
{% endfor %}
{% if status_code != 200 %}{"error": "no luck ({{ status_code }})"}{% else %}
{"choices": [{"message": {"role": "assistant", "content": {{ texts | join('') | tojson }}}}]}{% endif %}"""


def adapter(process_input: str = INPUT, process_output: str = OUTPUT) -> TemplateAdapter:
    return TemplateAdapter("mine", process_input, process_output)


def chat(text: str, **more: Any) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": text}], **more}


@given(st.text())
def test_any_text_passes_unchanged_in_both_directions(text: str) -> None:
    body = json.loads(adapter().request(CallInput(chat(text)), INFO))
    assert body["turns"] == [{"who": "user", "says": text}]
    answer = adapter().answer(f"data: {json.dumps({'text': text})}\ndata: [DONE]", 200, INFO)
    assert answer["choices"][0]["message"]["content"] == text


def test_input_template_has_options_response_format_and_model() -> None:
    form = {"type": "json_schema", "json_schema": {"name": "n", "schema": {}, "strict": True}}
    call = CallInput(chat("a", response_format=form), {"temperature": 0, "stop": ["x"]})
    assert json.loads(adapter().request(call, INFO)) == {
        "model": "m-1",
        "kind": "text/chat_completion",
        "turns": [{"who": "user", "says": "a"}],
        "form": form,
        "temperature": 0,
        "stop": ["x"],
    }


def test_missing_response_format_is_omitted_from_the_input() -> None:
    seen = "{{ input | tojson }} {{ input.response_format is none }} {{ input.nothing is defined }}"
    text = adapter(seen).request(CallInput(chat("a")), INFO)
    assert text == '{"messages": [{"content": "a", "role": "user"}]} True False'


def test_missing_model_key_renders_as_empty() -> None:
    assert adapter("[{{ model_info.model_key }}]").request(CallInput({}), ModelInfo("custom", None)) == "[]"


def test_input_template_cannot_change_the_call() -> None:
    given_ = chat("a")
    adapter("{% set _ = input.update({'messages': []}) %}{}").request(CallInput(given_), INFO)
    assert given_ == chat("a")


def test_output_template_can_handle_the_status() -> None:
    assert adapter().answer("oops", 400, INFO) == {"error": "no luck (400)"}


@pytest.mark.parametrize(
    ("output", "message"),
    [
        ("{{ body | fromjson }}", "process_output line 1: "),
        ('{"choices": [1,]}', "returned invalid JSON"),
        ('{"text": {{ body }}}', r"returned invalid JSON: .*near.*text.*not json"),
        ('{"n": NaN}', "NaN is not JSON"),
        ("", "returned invalid JSON"),
        ("{{ body.__class__.__mro__ }}", "unsafe"),
    ],
)
def test_errors_of_an_output_template_are_reported(output: str, message: str) -> None:
    with pytest.raises(CallError, match=message) as caught:
        adapter(process_output=output).answer("not json", 200, INFO)
    assert "'mine'" in str(caught.value)
    assert not caught.value.is_transient


def test_endless_input_template_is_stopped() -> None:
    endless = "{% for a in range(100000) %}{% for b in range(100000) %}{{ b }}{% endfor %}{% endfor %}"
    with pytest.raises(CallError, match="process_input"):
        adapter(endless).request(CallInput({}), INFO)


def test_invalid_jinja_is_reported_when_the_adapter_is_created() -> None:
    with pytest.raises(TemplateError):
        adapter("{% for %}")


def test_adapter_reports_whether_it_takes_options() -> None:
    assert adapter().takes_options
    assert not adapter("{{ input | tojson }}").takes_options


def test_long_stream_stays_within_the_template_budget() -> None:
    chunks = [{"choices": [{"index": 0, "delta": {"content": "word "}}]}] * 30_000
    body = "".join(f"data: {json.dumps(chunk)}\n\n" for chunk in chunks) + "data: [DONE]\n\n"
    output = OUTPUT.replace("'text' in piece", "piece.choices").replace(
        "piece.text", "piece.choices[0].delta.content"
    )
    answer = adapter(process_output=output).answer(body, 200, INFO)
    assert answer["choices"][0]["message"]["content"] == "word " * 30_000
