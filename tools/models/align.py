"""Train the network of other languages into the space of the English one: `… align --run FOLDER`.

In: `examples.jsonl`, the English network (`--english`, what `train` wrote), the weights to begin
with (what `e5` wrote), and translations of English texts. Out: as `train`.

Each text has the vector of the network that reads its language, as in the product: so a question in
one language is held to what answers it in another. The loss is the cross-entropy of `train`, and
how far (one less the cosine) a translation and an English text are from the English vector.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import torch
from tools.models import network as net
from tools.models.batches import Drawing, Drawn, draw_steps, held_apart
from tools.models.examples import LONG, read_examples
from tools.models.running import (
    Run,
    file_digest,
    planned,
    run_arguments,
    trained_parameters,
    write_embedder,
)
from tools.models.train import OUT, SCALE, WEIGHTS
from tools.models.translations import (
    ENGLISH,
    draw_texts,
    english_texts,
    languages_of,
    read_translations,
)

_BATCH: Final = 64
_RIDGE: Final = 1.0


@dataclass(frozen=True, slots=True)
class Plan:
    """As that of `train`. `texts` of each kind are aligned a step; `aligned` is what that counts.
    The turn into the English space is fitted on the first `turned` pairs.

    `examples`, `translations` and `english` are the SHA-256 of the files.
    """

    examples: str
    translations: str
    english: str
    steps: int
    drawing: Drawing
    aligned: float = 10.0
    texts: int = 24
    turned: int = 12_000
    rate: float = 1e-4
    dropout: float = 0.1


def main(words: list[str]) -> None:
    """Train until the last step, or as many steps as asked for."""
    parser = run_arguments("tools.models", __doc__, OUT / "aligned", 3.0)
    add = parser.add_argument
    add("--examples", type=Path, default=OUT / "examples.jsonl")
    add("--english", type=Path, default=OUT / "run" / "weights", help="the English network")
    add("--translations", type=Path, default=OUT.parent / "corpus" / "translations")
    add("--name", default="aligned", help="what the vectors of float/ are called")
    chosen = parser.parse_args(words)
    examples = list(read_examples(chosen.examples))
    foreign = [one for one in examples if one.language != ENGLISH]
    files = sorted(chosen.translations.glob("*.jsonl"))
    drawing = Drawing({**WEIGHTS, **dict(chosen.weight)})
    plan = Plan(
        file_digest(chosen.examples),
        file_digest(*files),
        file_digest(chosen.english / "model.safetensors"),
        chosen.steps,
        drawing,
    )
    plan = planned(plan, chosen, foreign)
    weights, device = chosen.weights or OUT / "e5", net.chosen_device()
    translated = [pair for file in files for pair in read_translations(file)]
    told = sorted({text for one in examples for text in english_texts(one, net.PASSAGE_CHARACTERS)})
    # As many as are drawn: the vectors of all would take longer than the training.
    told = random.sample(told, min(len(told), plan.steps * plan.texts))
    own = [(text, text) for text in told]
    english = KeptVectors(Reader.of(chosen.english, device))
    reader = Reader.of(weights, device, plan.dropout)
    reader.network.turn = fit_turn(reader, english, [*translated, *own][: plan.turned])
    reader.network.train()
    trained = trained_parameters(reader.network.named_parameters())
    run = Run(chosen.run, plan, reader.network, [{"params": trained, "lr": plan.rate}])
    losses = Losses(reader, english, plan.aligned)
    print(f"{len(foreign)} examples, {len(told)} English texts, {len(translated)} translations")
    batches = zip(
        draw_steps(foreign, plan.drawing),
        draw_texts(translated, plan.texts, f"{plan.drawing.seed}:translated"),
        draw_texts(own, plan.texts, f"{plan.drawing.seed}:told"),
        strict=True,
    )
    run.train(batches, losses.back, chosen.stop_after)
    write_embedder(run, weights, chosen)


@dataclass(frozen=True, slots=True)
class Reader:
    """A network with its tokenizer."""

    network: Any
    tokenizer: Any
    device: str

    @classmethod
    def of(cls, weights: Path, device: str, dropout: float = 0.0) -> Reader:
        """That of a folder, not yet training."""
        network = net.load_network(weights, device, dropout).eval()
        return cls(network, net.load_tokenizer(weights), device)

    def vectors(self, texts: Sequence[str], pieces: int) -> torch.Tensor:
        """Unit vectors, shape (texts, dimensions)."""
        padding = int(self.network.config.pad_token_id)
        return net.embed(self.network, self.tokenizer, texts, pieces, self.device, padding)


class KeptVectors:
    """A network's vectors of texts as it is, each made once."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self._rows: dict[str, torch.Tensor] = {}

    def rows(self, texts: Sequence[str]) -> torch.Tensor:
        """The vectors of texts, shape (texts, dimensions)."""
        missing = sorted({text for text in texts if text not in self._rows}, key=len)
        with torch.no_grad(), net.half_precision(self._reader.device):
            for start in range(0, len(missing), _BATCH):
                some = missing[start : start + _BATCH]
                rows = self._reader.vectors(some, net.PASSAGE_PIECES)
                self._rows.update(zip(some, rows.float(), strict=True))
        return torch.stack([self._rows[text] for text in texts])


def fit_turn(reader: Reader, english: KeptVectors, pairs: Sequence[tuple[str, str]]) -> Any:
    """What turns the network's vectors as near to the English ones as a square of numbers can.

    By ridge regression over pairs of a text and its English original: training begins in the space
    that it should end in.
    """
    rows = KeptVectors(reader).rows([text for text, _ in pairs])
    wanted = english.rows([original for _, original in pairs])
    squares = rows.T @ rows + _RIDGE * torch.eye(rows.shape[1], device=rows.device)
    turn = torch.linalg.solve(squares, rows.T @ wanted)
    module = torch.nn.Linear(*turn.shape, bias=False).to(rows.device)
    module.weight.data.copy_(turn.T)
    return module


Batch = tuple[list[Drawn], list[tuple[str, str]], list[tuple[str, str]]]


@dataclass(frozen=True, slots=True)
class Losses:
    """The losses of a step; `aligned` is what closeness to the English vectors counts."""

    reader: Reader
    english: KeptVectors
    aligned: float

    def back(self, batch: Batch) -> dict[str, float]:
        """Go back through the loss of a step; what is logged of it."""
        asked, *aligned = batch
        with net.half_precision(self.reader.device):
            loss = self._asked(asked)
        loss.backward()
        away = []
        for pairs in aligned:
            with net.half_precision(self.reader.device):
                rows = self.reader.vectors([text for text, _ in pairs], net.PASSAGE_PIECES)
            wanted = self.english.rows([original for _, original in pairs])
            distance = (1 - (rows * wanted).sum(dim=1)).mean()
            (self.aligned * distance).backward()
            away.append(distance.item())
        return {
            "loss": round(loss.item(), 4),
            "translated": round(away[0], 4),
            "told": round(away[1], 4),
        }

    def _asked(self, drawn: Sequence[Drawn]) -> torch.Tensor:
        long = any(one.example.lane == LONG for one in drawn)
        characters = net.LONG_CHARACTERS if long else net.PASSAGE_CHARACTERS
        pieces = net.LONG_PIECES if long else net.PASSAGE_PIECES
        asked = [(one.query, languages_of(one.example)[0]) for one in drawn]
        right = [(one.example, one.positive) for one in drawn]
        wrong = [(one.example, text) for one in drawn for text in one.negatives]
        whole = [text for _, text in right + wrong]
        told = [(text[:characters], languages_of(example)[1]) for example, text in right + wrong]
        queries, passages = self._mixed(asked, net.QUERY_PIECES), self._mixed(told, pieces)
        apart = torch.tensor(held_apart(drawn, whole), device=self.reader.device)
        logits = (queries @ passages.T * SCALE).masked_fill(apart, -1e4)
        targets = torch.arange(len(drawn), device=self.reader.device)
        return torch.nn.functional.cross_entropy(logits, targets)

    def _mixed(self, texts: Sequence[tuple[str, str]], pieces: int) -> torch.Tensor:
        own = [at for at, (_, language) in enumerate(texts) if language != ENGLISH]
        others = [at for at, (_, language) in enumerate(texts) if language == ENGLISH]
        parts = []
        if own:
            parts.append(self.reader.vectors([texts[at][0] for at in own], pieces))
        if others:
            parts.append(self.english.rows([texts[at][0] for at in others]))
        order = torch.tensor([*own, *others]).argsort()
        return torch.cat([part.float() for part in parts])[order]
