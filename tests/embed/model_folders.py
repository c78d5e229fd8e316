"""Makes tiny sentence-transformers folders: a real ONNX graph, whose vectors can be told by hand.

The graph gives every word piece the row of a table that stands in it. ONNX files are protocol
buffers, of which so few fields are needed here that they are written out.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

_SENTENCES = (
    "the harbour closes at ten where is parked car blue red under bridge query passage : . , ? "
    "dog eats bread nadia sells milk on monday old clock stands still in tower"
)
WORDS = tuple(dict.fromkeys(_SENTENCES.split()))
SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
VOCABULARY = {piece: at for at, piece in enumerate((*SPECIAL, *WORDS))}
DIMENSIONS = 16


def table(seed: int = 1, shift: float = 0.0) -> NDArray[np.float32]:
    """A row for each piece; `shift` moves them all one way, as some models do."""
    rows = np.random.default_rng(seed).standard_normal((len(VOCABULARY), DIMENSIONS))
    return (rows + shift).astype(np.float32)


def make_folder(
    place: Path,
    *,
    rows: NDArray[np.float32] | None = None,
    pooling: str = "mean_tokens",
    window: int = 32,
    prompts: dict[str, str] | None = None,
    tokenizer: dict[str, Any] | str | None = None,
    modules: Sequence[str] = ("Transformer", "Pooling", "Normalize"),
    model: str = "onnx/model.onnx",
) -> Path:
    """Write a folder as `save_pretrained` does."""
    steps = {"Transformer": "", "Pooling": "1_Pooling", "Normalize": "2_Normalize"}
    listed = [
        {"idx": at, "name": str(at), "path": steps.get(step, f"{at}_{step}"), "type": f"st.{step}"}
        for at, step in enumerate(modules)
    ]
    modes = ("cls_token", "mean_tokens", "max_tokens", "lasttoken")
    files: dict[str, Any] = {
        "modules.json": listed,
        "config.json": {"model_type": "tiny", "pad_token_id": 0},
        "sentence_bert_config.json": {"max_seq_length": window, "do_lower_case": False},
        "config_sentence_transformers.json": {"prompts": prompts or {}},
        "1_Pooling/config.json": {
            "word_embedding_dimension": DIMENSIONS,
            **{f"pooling_mode_{mode}": mode == pooling for mode in modes},
        },
        "tokenizer.json": bert_tokenizer() if tokenizer is None else tokenizer,
    }
    for name, content in files.items():
        path = place / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content if isinstance(content, str) else json.dumps(content))
    path = place / model
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(lookup_model(table() if rows is None else rows))
    return place


def bert_tokenizer() -> dict[str, Any]:
    """A `tokenizer.json` of BERT's kind."""
    around = {name: {"id": name, "ids": [VOCABULARY[name]]} for name in ("[CLS]", "[SEP]")}
    return {
        "added_tokens": [{"id": VOCABULARY[one], "content": one} for one in SPECIAL],
        "normalizer": {
            "type": "BertNormalizer",
            "clean_text": True,
            "handle_chinese_chars": True,
            "strip_accents": None,
            "lowercase": True,
        },
        "pre_tokenizer": {"type": "BertPreTokenizer"},
        "post_processor": {
            "type": "TemplateProcessing",
            "single": [
                {"SpecialToken": {"id": "[CLS]", "type_id": 0}},
                {"Sequence": {"id": "A", "type_id": 0}},
                {"SpecialToken": {"id": "[SEP]", "type_id": 0}},
            ],
            "special_tokens": around,
        },
        "model": {
            "type": "WordPiece",
            "unk_token": "[UNK]",
            "continuing_subword_prefix": "##",
            "vocab": VOCABULARY,
        },
    }


def library_tokenizer() -> str:
    """A `tokenizer.json` of another kind, as the library `tokenizers` writes it."""
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

    made = Tokenizer(models.WordLevel(dict(VOCABULARY), unk_token="[UNK]"))
    made.normalizer = normalizers.Lowercase()
    made.pre_tokenizer = pre_tokenizers.Whitespace()
    pairs = [(name, VOCABULARY[name]) for name in ("[CLS]", "[SEP]")]
    made.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=pairs
    )
    made.enable_truncation(4)
    written: str = made.to_str()
    return written


def pieces(text: str) -> list[int]:
    """The numbers of a text's words, as both tokenizers have them."""
    marked = text.lower()
    for mark in ":.,?":
        marked = marked.replace(mark, f" {mark} ")
    return [VOCABULARY.get(word, VOCABULARY["[UNK]"]) for word in marked.split()]


# ONNX.


def lookup_model(rows: NDArray[np.float32]) -> bytes:
    """A model: `input_ids` and `attention_mask` (batch, length) to their rows of a table."""
    int64, float32 = 7, 1
    gather = _text(1, "table") + _text(1, "input_ids") + _text(2, "last_hidden_state")
    weights = (
        b"".join(_number(1, size) for size in rows.shape)
        + _number(2, float32)
        + _text(8, "table")
        + _part(9, rows.astype("<f4").tobytes())
    )
    graph = (
        _part(1, gather + _text(4, "Gather"))
        + _text(2, "tiny")
        + _part(5, weights)
        + _part(11, _value("input_ids", int64, ("batch", "length")))
        + _part(11, _value("attention_mask", int64, ("batch", "length")))
        + _part(12, _value("last_hidden_state", float32, ("batch", "length", "size")))
    )
    opset = _text(1, "") + _number(2, 13)
    return _number(1, 8) + _part(7, graph) + _part(8, opset)


def _value(name: str, kind: int, shape: Sequence[str]) -> bytes:
    dims = b"".join(_part(1, _text(2, one)) for one in shape)
    return _text(1, name) + _part(2, _part(1, _number(1, kind) + _part(2, dims)))


def _number(field: int, value: int) -> bytes:
    return _varint(field << 3) + _varint(value)


def _text(field: int, value: str) -> bytes:
    return _part(field, value.encode())


def _part(field: int, content: bytes) -> bytes:
    return _varint(field << 3 | 2) + _varint(len(content)) + content


def _varint(value: int) -> bytes:
    found = bytearray()
    while value > 0x7F:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes((*found, value))
