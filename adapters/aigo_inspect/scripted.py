"""The scripted model as a model provider of Inspect, so that everything below it is the real engine."""

from __future__ import annotations

import hashlib
from pathlib import Path

import anyio
import httpx
from inspect_ai.model import (
    ChatCompletionChoice,
    ChatMessage,
    ChatMessageAssistant,
    Content,
    ContentReasoning,
    ContentText,
    GenerateConfig,
    Logprob,
    Logprobs,
    ModelAPI,
    ModelCall,
    ModelOutput,
    ModelUsage,
)
from inspect_ai.tool import ToolCall, ToolChoice, ToolInfo

from aigo_bridge.scripted import Script, ScriptedReply, load_script


class ScriptedAPI(ModelAPI):
    """`scripted/<file>`: answers from a file of rules (see `aigo_bridge.scripted`)."""

    def __init__(
        self,
        model_name: str,
        base_url: str | None = None,
        api_key: str | None = None,
        config: GenerateConfig = GenerateConfig(),  # noqa: B008  # the signature that Inspect calls
    ):
        self.script: Script = load_script(Path(model_name))
        # Part of the key of Inspect's cache: other rules are another model, whatever their file is called.
        rules = hashlib.sha256(Path(model_name).read_bytes()).hexdigest()[:16]
        super().__init__(model_name, f"rules:{rules}", api_key, [], config)
        self._calls = 0

    async def generate(
        self,
        input: list[ChatMessage],  # noqa: A002  # the signature that Inspect calls
        tools: list[ToolInfo],
        tool_choice: ToolChoice,
        config: GenerateConfig,
    ) -> tuple[ModelOutput, ModelCall]:
        """Answer from the first rule that matches."""
        reply = self.script.reply([(message.role, message.text) for message in input])
        if reply.delay:
            await anyio.sleep(reply.delay)
        if reply.error is not None:
            raise _failure(reply.error, reply.status)
        self._calls += 1
        output = _output(self.model_name, input, reply, self._calls)
        request = {
            "model": self.model_name,
            "messages": [{"role": message.role, "content": message.text} for message in input],
            "config": config.model_dump(mode="json", exclude_none=True),
        }
        response = {"text": reply.text, "stop_reason": reply.stop_reason}
        return output, ModelCall.create(request, response)

    def should_retry(self, ex: BaseException) -> bool:
        """Retry what a real endpoint's client would."""
        return isinstance(ex, httpx.HTTPStatusError) and _is_transient(ex.response.status_code)

    def connection_key(self) -> str:
        """Concurrency is counted per script."""
        return self.model_name


def _output(name: str, messages: list[ChatMessage], reply: ScriptedReply, number: int) -> ModelOutput:
    content: str | list[Content] = reply.text
    if reply.reasoning is not None or reply.refusal:
        content = [ContentText(text=reply.text, refusal=True if reply.refusal else None)]
        if reply.reasoning is not None:
            content.insert(0, ContentReasoning(reasoning=reply.reasoning))
    calls = [
        ToolCall(id=call.id or f"call_{number}_{index}", function=call.name, arguments=call.arguments)
        for index, call in enumerate(reply.tool_calls)
    ]
    logprobs = [
        Logprob(token=token, logprob=value, bytes=list(token.encode())) for token, value in reply.logprobs
    ]
    choice = ChatCompletionChoice(
        message=ChatMessageAssistant(
            content=content, tool_calls=calls or None, model=name, source="generate"
        ),
        stop_reason=reply.stop_reason,
        logprobs=Logprobs(content=logprobs) if logprobs else None,
    )
    prompt, completion = reply.tokens([(message.role, message.text) for message in messages])
    # Without usage Inspect would fetch a tokenizer's vocabulary to estimate it: no network in CI.
    usage = ModelUsage(input_tokens=prompt, output_tokens=completion, total_tokens=prompt + completion)
    return ModelOutput(model=name, choices=[choice], usage=usage)


def _is_transient(status: int) -> bool:
    return status in (408, 409, 429) or status >= 500


def _failure(message: str, status: int | None) -> httpx.HTTPStatusError | RuntimeError:
    """What a provider's client would raise."""
    if status is None:
        return RuntimeError(message)
    request = httpx.Request("POST", "https://scripted.invalid/")
    return httpx.HTTPStatusError(message, request=request, response=httpx.Response(status, request=request))
