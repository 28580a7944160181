"""Score one answer: return score names with their values."""


def compute_scores(sample, solver_output):
    answer = solver_output.trace.get_last_assistant_text().strip()
    return {"is_right": answer == str(sample["answer"]), "length": len(answer)}
