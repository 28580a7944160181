"""Write the files of `tests/golden/traces/`: `python -m tests.golden.traces.make_traces`.

`AIGO_GOLDEN=update pytest tests/extras/formats/traces/test_sources.py` rewrites the expected results.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from tests.golden.traces import genai_spans, langsmith_runs, phoenix_spans, sessions

HERE = Path(__file__).parent
MAKERS = {
    "claude_code": sessions.cases,
    "opentelemetry": genai_spans.cases,
    "phoenix": phoenix_spans.cases,
    "langsmith": langsmith_runs.cases,
}


def main() -> None:
    for source, cases in MAKERS.items():
        for name, files in cases():
            folder = HERE / source / name / "files"
            shutil.rmtree(folder, ignore_errors=True)
            for path, text in files.items():
                target = folder / path
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_text(text, encoding="utf-8", newline="\n")


if __name__ == "__main__":
    main()
