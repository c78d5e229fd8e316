"""Say of a model in the way that sentence-transformers folders do how it is used.

A folder with `model.onnx` and `tokenizer.json` comes in; what lies beside them is written: mean
over the word pieces, unit length, the window. With it the product takes the folder as any other
(`--embedder ./FOLDER`), and so do other programs.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

_STEPS: Final = (("Transformer", ""), ("Pooling", "1_Pooling"), ("Normalize", "2_Normalize"))


def describe(folder: Path, *, dimensions: int, window: int) -> None:
    """Write the description of a BERT with mean pooling."""
    said: dict[str, Any] = {
        "modules.json": [
            {
                "idx": at,
                "name": str(at),
                "path": path,
                "type": f"sentence_transformers.models.{step}",
            }
            for at, (step, path) in enumerate(_STEPS)
        ],
        "config.json": {"model_type": "bert", "pad_token_id": 0, "hidden_size": dimensions},
        "sentence_bert_config.json": {"max_seq_length": window, "do_lower_case": False},
        "1_Pooling/config.json": {
            "word_embedding_dimension": dimensions,
            "pooling_mode_mean_tokens": True,
        },
    }
    for name, content in said.items():
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(content, indent=1) + "\n", "utf-8")
