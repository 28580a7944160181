"""Write a small log with the installed version of inspect-ai. The golden logs were made with this script.

    python -m venv old && old/bin/pip install inspect-ai==0.3.95 && old/bin/python make_inspect_log.py OUT

The script only uses the API of Inspect 0.3.50. Set INSPECT_LOG_FORMAT_V3=1 for the version-3 pools of 0.3.195 to 0.3.199.
"""

import sys

from inspect_ai import Task
from inspect_ai import eval as run_eval
from inspect_ai.dataset import Sample
from inspect_ai.model import ModelOutput, ModelUsage, get_model
from inspect_ai.scorer import includes
from inspect_ai.solver import basic_agent, system_message
from inspect_ai.tool import tool

LONG = (
    "a text of more than one hundred characters, which Inspect takes out of the events and stores only once. "
)


@tool
def add():
    async def execute(x: int, y: int):
        """Add two numbers.

        Args:
            x: the first
            y: the second
        """
        return f"{x + y} {LONG}"

    return execute


def outputs():
    for _ in range(2):
        first = ModelOutput.for_tool_call("mockllm/model", "add", {"x": 3, "y": 4})
        second = ModelOutput.for_tool_call("mockllm/model", "submit", {"answer": "7"})
        for output in (first, second):
            output.usage = ModelUsage(input_tokens=5, output_tokens=3, total_tokens=8)
            yield output


task = Task(
    name="golden",
    dataset=[
        Sample(input="What is 3 + 4? " + LONG, target="7", id="first"),
        Sample(input="And now?", target="8", id=2),
    ],
    solver=basic_agent(init=system_message("Use the tools."), tools=[add()]),
    scorer=includes(),
)
model = get_model("mockllm/model", custom_outputs=outputs())
kind = sys.argv[2] if len(sys.argv) > 2 else "eval"
(log,) = run_eval(
    task, model=model, log_dir=sys.argv[1], log_format=kind, display="none", max_samples=1, max_connections=1
)
assert log.status == "success", log.error
print(log.location)
