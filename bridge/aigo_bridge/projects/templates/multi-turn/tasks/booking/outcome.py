"""Score whether the guest got the correct code, and count the turns of the assistant."""


def compute_scores(sample, solver_output):
    messages = solver_output.trace.assistant_messages
    texts = [part.text for message in messages for part in message.content if getattr(part, "text", None)]
    return {"is_booked": sample["code"] in " ".join(texts), "turns": len(messages)}
