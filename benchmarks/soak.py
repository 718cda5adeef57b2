"""Whether fimble stays as it is when it is used for long.

Windows type over one engine of their own; memory, open files, threads and slots of every
process are taken after each round::

    python benchmarks/soak.py [--minutes 30] [--editors 2] [--model NAME|PATH] [--json]

Memory is what a process has for itself (USS). Growth is counted from the tenth of the rounds on,
when caches are full.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import time
from dataclasses import asdict

from fimble.bench.soak import growth, run_soak
from fimble.models.catalogue import DEFAULT_MODEL
from fimble.models.store import Store


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=30.0, help="how long")
    parser.add_argument("--editors", type=int, default=2, help="windows at once")
    parser.add_argument("--bursts", type=int, default=20, help="bursts of typing a round")
    parser.add_argument("--pause", type=float, default=0.05, help="seconds between two keys")
    parser.add_argument("--model", default=DEFAULT_MODEL, help="the package")
    parser.add_argument("--json", action="store_true", help="print JSON")
    options = parser.parse_args()
    until = time.monotonic() + options.minutes * 60
    samples = asyncio.run(
        run_soak(
            Store().find(options.model),
            editors=options.editors,
            bursts=options.bursts,
            pause=options.pause,
            goes_on=lambda done: not done or time.monotonic() < until,
        )
    )
    settled = max(1, len(samples["engine"]) // 10)
    if options.json:
        print(json.dumps({name: [asdict(s) for s in each] for name, each in samples.items()}))
        return
    for name, each in samples.items():
        grown, last = growth(each, settled), each[-1]
        print(
            f"{name:10} {len(each)} rounds, {last.seconds:.0f} s: "
            f"{last.bytes / 2**20:.1f} MiB ({grown['bytes'] / 2**20:+.1f}), "
            f"handles {last.handles} ({grown['handles']:+}), "
            f"threads {last.threads} ({grown['threads']:+}), "
            f"slots {last.slots} ({grown['slots']:+})"
        )


if __name__ == "__main__":
    main()
