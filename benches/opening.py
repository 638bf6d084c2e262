"""What do the ranks of paths take, packed in one way or another, and what does a question open and take?

    python benches/opening.py [--sketch FOLDER] [--passes 6]

A sketch of brazil_weather_2025 at a tenth of the rows' size, built unless one is given, is asked the random questions
of ../shared/tools/contest.py, warm. Printed are the bytes of all ranks by packing, beside those of zstd (one byte a
rank, a frame a feature and block); medians of what questions open; and the processor's time of questions, the least of
some passes, for other programs disturb it less than the clock. Writes benches/results/opening.json.
"""

from __future__ import annotations

import argparse
import heapq
import sys
import tempfile
import time
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

import synopsis as syn
from _shared import DATA, print_table, write_results
from accuracy import CASES, CONTEST, questions_of, referee, spec_of, truth_of
from synopsis.query.binding import plan
from synopsis.query.paths import touched
from synopsis.query.spelling import canonical, question_of
from synopsis.sketch import blocks, streams
from synopsis.sketch.packing import packed
from synopsis.sketch.streams import Odds
from synopsis.sketch.summary import Summary

CASE, SHARE, QUESTIONS = CASES["brazil"], 0.1, 200


def entropy_bytes(counts: np.ndarray) -> float:
    """Bytes of symbols that were seen so often, row by row, by their entropy."""
    total = counts.sum(axis=-1, keepdims=True)
    with np.errstate(all="ignore"):
        return float(np.nansum(-counts * np.log2(counts / total))) / 8


def huffman_bytes(counts: np.ndarray) -> float:
    """Bytes of symbols that were seen so often, row by row, by Huffman's codes."""
    bits = 0
    for row in counts.reshape(-1, counts.shape[-1]):
        seen = [int(count) for count in row if count]
        bits += seen[0] if len(seen) == 1 else 0
        heapq.heapify(seen)
        while len(seen) > 1:
            both = heapq.heappop(seen) + heapq.heappop(seen)
            bits += both
            heapq.heappush(seen, both)
    return bits / 8


def packings(summary: Summary) -> dict[str, float]:
    """Bytes of all ranks by packing."""
    everything = range(len(summary.scales.quantizers))
    parts = [blocks.opened(block, summary.contexts, everything) for block in summary.blocks]
    ranks = [summary.contexts.ranks(part.codes) for part in parts]
    symbols = summary.contexts.bins + 1
    together = np.concatenate(ranks, axis=1)
    alone = np.stack([np.bincount(own, minlength=symbols) for own in together])
    pairs = together[:, :-1].astype(np.int64) * symbols + together[:, 1:]
    after = np.stack([np.bincount(own, minlength=symbols**2).reshape(symbols, symbols) for own in pairs])
    even = [own[:, : own.shape[1] // 2 * 2] for own in ranks]
    odds, coded = Odds.of(together, symbols), 0
    for own, part in zip(ranks, parts, strict=True):
        words, lengths = streams.encoded(odds, own, streams.laps(np.diff(part.path_offset)))
        coded += sum(each.nbytes for each in words) + len(packed(lengths.reshape(-1)))
    return {
        "zstd": sum(len(packed(each)) for own in ranks for each in own),
        "two ranks in one byte, then zstd": sum(
            len(packed(each)) for own in even for each in own[:, ::2] | own[:, 1::2] << 4
        ),
        "Huffman": huffman_bytes(alone),
        "entropy": entropy_bytes(alone),
        "Huffman, by the rank before": huffman_bytes(after),
        "entropy, by the rank before": entropy_bytes(after),
        "streams, with lengths and odds": coded + odds.nbytes,
    }


def measured(sketch: Any, texts: list[str], passes: int) -> tuple[dict[str, float], dict[str, float]]:
    """Medians of what questions open, and the microseconds that they take."""
    summary, layout = sketch.summary, sketch.layout
    looks = [touched(summary, layout, plan(question_of(canonical(text)), layout, text)) for text in texts]
    facts = ("blocks", "packed bytes", "strata", "paths")
    opened = {name: float(np.median([look[name] for look in looks])) for name in facts}
    taken = np.full((passes, len(texts)), np.inf)
    for turn in range(-1, passes):  # the first warms
        for at, text in enumerate(texts):
            began = time.thread_time_ns()
            sketch.query(text)
            taken[turn, at] = (time.thread_time_ns() - began) / 1e3
    least = taken.min(axis=0)
    return opened, {f"p{share:g}": round(float(np.percentile(least, share)), 1) for share in (25, 50, 75, 95)}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sketch", type=Path)
    parser.add_argument("--passes", type=int, default=6)
    options = parser.parse_args()
    if not CONTEST.exists() or not DATA.is_dir():
        print("the folder shared does not lie beside this repository: nothing to measure")
        return 0
    contest = referee()
    truth = truth_of(contest, CASE, SHARE)
    texts = [question.text for question in islice(questions_of(contest, truth), QUESTIONS)]
    with tempfile.TemporaryDirectory(prefix="synopsis-bench-") as folder:
        place = options.sketch
        if place is None:
            from synopsis.spark import session

            place = Path(folder, "sketch")
            try:
                syn.build(CASE.path, spec_of(CASE, truth.budget), place, progress=False)
            finally:
                session.stop()
        sketch: Any = syn.open(place)
        opened, taken = measured(sketch, texts, options.passes)
        sizes = packings(sketch.summary)
        figures = {"paths": sketch.summary.paths, "parts": sketch.summary.parts, "opened": opened, "us": taken}
    print_table(["packing", "bytes", "of zstd"], [[name, size, size / sizes["zstd"]] for name, size in sizes.items()])
    print_table(list(opened), [list(opened.values())])
    print_table([f"{name}, us" for name in taken], [list(taken.values())])
    write_results("opening", figures | {"bytes": {name: round(size) for name, size in sizes.items()}})
    return 0


if __name__ == "__main__":
    sys.exit(main())
