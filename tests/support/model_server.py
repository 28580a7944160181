"""A small server of a model, as a program of its own, that speaks OpenAI's protocol: what `--model-replicas` starts in tests.

Args: host, port, model, a folder. Each leaves a file there that is named by its process, with a line for each call that it has
answered: the question, the key. A file `refusing` in the folder has it end before it answers.
"""

from __future__ import annotations

import json
import os
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path


def main(host: str, port: str, model: str, folder: Path) -> None:
    """Serve until it is ended."""
    print(f"loading {model}", flush=True)
    if (folder / "refusing").exists():
        print(f"CUDA out of memory, said to {os.environ.get('HF_TOKEN')}")
        sys.exit(3)
    calls = folder / f"{os.getpid()}.calls"

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            self._send({"data": [{"id": model}]})

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            if body["model"] != model:
                self.send_error(404)
                return
            time.sleep(0.2)
            text = body["messages"][-1]["content"]
            with calls.open("a") as lines:
                lines.write(json.dumps([text, self.headers.get("Authorization")]) + "\n")
            choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "yes"}}
            usage = {"prompt_tokens": 5, "completion_tokens": 1, "total_tokens": 6}
            self._send(
                {
                    "id": "c",
                    "object": "chat.completion",
                    "created": 1,
                    "model": model,
                    "choices": [choice],
                    "usage": usage,
                }
            )

        def _send(self, content: object) -> None:
            data = json.dumps(content).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002  # the name it overrides
            """Quiet."""

    ThreadingHTTPServer((host, int(port)), Handler).serve_forever()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3], Path(sys.argv[4]))
