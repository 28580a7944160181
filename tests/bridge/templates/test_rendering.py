"""Templates that are not plain are rendered in a process that can be killed, and give the same there."""

from __future__ import annotations

import asyncio
import datetime as dt
import math
import os
import signal
import subprocess
import sys
import threading
import time
import types
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from aigo_bridge.dtypes import ChatCompletionInputMessage, TaskResultErrorStage
from aigo_bridge.errors import TemplateError
from aigo_bridge.templates import CompiledAdapter, SampleTemplate, rendering
from aigo_bridge.templates.compiling import compile_template

ENDLESS = "{{ 5 | round(-99999999 - sample.n) }}"
HARMLESS = "{{ sample.n ** 2 }}"
VALUES: dict[str, Any] = {
    "text": "ß😀\ud800",
    "number": 42,
    "huge": 7**900,
    "real": 0.1,
    "missing": math.nan,
    "infinite": -math.inf,
    "flag": True,
    "nothing": None,
    "list": [1, [2.5, "x", None]],
    "tuple": (1, ("a",)),
    "map": {"a": {"b": 1}, 3: 4, (1, 2): "t"},
    "set": {1},
    "bytes": b"\x00\xff",
    "range": range(1, 9, 3),
    "date": dt.date(2024, 2, 29),
    "moment": dt.datetime(2024, 2, 29, 1, 2, 3, 4, tzinfo=dt.timezone(dt.timedelta(hours=2))),
    "time": dt.time(1, 2),
    "span": dt.timedelta(days=-1, microseconds=5),
    "message": ChatCompletionInputMessage(role="user", content="hi"),
    "messages": [ChatCompletionInputMessage(role="user", content="hi", name="n")],
    "member": TaskResultErrorStage("score"),
}


@pytest.fixture
def quick_end(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Processes that are ended soon."""
    monkeypatch.setattr(rendering, "CPU_SECONDS", 0.2)
    monkeypatch.setattr(rendering, "_POOL", rendering._Pool())
    compile_template.cache_clear()
    yield
    compile_template.cache_clear()


def is_plain(source: str) -> bool:
    return SampleTemplate(source)._compiled.is_plain


@pytest.mark.parametrize("name", VALUES)
def test_a_value_there_and_back_is_what_it_was(name: str) -> None:
    value = VALUES[name]
    elsewhere = SampleTemplate("{{ (sample.x, 2 ** 2)[0] }}")
    assert not is_plain(elsewhere.source)

    given = elsewhere.evaluate(sample={"x": value})

    expected = list(value) if isinstance(value, range) else value
    assert type(given) is type(expected)
    assert repr(given) == repr(expected)
    assert elsewhere.render(sample={"x": value}) == SampleTemplate("{{ sample.x }}").render(
        sample={"x": value}
    )


def test_a_read_only_map_prints_as_one() -> None:
    view = types.MappingProxyType({"a": 1})
    printed = SampleTemplate("{{ sample.x }}{{ 2 ** 2 }}").render(sample={"x": view})
    assert printed == f"{view}4"


def test_a_model_output_knows_which_fields_it_was_given() -> None:
    message = VALUES["message"]
    back = SampleTemplate("{{ (m, 2 ** 2)[0] }}").evaluate(m=message)
    assert back.model_fields_set == message.model_fields_set
    assert back == message


@pytest.mark.parametrize("source", ["{{ sample.nam ** 2 }}", "{{ other ** 2 }}", "a\n{{ 1 ** sample }}"])
def test_an_error_says_the_same_with_its_place(source: str) -> None:
    values = {"sample": {"name": 1}, "trace": None}
    with pytest.raises(TemplateError) as elsewhere:
        SampleTemplate(source).render(**values)
    with pytest.raises(TemplateError) as here:
        SampleTemplate(source)._compiled.render_here(values)
    assert elsewhere.value.issues == here.value.issues
    assert elsewhere.value.issues[0].line == source.count("\n") + 1


def test_whether_a_name_exists_is_asked_there_too() -> None:
    template = SampleTemplate("{{ ([sample] | sort(attribute='a'))[0].x }}")
    assert not is_plain(template.source)
    assert template.exists(sample={"a": 1, "x": 2})
    assert not template.exists(sample={"a": 1})


def test_what_no_field_can_hold_is_an_error() -> None:
    with pytest.raises(TemplateError, match=r"of type 'Cycler', which a field cannot contain"):
        SampleTemplate("{{ cycler(1) }}").evaluate()


def test_a_value_that_cannot_be_sent_is_an_error() -> None:
    class Local:
        pass

    with pytest.raises(TemplateError, match="cannot be sent to the process that renders"):
        SampleTemplate("{{ x ** 2 }}").render(x=Local())


def test_values_that_the_template_does_not_name_are_not_sent() -> None:
    assert SampleTemplate("{{ x ** 2 }}").render(x=3, other=lambda: None) == "9"


def test_an_adapter_changes_copies() -> None:
    body = {"list": [1]}
    template = CompiledAdapter("{% do body.list.append(2) %}{{ body.list | tojson }}")
    assert template.render(body=body) == "[1, 2]"
    assert body == {"list": [1]}


@pytest.mark.usefixtures("quick_end")
def test_the_kernel_ends_what_never_ends_and_the_next_is_rendered() -> None:
    with pytest.raises(TemplateError, match=r"computes for more than 0\.2 s"):
        SampleTemplate(ENDLESS).render(sample={"n": 1})
    assert SampleTemplate(HARMLESS).render(sample={"n": 3}) == "9"


@pytest.mark.usefixtures("quick_end")
def test_a_template_that_took_too_long_with_five_rows_is_not_waited_for_again() -> None:
    messages = []
    for number in (0, 0, 0, 0, 1, 2, 3, 4, 5, 6):
        with pytest.raises(TemplateError) as error:
            SampleTemplate(ENDLESS).render(sample={"n": number})
        messages.append(str(error.value))
    assert ["not rendered again" in message for message in messages] == [False] * 8 + [True] * 2


@pytest.mark.usefixtures("quick_end")
def test_the_same_row_is_not_tried_twice() -> None:
    template = SampleTemplate("{{ 5 | round(sample.n) }}")
    for _ in range(9):
        with pytest.raises(TemplateError, match="computes for more than"):
            template.render(sample={"n": -99999999})
    assert template.render(sample={"n": -2000}) == "0"


def test_a_process_that_dies_is_an_error_of_one_sample() -> None:
    template = SampleTemplate(HARMLESS)
    assert template.render(sample={"n": 2}) == "4"
    (worker, *_) = rendering._POOL._free[::-1]
    os.kill(worker.process.pid, signal.SIGKILL)
    worker.process.wait()
    assert template.render(sample={"n": 3}) == "9"


def test_threads_render_at_the_same_time() -> None:
    template = SampleTemplate(HARMLESS)
    with ThreadPoolExecutor(12) as threads:
        printed = list(threads.map(lambda n: template.render(sample={"n": n}), range(200)))
    assert printed == [str(n**2) for n in range(200)]
    assert len(rendering._POOL._free) <= rendering.MOST_WORKERS


def test_a_forked_copy_has_processes_of_its_own() -> None:
    template = SampleTemplate(HARMLESS)
    template.render(sample={"n": 2})
    child = os.fork()
    if child == 0:
        os._exit(0 if template.render(sample={"n": 3}) == "9" else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert template.render(sample={"n": 4}) == "16"


def test_an_interrupt_while_it_waits_comes_through_and_leaves_no_answer_behind(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(rendering, "_POOL", rendering._Pool())
    harmless = SampleTemplate(HARMLESS)
    harmless.render(sample={"n": 1})
    worker = rendering._POOL._free[0].process.pid

    def interrupt() -> None:
        while not _computes(worker):
            time.sleep(0.01)
        os.kill(os.getpid(), signal.SIGINT)

    waiting = threading.Thread(target=interrupt)

    def render() -> None:
        waiting.start()
        SampleTemplate(ENDLESS).render(sample={"n": 1})

    with pytest.raises(KeyboardInterrupt):
        render()
    waiting.join()
    assert harmless.render(sample={"n": 3}) == "9"


def _computes(process: int) -> bool:
    """Whether a process has begun to work."""
    return Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()[0] == "R"


@pytest.mark.usefixtures("quick_end")
def test_the_event_loop_goes_on_soon() -> None:
    async def run() -> str:
        try:
            async with asyncio.timeout(0.01):
                while True:
                    try:
                        SampleTemplate(ENDLESS).render(sample={"n": 7})
                    except TemplateError:
                        await asyncio.sleep(0)
        except TimeoutError:
            return "the time limit held"

    assert asyncio.run(run()) == "the time limit held"


def test_the_process_has_none_of_the_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-the-runner")
    monkeypatch.setattr(rendering, "_POOL", rendering._Pool())
    SampleTemplate(HARMLESS).render(sample={"n": 1})
    environment = Path(f"/proc/{rendering._POOL._free[0].process.pid}/environ").read_bytes()
    assert b"sk-of-the-runner" not in environment


def test_processes_end_with_the_runner() -> None:
    script = (
        "import sys; sys.path[:] = eval(sys.argv[1])\n"
        "from aigo_bridge.templates import SampleTemplate, rendering\n"
        "SampleTemplate('{{ 2 ** 2 }}').render(); print(rendering._POOL._free[0].process.pid, flush=True)\n"
        "import os, signal; os.kill(os.getpid(), signal.SIGKILL)"
    )
    ran = subprocess.run([sys.executable, "-c", script, repr(sys.path)], capture_output=True, text=True)
    process = Path(f"/proc/{int(ran.stdout)}/stat")
    deadline = time.monotonic() + 20
    while process.exists() and process.read_text().rsplit(")", 1)[1].split()[0] != "Z":
        assert time.monotonic() < deadline
        time.sleep(0.01)


@pytest.mark.parametrize(
    "source",
    [
        "{{ sample.question }}\n{% for c in sample.choices %}{{ 'ABCD'[loop.index0] }}) {{ c }}\n{% endfor %}",
        "{{ sample.choices | tojson }} {{ sample.question | upper | trim }}",
        "{% if sample.answer == 0 %}{{ sample.choices[0] }}{% else %}{{ sample.context[:500] }}{% endif %}",
        "{{ sample.question.strip().lower() }} {{ sample.n // 2 + 1 }} {{ sample.x | default('none') }}",
        "{{ solver_output.output.choices[0].message.content | trim | lower }}",
        "{% for m in messages if m.role == 'user' %}{{ m.role }}: {{ m.content }}{% endfor %}",
        "{{ sample.a | round(2) }} {{ sample.tags | join(', ') }} {{ range(3) | list | length }}",
    ],
)
def test_what_prompts_are_made_of_is_plain(source: str) -> None:
    assert is_plain(source)
