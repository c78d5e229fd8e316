"""An embedder from the user's own sentence-transformers folder with ONNX, run here, offline.

The folder has the form that `save_pretrained` and the model hubs write; the embedder follows its
files: pooling, prefixes, window. Nothing is downloaded, and no file is executed except the ONNX
graph. A folder that needs anything unsupported is refused with the reason, rather than computed
slightly wrong.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from anaphora.embed.base import Vector, Vectors, mean_vector, unit_rows
from anaphora.embed.onnx import load_session, run_session
from anaphora.embed.tokenizing import TokenizerSpec, read_tokenizer
from anaphora.embed.windowed import TextWindows, embed_parts
from anaphora.errors import EmbeddingError, InvalidInput

if TYPE_CHECKING:
    from anaphora.embed.registry import EmbedderRegistry

# To be raised when pooling, splitting or prefixes change.
_RECIPE: Final = "1"
_MODELS: Final = ("onnx/model.onnx", "model.onnx")
_STEPS: Final = ("Transformer", "Pooling", "Normalize")
_DOCUMENT: Final = ("document", "passage", "corpus")
# The first two positions of these models are reserved.
_SHIFTED: Final = frozenset(("roberta", "xlm-roberta", "camembert", "mpnet"))
_LONGEST_WINDOW: Final = 1 << 17
_DEFAULT_WINDOW: Final = 512
_PLACES: Final = ("token_embeddings", "last_hidden_state", "sentence_embedding")

Floats = NDArray[np.float32]
Pooling = Callable[[Floats, Floats], Floats]
"""(batch, pieces, dimensions) and the mask (batch, pieces) to (batch, dimensions)."""


def _mean(hidden: Floats, mask: Floats) -> Floats:
    weights = (mask / np.maximum(mask.sum(axis=1, keepdims=True), 1.0)).astype(np.float32)
    pooled_vectors: Floats = np.einsum("bth,bt->bh", hidden, weights)
    return pooled_vectors


def _weighted_mean(hidden: Floats, mask: Floats) -> Floats:
    # Later word pieces have seen more of the text (Muennighoff, arXiv:2202.08904).
    return _mean(hidden, mask * np.arange(1, mask.shape[1] + 1, dtype=np.float32))


def _first(hidden: Floats, mask: Floats) -> Floats:
    pooled_vectors: Floats = hidden[np.arange(len(hidden)), mask.argmax(axis=1)]
    return pooled_vectors


def _last(hidden: Floats, mask: Floats) -> Floats:
    pooled_vectors: Floats = hidden[
        np.arange(len(hidden)), mask.shape[1] - 1 - mask[:, ::-1].argmax(axis=1)
    ]
    return pooled_vectors


def _greatest(hidden: Floats, mask: Floats) -> Floats:
    pooled_vectors: Floats = np.where(mask[:, :, None] > 0, hidden, -np.inf).max(axis=1)
    return pooled_vectors


POOLINGS: Final[Mapping[str, Pooling]] = {
    "cls": _first,
    "mean": _mean,
    # The same direction as the mean.
    "mean_sqrt_len": _mean,
    "max": _greatest,
    "weightedmean": _weighted_mean,
    "lasttoken": _last,
}


@dataclass(frozen=True, slots=True)
class ModelFolder:
    """The description of a model by its files. `window` counts word pieces, with special ones."""

    model: Path
    kind: str
    dimensions: int
    pooling: str
    pools_prefix: bool
    query_prefix: str
    document_prefix: str
    window: int
    lower: bool
    padding: int
    tokenizer: Path
    files: tuple[Path, ...]

    def digest(self) -> str:
        """SHA-256 over all files that the vectors depend on."""
        digest = hashlib.sha256()
        for path in self.files:
            with path.open("rb") as file:
                digest.update(f"{path.name}:{path.stat().st_size}\n".encode())
                digest.update(hashlib.file_digest(file, "sha256").digest())
        return digest.hexdigest()

    def stamp(self) -> str:
        """A stamp that changes with the files, without reading their content."""
        states = [(path.name, path.stat()) for path in self.files]
        return ";".join(f"{name}:{state.st_size}:{state.st_mtime_ns}" for name, state in states)


def read_folder(path_: Path) -> ModelFolder:
    """Read a model folder; `place` is the folder, or the one of its ONNX files to use.

    Raises InvalidInput if there is no such folder, or if it needs anything unsupported.
    """
    path_ = path_.expanduser()
    chosen_model = path_ if path_.suffix == ".onnx" else None
    root = path_ if chosen_model is None else chosen_model.parent
    if chosen_model is not None and not (root / "modules.json").is_file():
        root = root.parent
    if not root.is_dir() or (chosen_model is not None and not chosen_model.is_file()):
        raise _refused(
            path_,
            "it is not there, and is not fetched; `anaphora reindex --embedder minilm` goes back",
        )
    steps = _steps(path_, root)
    config = _json(root / "config.json", {})
    sentences = _json(root / "sentence_bert_config.json", {})
    pooling, dimensions, pools_prefix = _pooling(path_, root, steps)
    prompts = _json(root / "config_sentence_transformers.json", {})
    tokenizer = root / "tokenizer.json"
    if not tokenizer.is_file():
        raise _refused(path_, "it has no tokenizer.json")
    model = chosen_model or _model(path_, root)
    weights = (path for path in model.parent.glob("*.onnx*") if path.stem == model.name)
    beside = sorted({*weights, *model.parent.glob(f"{model.name}_data*")})
    config_names = ("modules.json", "config.json", "sentence_bert_config.json")
    files = [root / name for name in (*config_names, "config_sentence_transformers.json")]
    files += [root / step / "config.json" for step in steps.values()]
    positions = config.get("max_position_embeddings")
    if isinstance(positions, int) and config.get("model_type") in _SHIFTED:
        positions -= 2
    limits = (
        sentences.get("max_seq_length"),
        _json(root / "tokenizer_config.json", {}).get("model_max_length"),
        positions,
    )
    sizes = [size for size in limits if isinstance(size, int) and 0 < size <= _LONGEST_WINDOW]
    return ModelFolder(
        model=model,
        kind=str(config.get("model_type") or "model"),
        dimensions=dimensions,
        pooling=pooling,
        pools_prefix=pools_prefix,
        query_prefix=_prompt(prompts, ("query",)),
        document_prefix=_prompt(prompts, _DOCUMENT),
        window=sizes[0] if sizes else _DEFAULT_WINDOW,
        lower=bool(sentences.get("do_lower_case")),
        padding=int(config.get("pad_token_id") or 0),
        tokenizer=tokenizer,
        files=tuple(path for path in (model, *beside, tokenizer, *files) if path.is_file()),
    )


def identity(folder: ModelFolder, registry: EmbedderRegistry) -> str:
    """The embedder's name: recipe, kind of model and hash of its files.

    Hashing takes a second for half a gigabyte, so `registry` caches the name of unchanged files.
    """
    stamp = folder.stamp()
    record = registry.get("folders", str(folder.model))
    if record.get("stamp") != stamp or not isinstance(record.get("name"), str):
        name = f"onnx:{_RECIPE}:{folder.kind}:{folder.digest()[:12]}"
        record = {"stamp": stamp, "name": name}
        registry.put("folders", str(folder.model), record)
    return str(record["name"])


class FolderEmbedder:
    """The model of a folder, loaded. Safe to share between threads.

    Raises EmbeddingError if it does not load, MissingExtra if its tokenizer needs a library that is
    not installed.
    """

    def __init__(self, folder: ModelFolder, name: str) -> None:
        self._folder = folder
        self._name = name
        spec: TokenizerSpec = read_tokenizer(folder.tokenizer, lower=folder.lower)
        self._before, self._after = spec.before, spec.after
        self._session = load_session(folder.model)
        self._output = _output(self._session, folder)
        self._inputs = frozenset(node.name for node in self._session.get_inputs())
        unknown = self._inputs - {"input_ids", "attention_mask", "token_type_ids", "position_ids"}
        if unknown:
            raise EmbeddingError(f"{folder.model} wants {', '.join(sorted(unknown))}")
        self._asking = self._make_prefix(spec, folder.query_prefix)
        self._telling = self._make_prefix(spec, folder.document_prefix)

    @property
    def name(self) -> str:
        """Recipe, kind of model and hash of its files."""
        return self._name

    @property
    def dimensions(self) -> int:
        """The length of a vector."""
        return self._folder.dimensions

    def embed(self, texts: Sequence[str]) -> list[Vectors]:
        """Vectors of texts, in their order: shape (parts, dimensions) each, unit rows."""
        return self._embed(texts, self._telling)

    def embed_query(self, text: str) -> Vector:
        """The vector of a question, shape (dimensions,): the normalised mean of its parts."""
        return mean_vector(self._embed([text], self._asking)[0])

    def query_key(self, text: str) -> Hashable:
        """The word pieces."""
        return self._asking[1].key(text)

    def _make_prefix(self, spec: TokenizerSpec, prefix: str) -> tuple[list[int], TextWindows]:
        ids = spec.prefix(prefix)
        room = self._folder.window - len(self._before) - len(self._after) - len(ids)
        if room < 1:
            raise EmbeddingError(f"the window of {self._folder.window} has no room for any text")
        return ids, TextWindows(spec.tokenizer, room)

    def _embed(self, texts: Sequence[str], way: tuple[list[int], TextWindows]) -> list[Vectors]:
        prefix, text_windows = way
        around = len(self._before) + len(prefix) + len(self._after)
        parts = text_windows.parts(texts)
        return embed_parts(parts, around, lambda batch: self._run(batch, prefix))

    def _run(self, batch: Sequence[Sequence[int]], prefix: Sequence[int]) -> Vectors:
        sequences = [[*self._before, *prefix, *part_ids, *self._after] or [0] for part_ids in batch]
        width = max(map(len, sequences))
        ids = np.full((len(batch), width), self._folder.padding, np.int64)
        mask = np.zeros((len(batch), width), np.int64)
        for row, part_ids in enumerate(sequences):
            ids[row, : len(part_ids)] = part_ids
            mask[row, : len(part_ids)] = 1
        possible_inputs = {
            "input_ids": ids,
            "attention_mask": mask,
            "token_type_ids": np.zeros_like(ids),
            "position_ids": np.broadcast_to(np.arange(width), ids.shape).astype(np.int64),
        }
        feed = {name: possible_inputs[name] for name in self._inputs}
        hidden = np.asarray(run_session(self._session, feed, self._output), np.float32)
        if hidden.ndim == 3:
            pooling_mask = mask.astype(np.float32)
            if prefix and not self._folder.pools_prefix:
                pooling_mask[:, len(self._before) : len(self._before) + len(prefix)] = 0.0
            hidden = POOLINGS[self._folder.pooling](hidden, pooling_mask)
        return unit_rows(hidden)


def _output(session: Any, folder: ModelFolder) -> str:
    names = [node.name for node in session.get_outputs()]
    output = next((name for name in _PLACES if name in names), names[0] if names else None)
    if output is None:
        raise EmbeddingError(f"{folder.model} gives nothing")
    return output


def _steps(path_: Path, root: Path) -> dict[str, str]:
    """The steps of the model, in order, each with the folder of its description."""
    modules = _json(root / "modules.json", None)
    if not isinstance(modules, list):
        raise _refused(path_, "it has no modules.json: not a sentence-transformers folder")
    steps: dict[str, str] = {}
    for module in modules:
        step = str(module.get("type", "")).rpartition(".")[2] if isinstance(module, dict) else ""
        if step not in _STEPS or step in steps:
            raise _refused(
                path_, f"its modules.json asks for {step or module!r}, which is not known"
            )
        steps[step] = str(module.get("path", ""))
    return steps


def _pooling(path_: Path, root: Path, steps: Mapping[str, str]) -> tuple[str, int, bool]:
    config = _json(root / steps.get("Pooling", "1_Pooling") / "config.json", None)
    if not isinstance(config, dict):
        raise _refused(path_, "it does not say how to pool (1_Pooling/config.json)")
    dimensions = config.get("word_embedding_dimension", config.get("embedding_dimension"))
    mode = config.get("pooling_mode")
    names = (name for name, on in config.items() if name.startswith("pooling_mode_") and on is True)
    modes = [
        name.removeprefix("pooling_mode_").removesuffix("_tokens").removesuffix("_token")
        for name in names
    ]
    if isinstance(mode, str):
        modes = [mode]
    if len(modes) != 1 or modes[0] not in POOLINGS:
        raise _refused(path_, f"one pooling of {', '.join(POOLINGS)} was expected, not {modes}")
    if not isinstance(dimensions, int) or dimensions < 1:
        raise _refused(path_, "1_Pooling/config.json does not say how long a vector is")
    return modes[0], dimensions, config.get("include_prompt") is not False


def _prompt(config: Mapping[str, Any], names: Sequence[str]) -> str:
    prompts = config.get("prompts")
    if not isinstance(prompts, dict):
        return ""
    candidates = (*names, str(config.get("default_prompt_name") or ""))
    return next((str(prompts[name] or "") for name in candidates if name in prompts), "")


def _model(path_: Path, root: Path) -> Path:
    for name in _MODELS:
        if (root / name).is_file():
            return root / name
    candidates = sorted([*root.glob("*.onnx"), *root.glob("onnx/*.onnx")])
    if len(candidates) == 1:
        return candidates[0]
    names = ", ".join(str(path.relative_to(root)) for path in candidates)
    raise _refused(path_, f"name one of its ONNX files: {names}" if names else "it holds no ONNX")


def _json(path: Path, missing: Any) -> Any:
    try:
        return json.loads(path.read_bytes())
    except FileNotFoundError:
        return missing
    except (OSError, ValueError) as error:
        raise InvalidInput("embedder", str(path), f"it cannot be read: {error}") from error


def _refused(path: Path, why: str) -> InvalidInput:
    return InvalidInput("embedder", str(path), why)
