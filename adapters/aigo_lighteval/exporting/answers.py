"""What one of lighteval's backends has answered to a document, as a model that the sample program calls."""

from __future__ import annotations

from collections.abc import Sequence

import orjson
from lighteval.models.model_output import ModelResponse
from lighteval.tasks.requests import Doc

from aigo_bridge.connections import Choice, Exchange, Reply
from aigo_bridge.errors import SampleError, Stage
from aigo_bridge.models import ModelRequest
from aigo_bridge.scoring.likelihoods import Likelihood
from aigo_lighteval.answers import Answer


class GivenAnswer:
    """A model that says what was said already, to one question in one trial."""

    name = "lighteval"
    max_concurrent = 1

    def __init__(
        self,
        response: ModelResponse,
        trial: int,
        doc: Doc,
        problem: str | None = None,
        tokens: Sequence[int] = (),
    ):
        self._response = response
        self._tokens = tokens
        """Numbers of tokens of the document's choices, where likelihoods were asked."""
        self._problem = problem
        """Why the answer is to something else than was asked; `None`: it is not."""
        self._trial = trial
        self._doc = doc

    async def attempt(self, request: ModelRequest, stage: Stage) -> tuple[Answer, Exchange]:
        """The answer; cut where the backend went on behind a stop sequence, as some do."""
        self._check_prompt(stage)
        texts = self._response.text
        if self._trial >= len(texts):
            raise SampleError(
                f"the backend gave {len(texts)} answers, expected one for each trial",
                stage=stage,
                kind="MissingAnswer",
            )
        text = str(texts[self._trial])
        for stop in self._doc.stop_sequences or ():
            text = text.split(stop, 1)[0]
        reasonings = self._response.reasonings
        reasoning = reasonings[self._trial] if self._trial < len(reasonings) else None
        answer = Answer(Reply(choices=(Choice(text=text, reasoning=reasoning, finish_reason=None),)))
        return answer, self._exchange({"text": text})

    async def likelihoods(
        self, request: ModelRequest, continuations: Sequence[str], stage: Stage
    ) -> tuple[tuple[Likelihood, ...], Exchange]:
        """The likelihoods of the document's choices."""
        self._check_prompt(stage)
        response = self._response
        if list(continuations) != self._doc.choices or len(response.logprobs) != len(continuations):
            raise SampleError(
                "the backend gave likelihoods of other texts", stage=stage, kind="MissingLikelihoods"
            )
        tokens, greedy = self._tokens, response.argmax_logits_eq_gold
        if not len(tokens) == len(greedy) == len(continuations) or not all(tokens):
            raise SampleError(
                "the backend does not tell which tokens it has weighed",
                stage=stage,
                kind="MissingLikelihoods",
            )
        found = tuple(
            Likelihood(text, float(value), number, bool(best))
            for text, value, number, best in zip(
                continuations, response.logprobs, tokens, greedy, strict=True
            )
        )
        return found, self._exchange({"logprobs": [each.log_likelihood for each in found]})

    async def aclose(self) -> None:
        """Nothing is held open."""

    def _check_prompt(self, stage: Stage) -> None:
        if self._problem is not None:
            raise SampleError(self._problem, stage=stage, kind="UntrustedAnswer")

    def _exchange(self, said: object) -> Exchange:
        asked = {"query": self._doc.query, "choices": self._doc.choices}
        return Exchange(orjson.dumps(asked).decode(), orjson.dumps(said).decode())
