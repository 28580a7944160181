"""Handing out pieces: CPU seconds of the driver for pieces that are no work.

python benchmarks/cluster.py [--pieces 10000]
"""

from __future__ import annotations

import argparse
import time

from aigo_bridge.cluster.handing_out import HandingOut
from aigo_bridge.cluster.local import connected

WORKERS = 2


class Trivial:
    def run(self, piece: int) -> int:
        return piece


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pieces", type=int, default=10_000)
    options = parser.parse_args()
    done = list[int]()

    def note(piece: int) -> bool:
        done.append(piece)
        return False

    with connected(None, WORKERS) as ray:
        kind = ray.remote(num_cpus=1)(Trivial)
        handing = HandingOut(kind.remote, note, lambda worker, piece: None, lambda: None, WORKERS)
        before, began = time.process_time(), time.monotonic()
        handing.run(range(options.pieces))
        seconds, elapsed = time.process_time() - before, time.monotonic() - began
    assert sorted(done) == list(range(options.pieces))
    print(f"{options.pieces:,} pieces: {seconds:.1f} CPU seconds of the driver, {elapsed:.1f} s")
    if seconds > 20 * options.pieces / 10_000:
        raise SystemExit("handing out costs more than 20 CPU seconds for 10,000 pieces")


if __name__ == "__main__":
    main()
