"""The passages that share most words with the question, then one call of the model.

What was retrieved goes into the output as `references`: that is where `rag_checker` looks for it.
"""

import re

from latticeflow.core.dtypes import ModelResponse

TOP_K = int("<< config.top_k >>")


def words(text):
    return set(re.findall(r"\w{4,}", text.lower()))


def retrieve(question, passages):
    ranked = sorted(passages, key=lambda passage: -len(words(question) & words(passage)))
    return ranked[:TOP_K]


async def run_solver(sample, model, trace):
    passages = retrieve(sample["question"], sample["passages"])
    trace.append_system_message("Answer in one sentence, from these passages alone.\n\n" + "\n\n".join(passages))
    trace.append_user_message(sample["question"])
    response = await model.predict(trace.items)
    message = {"role": "assistant", "content": response.text}
    output = {
        "choices": [{"message": message, "references": [{"content": passage} for passage in passages]}],
        "usage": getattr(response.raw_output, "usage", None),
    }
    trace.add_model_response(ModelResponse(raw_output=output, items=response.items))
    return trace
