"""A reader of a few kilobytes: a real ONNX file, with the embedder's word table and one idea.

Whoever says "zebra" answers, and a statement that says "instead" replaces an earlier one. So tests
know what it judges, whatever the weights that ship have learned.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from anaphora.embed.minilm import MINILM
from anaphora.embed.word_table import TABLE, read_tensors
from anaphora.embed.wordpiece import read_wordpiece
from anaphora.reading.inputs import TOKENIZER
from anaphora.reading.model import LENGTHS

ANSWER, CHANGE = "zebra", "instead"
_INT64, _INT8, _FLOAT = 7, 3, 1


def make_reader(folder: Path, **said: Any) -> Path:
    """Write the folder of a reader; `said` replaces members of its manifest."""
    folder.mkdir(parents=True, exist_ok=True)
    model = _model()
    (folder / "model.onnx").write_bytes(model)
    tensors = read_tensors(MINILM / "model.onnx", TABLE)
    manifest = {
        "name": "tiny:1",
        "pieces": dict(LENGTHS),
        "tokenizer": {"sha256": hashlib.sha256(TOKENIZER.read_bytes()).hexdigest()},
        "table": {
            name: {"sha256": hashlib.sha256(tensor.tobytes()).hexdigest()}
            for name, tensor in tensors.items()
        },
        "files": {"model.onnx": {"sha256": hashlib.sha256(model).hexdigest()}},
        **said,
    }
    (folder / "manifest.json").write_text(json.dumps(manifest), "utf-8")
    return folder


def _model() -> bytes:
    """Of each judgement, the highest likeness of any word piece to its word."""
    heads = {"answers": ANSWER, "pairs": CHANGE}
    nodes = [
        _node("Cast", ["word.whole"], "whole", to=_FLOAT),
        _node("Mul", ["whole", "word.own"], "pieces"),
    ]
    tensors = []
    for head, word in heads.items():
        tensors += [
            _tensor(f"{head}.weight", _direction(word)),
            _tensor(f"{head}.bias", np.array([-9.0, 0.0, 0.0], np.float32)),
        ]
        nodes += [
            _node("MatMul", ["pieces", f"{head}.weight"], f"{head}.each"),
            _node("ReduceMax", [f"{head}.each"], f"{head}.most", axes=[1], keepdims=0),
            _node("Add", [f"{head}.most", f"{head}.bias"], head),
        ]
    inputs = [
        _value("input_ids", _INT64, ["batch", "length"]),
        _value("attention_mask", _INT64, ["batch", "length"]),
        _value("token_type_ids", _INT64, ["batch", "length"]),
        _value("word.whole", _INT8, ["batch", "length", 384]),
        _value("word.own", _FLOAT, ["batch", "length", 1]),
    ]
    graph = [
        *((1, node) for node in nodes),
        (2, b"tiny"),
        *((5, tensor) for tensor in tensors),
        *((11, value) for value in inputs),
        *((12, _value(head, _FLOAT, ["batch", 3])) for head in heads),
    ]
    return _message([(1, 8), (7, _message(graph)), (8, _message([(1, b""), (2, 17)]))])


def _direction(word: str) -> np.ndarray[Any, Any]:
    """What a word piece is multiplied by: 12 for the word itself, shape (384, 3)."""
    (piece,) = read_wordpiece(TOKENIZER.read_bytes()).ids(word)
    tensors = read_tensors(MINILM / "model.onnx", TABLE)
    vector = tensors["word.values"][piece].astype(np.float32) * float(
        np.frombuffer(tensors["word.scale"].tobytes(), np.float32)[piece]
    )
    columns = np.zeros((len(vector), 3), np.float32)
    columns[:, 0] = 12.0 * vector / float(vector @ vector)
    return columns


# An ONNX file is a message of protobuf: numbered fields, each a number or bytes.


def _message(fields: Iterable[tuple[int, int | bytes]]) -> bytes:
    parts = []
    for number, value in fields:
        if isinstance(value, int):
            parts.append(_varint(number << 3) + _varint(value))
        else:
            parts.append(_varint(number << 3 | 2) + _varint(len(value)) + value)
    return b"".join(parts)


def _varint(value: int) -> bytes:
    done = bytearray()
    while value > 127:
        done.append(value & 127 | 128)
        value >>= 7
    return bytes([*done, value])


def _node(kind: str, inputs: list[str], output: str, **attributes: int | list[int]) -> bytes:
    fields: list[tuple[int, int | bytes]] = [(1, name.encode()) for name in inputs]
    fields += [(2, output.encode()), (4, kind.encode())]
    for name, value in attributes.items():
        content: list[tuple[int, int | bytes]]
        if isinstance(value, int):
            content = [(1, name.encode()), (3, value), (20, 2)]
        else:
            content = [(1, name.encode()), *((8, one) for one in value), (20, 7)]
        fields.append((5, _message(content)))
    return _message(fields)


def _tensor(name: str, values: np.ndarray[Any, Any]) -> bytes:
    shape = [(1, size) for size in values.shape]
    return _message([*shape, (2, _FLOAT), (8, name.encode()), (9, values.tobytes())])


def _value(name: str, kind: int, shape: list[str | int]) -> bytes:
    sizes = [
        (1, _message([(2, size.encode()) if isinstance(size, str) else (1, size)]))
        for size in shape
    ]
    tensor = _message([(1, kind), (2, _message(sizes))])
    return _message([(1, name.encode()), (2, _message([(1, tensor)]))])
