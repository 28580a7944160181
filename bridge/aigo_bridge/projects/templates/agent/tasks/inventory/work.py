"""Whether the agent left the right answer, and how many commands it took."""


def compute_scores(sample, solver_output):
    files = solver_output.trace.metadata.extra["files"]
    return {
        "is_solved": files.get("answer.txt", "").strip() == sample["answer"],
        "commands": len(solver_output.trace.function_calls),
    }
