"""A reader as the product would run it: an ONNX file in, logits out. Needs no torch."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt
from tools.reader.graph import HEADS
from tools.reader.inputs import TOKENIZER, Inputs, Pieces, by_length, padded

from anaphora.embed.onnx import load_session, run_session

Logits = npt.NDArray[np.float32]
_INPUTS: Final = ("input_ids", "attention_mask", "token_type_ids")


class OnnxReader:
    """A reader of a file, or of a folder that `train` or `build` wrote.

    Raises SystemExit where there is none, or where it reads another tokenizer's pieces.
    """

    def __init__(self, place: Path, *, threads: int = 1, size: int = 32) -> None:
        model = model_of(place)
        manifest = model.with_name("manifest.json")
        self.name = model.parent.name
        if manifest.is_file():
            said = json.loads(manifest.read_text("utf-8"))
            self.name = str(said["name"])
            if said["tokenizer"]["sha256"] != hashlib.sha256(TOKENIZER.read_bytes()).hexdigest():
                raise SystemExit(f"{manifest} is of a reader with another tokenizer")
        self._inputs = Inputs()
        self._session = load_session(model, threads)
        self._size = size

    def answers(self, question: str, statements: Sequence[str]) -> Logits:
        """Whether each statement answers: logits of answers, about, not; shape (statements, 3)."""
        return self.logits([self._inputs.answer(question, text) for text in statements], HEADS[0])

    def changes(self, pairs: Sequence[tuple[str, str, str]]) -> Logits:
        """Of (question, older, newer): logits of replaces, holds, other; shape (pairs, 3)."""
        return self.logits([self._inputs.change(*pair) for pair in pairs], HEADS[1])

    def logits(self, inputs: Sequence[Pieces], head: str) -> Logits:
        """The logits of a judgement in the inputs' order."""
        found = np.empty((len(inputs), 3), np.float32)
        for batch in by_length(inputs, self._size):
            feed = dict(zip(_INPUTS, padded([inputs[at] for at in batch]), strict=True))
            found[batch] = run_session(self._session, feed, head)
        return found


def model_of(place: Path) -> Path:
    """The ONNX file of a run (`float/`), of a folder, or the file itself."""
    for model in (place, place / "model.onnx", place / "float" / "model.onnx"):
        if model.is_file():
            return model
    raise SystemExit(f"{place}: no model.onnx, and no float/model.onnx of a run")
