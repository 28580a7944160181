"""`{{ sample.x }}`: rendering, evaluating, errors."""

from __future__ import annotations

import contextlib
import json
import pickle
import threading
from dataclasses import dataclass
from enum import Enum
from types import MappingProxyType
from typing import Any

import jinja2
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from aigo_bridge.errors import TemplateError
from aigo_bridge.templates import CompiledAdapter, SampleTemplate, as_list, text_of

SAMPLE: dict[str, Any] = {
    "question": "Capital of France?",
    "choices": ["Paris", "Rome"],
    "answer_idx": 0,
    "Col With Spaces": "spaced",
    "items": ["a", "b"],
    "meta": {"lang": "fr", "keys": 2},
    "nothing": None,
}


def render(source: str, **variables: Any) -> str:
    return SampleTemplate(source).render(**(variables or {"sample": SAMPLE}))


def evaluate(source: str, **variables: Any) -> Any:
    return SampleTemplate(source).evaluate(**(variables or {"sample": SAMPLE}))


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("{{ sample.question }}", "Capital of France?"),
        ('{{ sample["Col With Spaces"] }}', "spaced"),
        ("{{ sample.question if sample.answer_idx else sample.choices[0] }}", "Paris"),
        ("{{ '\\n---\\n'.join(sample.choices) }}", "Paris\n---\nRome"),
        ('{% set L = "ABC" -%}{{ L[sample.answer_idx] }}', "A"),
        (
            "{% for c in sample.choices %}{{ 'AB'[loop.index0] }}. {{ c }}\n{% endfor %}",
            "A. Paris\nB. Rome\n",
        ),
        ("{{ sample.choices | tojson }}", '["Paris", "Rome"]'),
        ("{{ sample.question | upper }}", "CAPITAL OF FRANCE?"),
        ("{{ sample.choices | map('lower') | join('|') }}", "paris|rome"),
        ("{% macro f(x) %}<{{ x }}>{% endmacro %}{{ f(1) }}{{ f('b') }}", "<1><b>"),
        ("{% for c in sample.choices %}{% if loop.last %}{% break %}{% endif %}{{ c }}{% endfor %}", "Paris"),
        (
            "{% set ns = namespace(n=0) %}{% for i in range(4) %}{% set ns.n = ns.n + i %}{% endfor %}{{ ns.n }}",
            "6",
        ),
        ("{{ sample.nothing }}", "None"),
        ("one newline goes\n", "one newline goes"),
        ("two stay\n\n", "two stay\n"),
        ("{{ 'a{}b{x}'.format(1, x=2) }}", "a1b2"),
        ("{{ '%s of %d' | format('a', 3) }}", "a of 3"),
        ("{{ 7 % 4 }} {{ 2 ** 3 }} {{ 'a' * 3 }} {{ [1] + [2] }}", "3 8 aaa [1, 2]"),
        ("{{ ('x', 1) ~ 'y' }}", "('x', 1)y"),
        ("{{ sample.choices | sort | reverse | list }}", "['Rome', 'Paris']"),
        ("{{ [1, 2] | sum }} {{ [{'a': 1}, {'a': 2}] | sum(attribute='a') }}", "3 3"),
        ("{% filter upper %}a{{ 'b' }}{% endfilter %}", "AB"),
        ("{% macro f() %}<{{ caller(1) }}>{% endmacro %}{% call(x) f() %}{{ x }}{% endcall %}", "<1>"),
    ],
)
def test_template_is_rendered(source: str, expected: str) -> None:
    assert render(source) == expected


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("{{ sample.items }}", ["a", "b"]),
        ("{{ sample.meta.keys }}", 2),
        ("{{ sample.meta.items() | list }}", [("lang", "fr"), ("keys", 2)]),
        ("{{ sample.get('nope', 'd') }}", "d"),
        ("{{ 'question' in sample }}", True),
    ],
)
def test_columns_override_methods_of_the_same_name(source: str, expected: Any) -> None:
    assert evaluate(source) == expected


def test_read_only_sample_works_like_a_dict() -> None:
    frozen = MappingProxyType({"items": 1, "x": 2})
    assert render("{{ sample.items }}{{ sample['x'] }}{{ sample.get('x') }}", sample=frozen) == "122"
    assert render("{{ sample | tojson }}", sample=frozen) == '{"items": 1, "x": 2}'
    with pytest.raises(TemplateError, match=r"`sample\.y` is undefined; known: items, x"):
        render("{{ sample.y }}", sample=frozen)


def test_subscript_never_returns_a_method() -> None:
    with pytest.raises(TemplateError, match=r"`sample\.values` is undefined"):
        render("{{ sample['values'] }}")


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("{{ sample.choices }}", ["Paris", "Rome"]),
        ("  {{ sample.answer_idx }}\n", 0),
        ("{{ sample.answer_idx == 0 }}", True),
        ("{{ sample.nothing }}", None),
        ("{{ '1e5' }}", "1e5"),
        ("{{ sample.choices | map('upper') }}", ["PARIS", "ROME"]),
        ("{{ range(3) }}", [0, 1, 2]),
        ("{{ 1 }}{{ 2 }}", "12"),
        ("x {{ 1 }}", "x 1"),
        ("plain", "plain"),
        ("{% if true %}{{ 1 }}{% endif %}", "1"),
    ],
)
def test_evaluate_returns_the_value_of_a_single_expression(source: str, expected: Any) -> None:
    assert evaluate(source) == expected


def test_escaped_text_is_a_plain_string() -> None:
    assert type(evaluate("{{ '<' | escape }}")) is str
    assert evaluate("{{ '<' | escape }}") + "<" == "&lt;<"


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (["A"], ["A"]),
        (("A", 1), ["A", 1]),
        ('["A", "B"]', ["A", "B"]),
        ("['A', \"it's\"]", ["A", "it's"]),
        (" ['A'] \n", ["A"]),
        ("[]", []),
    ],
)
def test_as_list_accepts_lists_and_their_text(value: Any, expected: list[Any]) -> None:
    assert as_list(value) == expected


@pytest.mark.parametrize(
    "value", ["A, B", "", '{"a": 1}', "3", 3, None, {"a": 1}, "[" * 5000, "__import__('os')"]
)
def test_as_list_rejects_other_values(value: Any) -> None:
    with pytest.raises(TemplateError, match="expected a list"):
        as_list(value)


def test_unknown_column_is_reported_with_line_and_suggestion() -> None:
    with pytest.raises(TemplateError) as raised:
        render("first\n{{ sample.qestion }}")
    (issue,) = raised.value.issues
    assert issue.message.startswith("`sample.qestion` is undefined; known: question, choices")
    assert issue.hint == "did you mean `sample.question`?"
    assert issue.line == 2
    assert issue.source_line == "{{ sample.qestion }}"


def test_unknown_variable_is_reported_with_known_names() -> None:
    with pytest.raises(TemplateError, match=r"`smple` is undefined; known: sample .*did you mean `sample`"):
        render("{{ smple.question }}")


@pytest.mark.parametrize(
    "source",
    [
        "{{ sample.x.y.z }}",
        "{% for a in sample.x %}{% endfor %}",
        "{% if sample.x %}{% endif %}",
        "{{ sample.x == 1 }}",
        "{{ sample.x + 1 }}",
        "{{ sample.x | upper }}",
        "{{ sample.x | tojson }}",
        "{{ sample.x | length }}",
        "{{ sample.x() }}",
        "{{ [sample.x] | join }}",
        "{{ sample.x in [1] }}",
        "{{ 'a' ~ sample.x }}",
        "{{ missing_variable }}",
        "{{ [sample.x] }}",
        "{{ sample.choices | map(attribute='x') | list }}",
        "{{ [{'a': sample.x}] | string }}",
    ],
)
def test_any_use_of_a_missing_name_is_an_error(source: str) -> None:
    with pytest.raises(TemplateError, match="is undefined"):
        render(source)
    with pytest.raises(TemplateError, match="is undefined"):
        evaluate(source)


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("{{ sample.x is defined }}", "False"),
        ("{{ sample.x.y is defined }}", "False"),
        ("{{ sample.x | default('d') }}", "d"),
        ("{{ sample.x.y | default('d') }}", "d"),
        ("{{ sample['x']['y'] | d('e') }}", "e"),
        ("{{ nope.x is undefined }}", "True"),
        ("{{ sample.question is defined }}", "True"),
    ],
)
def test_a_template_can_check_whether_a_name_exists(source: str, expected: str) -> None:
    assert SampleTemplate(source).render(sample=SAMPLE) == expected
    assert CompiledAdapter(source).render(sample=SAMPLE) == expected


def test_adapters_render_missing_names_as_empty() -> None:
    template = CompiledAdapter("a{{ sample.x }}{{ sample.x.y.z }}b{{ nope }}")
    assert template.render(sample=SAMPLE) == "ab"


@pytest.mark.parametrize(
    ("source", "line", "column", "words"),
    [
        ("{{ a b }}", 1, 1, "expected token"),
        ("ok {{ sample.a }}\nthen {{ sample. }}", 2, 6, "expected name or number"),
        ("{% if x %}", 1, 1, "unexpected end of template"),
        ("{% endfor %}", 1, 1, "unknown tag 'endfor'"),
        ("a\n\n{{ x | nofilter }}", 3, 1, "no filter named 'nofilter'"),
        ("{{ x is notest }}", 1, 1, "no test named 'notest'"),
        ("text {{ 'open }}", 1, 6, "unexpected char"),
        ("{% include 'x' %}", 1, 1, "is not available"),
        ("{% block b %}{% endblock %}", 1, 1, "is not available"),
        ("{# never closed", 1, 1, "comment"),
        ("{% for loop in [1] %}{% endfor %}", 1, 1, "loop"),
    ],
)
def test_syntax_error_has_line_and_column(source: str, line: int, column: int, words: str) -> None:
    with pytest.raises(TemplateError) as raised:
        SampleTemplate(source)
    (issue,) = raised.value.issues
    assert words in issue.message.lower()
    assert (issue.line, issue.column) == (line, column)


@pytest.mark.parametrize(
    "source", ["{{ 1 / 0 }}", "{{ [1][5] + 1 }}", "{{ 'x' | int + 'a' }}", "{{ '{' | fromjson }}"]
)
def test_a_failing_expression_is_a_template_error_with_its_line(source: str) -> None:
    with pytest.raises(TemplateError) as raised:
        render("\n\n" + source)
    assert raised.value.issues[0].line == 3


def test_ai_go_filters_work() -> None:
    assert render("{{ '[1, 2]' | fromjson }}") == "[1, 2]"
    assert render("{{ '{\"a\": 1}' | fromjson | tojson }}") == '{"a": 1}'
    assert render("{{ 'say \"é\"\\n' | json_escape }}") == r"say \"\u00e9\"\n"
    assert render("{{ {'a': {'b': 1}, 'c': 1} | merge({'a': {'d': 2}, 'c': 3}) | tojson }}") == (
        '{"a": {"b": 1, "d": 2}, "c": 3}'
    )
    assert render("{{ 'a1B2' | regex_replace('[a-z][0-9]', '#', ignorecase=true, count=1) }}") == "#B2"
    assert render("{{ 'x\\ny' | regex_replace('^', '> ', multiline=true) }}") == "> x\n> y"
    assert render("{{ [1, 2] | zip(['a', 'b', 'c']) | list }}") == "[(1, 'a'), (2, 'b')]"
    with pytest.raises(TemplateError, match="needs two maps"):
        render("{{ [1] | merge({}) }}")
    with pytest.raises(TemplateError, match="not a regular expression"):
        render("{{ 'a' | regex_replace('(', '') }}")


def test_tojson_sorts_keys_escapes_and_keeps_nan() -> None:
    value = {"b": "é<&>'", "a": float("nan")}
    assert render("{{ v | tojson }}", v=value) == '{"a": NaN, "b": "\\u00e9\\u003c\\u0026\\u003e\\u0027"}'
    assert render("{{ v | to_json }}", v=value) == render("{{ v | tojson }}", v=value)
    assert render("{{ [1] | tojson(indent=2) }}") == "[\n  1\n]"
    # Not Markup: adding text to it must not escape the text.
    assert render("{{ ([1] | tojson) + '<' }}") == "[1]<"
    with pytest.raises(TemplateError, match="cannot be written as JSON"):
        render("{{ v | tojson }}", v={1, 2})


class Part(BaseModel):
    text: str
    kind: str = "text"

    @staticmethod
    def __template_text__(value: object) -> str | None:
        if isinstance(value, list):
            return "\n".join(part.text for part in value)
        return value.text if isinstance(value, Part) else None


class Role(str, Enum):  # noqa: UP042  # a StrEnum prints its value anyway
    user = "user"


def test_text_enum_renders_its_value() -> None:
    assert (
        render("{{ r }} {{ r ~ '!' }} {{ r | upper }} {{ [r] | join }}", r=Role.user)
        == "user user! USER user"
    )
    assert render("{{ r == 'user' }} {{ r | tojson }}", r=Role.user) == 'True "user"'


class Plain(BaseModel):
    number: int = 1
    parts: list[Part] = []


def test_object_renders_its_own_text_everywhere() -> None:
    part = Part(text="hello")
    assert render("{{ p }}", p=part) == "hello"
    assert render("{{ p ~ '!' }}", p=part) == "hello!"
    assert render("{{ p | upper }}", p=part) == "HELLO"
    assert render("{{ [p, p] | join('-') }}", p=part) == "hello-hello"
    assert render("{{ '{}'.format(p) }}", p=part) == "hello"
    assert render("{{ x.parts }}", x=Plain(parts=[part, Part(text="you")])) == "hello\nyou"
    assert text_of([part]) == "hello"
    assert text_of([]) == "[]"


def test_object_fields_are_read_with_dots_brackets_and_tojson() -> None:
    plain = Plain(number=3, parts=[Part(text="a")])
    assert render("{{ x.number }}{{ x['number'] }}{{ x.parts[0].text }}", x=plain) == "33a"
    assert json.loads(render("{{ x | tojson }}", x=plain)) == {"number": 3, "parts": [{"text": "a"}]}
    assert render("{{ x.model_dump_json() }}", x=Plain()) == '{"number":1,"parts":[]}'
    with pytest.raises(TemplateError, match=r"`x\.number2` is undefined; known: number, parts"):
        render("{{ x.number2 }}", x=plain)


@pytest.mark.parametrize(
    "source",
    ["{% do sample.choices.append(1) %}", "{{ sample.update(a=1) }}", "{{ sample.meta.pop('lang') }}"],
)
def test_samples_cannot_be_changed(source: str) -> None:
    before = json.dumps(SAMPLE)
    with pytest.raises(TemplateError, match="unsafe"):
        render(source)
    assert json.dumps(SAMPLE) == before


def test_equal_templates_share_compilation_and_can_be_pickled() -> None:
    one, two = SampleTemplate("{{ sample.a }}!"), SampleTemplate("{{ sample.a }}!")
    assert one == two
    assert hash(one) == hash(two)
    assert one._compiled is two._compiled
    assert one != SampleTemplate("{{ sample.a }}?")
    assert pickle.loads(pickle.dumps(one)).render(sample={"a": 1}) == "1!"


def test_variables_can_have_any_name() -> None:
    assert (
        SampleTemplate("{{ self_ }}{{ variables }}{{ environment }}{{ context }}").render(
            self_=1, variables=2, environment=3, context=4
        )
        == "1234"
    )


def test_template_can_be_rendered_by_several_threads() -> None:
    template = SampleTemplate("{% for i in range(50) %}{{ sample.n }},{% endfor %}")
    wrong: list[str] = []

    def work(number: int) -> None:
        for _ in range(20):
            text = template.render(sample={"n": number})
            if text != f"{number}," * 50:
                wrong.append(text)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


_VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.text()
    | st.sampled_from(["{{ 7*7 }}", "{% raw %}", "}}", "{#"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)


@given(_VALUES)
def test_dataset_values_are_never_rendered_as_templates(value: Any) -> None:
    text = SampleTemplate("<{{ sample.x }}>{% if sample.x == sample.x %}={% endif %}").render(
        sample={"x": value}
    )
    assert text == f"<{value}>="


@given(_VALUES)
def test_tojson_and_fromjson_are_inverse_operations(value: Any) -> None:
    text = SampleTemplate("{{ sample.x | tojson }}").render(sample={"x": value})
    assert json.loads(text) == value
    assert SampleTemplate("{{ sample.x | tojson | fromjson }}").evaluate(sample={"x": value}) == value


@given(st.text(alphabet=st.characters(blacklist_characters="{}#%\r")))
def test_text_without_braces_renders_as_in_jinja(text: str) -> None:
    assert SampleTemplate(text).render() == jinja2.Template(text).render()


@dataclass
class _Row:
    name: str


def test_adapters_can_build_lists_and_change_only_copies() -> None:
    body = {"choices": [{"text": "a"}]}
    template = CompiledAdapter(
        "{% set out = [] %}{% for c in body.choices %}{% set _ = out.append(c.text) %}{% endfor %}"
        "{% do body.update({'x': out}) %}{{ body | tojson }}{{ missing.too }}"
    )
    assert template.render(body=body) == '{"choices": [{"text": "a"}], "x": ["a"]}'
    assert body == {"choices": [{"text": "a"}]}
    assert CompiledAdapter("{{ row.name }}").render(row=_Row("n")) == "n"


_CODE = """
{{ }} {% %} {# #} {{- -}} if else elif endif for in endfor set macro endmacro call endcall filter endfilter with endwith do raw
endraw break continue sample . x [ ] ( ) | upper join tojson list map default is defined + - * / // % ** ~ == < > and or not
none true 1 2.5 'a' "b" , : = loop index items namespace range dict recursive caller \n . .format .split() .append [0] [1:] 99999
"""
_FRAGMENTS = _CODE.split(" ")


@given(st.lists(st.sampled_from(_FRAGMENTS), max_size=14).map(" ".join))
def test_any_text_raises_only_template_errors(source: str) -> None:
    for text in (source, f"{{{{ {source} }}}}", f"{{% {source} %}}"):
        with contextlib.suppress(TemplateError):
            template = SampleTemplate(text)
            assert isinstance(template.reads, frozenset)
            template.exists(sample=SAMPLE)
            template.evaluate(sample=SAMPLE)
            assert isinstance(template.render(sample=SAMPLE), str)
