"""Cost of the driver of a run on a cluster: CPU seconds for trivial shards.

python benchmarks/cluster.py [--pieces 10000]
"""

from __future__ import annotations

import argparse
import time

from aigo_scale.cluster.handing_out import HandingOut
from aigo_scale.cluster.local import connected

WORKERS = 2


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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pieces", type=int, default=10_000)
    options = parser.parse_args()
    hand_out(options.pieces)


if __name__ == "__main__":
    main()
