"""What the driver of a run on a cluster costs: CPU seconds for pieces that are no work, and for calls.

python benchmarks/cluster.py [--pieces 10000] [--calls 2000]
"""

from __future__ import annotations

import argparse
import multiprocessing
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from multiprocessing.connection import Connection

import httpx

from aigo_bridge.models.balancing import Servers, balanced
from aigo_scale.cluster.handing_out import HandingOut
from aigo_scale.cluster.local import connected

WORKERS = 2
ANSWER = b'{"choices": [{"message": {"role": "assistant", "content": "' + b"word " * 200 + b'"}}]}'
QUESTION = {"model": "m", "messages": [{"role": "user", "content": "word " * 1000}]}


class Trivial:
    def run(self, piece: int) -> int:
        return piece


def hand_out(pieces: int) -> None:
    done = list[int]()

    def note(piece: int) -> bool:
        done.append(piece)
        return False

    with connected(None, WORKERS) as ray:
        kind = ray.remote(num_cpus=1)(Trivial)
        handing = HandingOut(kind.remote, note, lambda worker, piece: None, lambda: None, WORKERS)
        before, began = time.process_time(), time.monotonic()
        handing.run(range(pieces))
        seconds, elapsed = time.process_time() - before, time.monotonic() - began
    assert sorted(done) == list(range(pieces))
    print(f"{pieces:,} pieces: {seconds:.1f} CPU seconds of the driver, {elapsed:.1f} s")
    if seconds > 20 * pieces / 10_000:
        raise SystemExit("handing out costs more than 20 CPU seconds for 10,000 pieces")


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(200)
        self.send_header("Content-Length", str(len(ANSWER)))
        self.end_headers()
        self.wfile.write(ANSWER)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  # the name it overrides
        """Quiet."""


def serve(port: Connection) -> None:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    port.send(server.server_port)
    server.serve_forever()


def ask(address: str, calls: int) -> None:
    with httpx.Client() as client:
        for _ in range(calls):
            client.post(f"{address}/chat/completions", json=QUESTION).raise_for_status()


def pass_on(calls: int) -> None:
    spawn = multiprocessing.get_context("spawn")
    here, there = spawn.Pipe()
    server = spawn.Process(target=serve, args=(there,), daemon=True)
    server.start()
    with balanced(Servers([f"http://127.0.0.1:{here.recv()}/v1"])) as address:
        client = spawn.Process(target=ask, args=(address, calls))
        client.start()
        before = time.process_time()
        client.join()
        seconds = time.process_time() - before
    server.kill()
    print(f"{calls:,} calls passed on: {1000 * seconds / calls:.2f} CPU ms of the driver for each")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pieces", type=int, default=10_000)
    parser.add_argument("--calls", type=int, default=2_000)
    options = parser.parse_args()
    pass_on(options.calls)
    hand_out(options.pieces)


if __name__ == "__main__":
    main()
