"""Process that renders templates that are not plain (started by `rendering`).

It only runs aigo-bridge's code: templates in the usual sandbox with the usual budget. The kernel limits
everything else: a timer of processor time ends the process, and memory is limited.
"""

from __future__ import annotations

import contextlib
import json
import os
import pickle
import resource
import signal
from dataclasses import asdict
from typing import Any, BinaryIO

from aigo_bridge.codes import Code
from aigo_bridge.errors import TemplateError
from aigo_bridge.templates import rendering
from aigo_bridge.templates.budget import OutOfTimeError
from aigo_bridge.templates.compiling import compile_template
from aigo_bridge.templates.rendering import FRAME, MEMORY_BYTES, render_here
from aigo_bridge.templates.sample import ENVIRONMENTS

TEXT, VALUE, ERROR = b"t", b"v", b"e"
"""First byte of an answer."""


def main(cpu_seconds: float) -> None:
    """Run jobs until standard input ends."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with contextlib.suppress(ValueError, OSError):  # A container may allow less than requested.
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    render_here()
    signal.signal(signal.SIGPROF, signal.SIG_DFL)
    with os.fdopen(os.dup(0), "rb") as requests, os.fdopen(os.dup(1), "wb") as answers:
        _serve(requests, answers, cpu_seconds)


def _serve(requests: BinaryIO, answers: BinaryIO, cpu_seconds: float) -> None:
    while len(head := requests.read(FRAME.size)) == FRAME.size:
        request = requests.read(FRAME.unpack(head)[0])
        signal.setitimer(signal.ITIMER_PROF, cpu_seconds)
        answer = _answer(request)
        signal.setitimer(signal.ITIMER_PROF, 0)
        answers.write(FRAME.pack(len(answer)))
        answers.write(answer)
        answers.flush()


def _answer(request: bytes) -> bytes:
    try:
        job, environment, source, names, values = pickle.loads(request)  # noqa: S301  # made by the runner, of its own data
        variables = dict.fromkeys(names) | pickle.loads(values)  # noqa: S301
    # The module of a type is missing, or the type cannot be restored.
    except Exception as error:  # noqa: BLE001
        return _problem(
            TemplateError(
                f"a value cannot be sent to the process that renders the template: {error}",
                code=Code.TEMPLATE_FAILED,
            )
        )
    try:
        return _done(job, environment, source, variables)
    except TemplateError as error:
        return _problem(error)
    except (MemoryError, RecursionError) as error:
        what = "takes too much memory" if isinstance(error, MemoryError) else "is nested too deeply"
        return _problem(TemplateError(f"the template or its result {what}", code=Code.TEMPLATE_TOO_COSTLY))
    except TypeError as error:  # A value that no field can contain.
        return _problem(TemplateError(str(error), code=Code.TEMPLATE_FAILED))


def _done(job: str, environment: str, source: str, variables: dict[str, Any]) -> bytes:
    compiled = compile_template(source, ENVIRONMENTS[environment])
    match job:
        case "render":
            return TEXT + compiled.render_here(variables).encode("utf-8", "surrogatepass")
        case "evaluate":
            return VALUE + rendering.written(compiled.evaluate_here(variables))
        case "exists":
            return VALUE + rendering.written(compiled.exists_here(variables))
        case _:
            compiled.generate()
            return VALUE + rendering.written(True)


def _problem(error: TemplateError) -> bytes:
    slow = isinstance(error.__cause__, OutOfTimeError)
    return ERROR + json.dumps([slow, [asdict(issue) for issue in error.issues]]).encode()
