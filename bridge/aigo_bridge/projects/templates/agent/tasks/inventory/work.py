"""Score whether the agent wrote the correct answer, and count its commands."""


def compute_scores(sample, solver_output):
    files = solver_output.trace.metadata.extra["files"]
    return {
        "is_solved": files.get("answer.txt", "").strip() == sample["answer"],
        "commands": len(solver_output.trace.function_calls),
    }
