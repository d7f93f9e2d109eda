"""The installed multilingual-e5-small: its folder, and the hashes of its files."""

from __future__ import annotations

import hashlib
import sys
from pathlib import Path

import numpy as np

NAME = "multilingual-e5-small"
MAX_TOKENS = 512
LANGUAGE_DIRECTIONS = "language_directions.npy"
# SHA-256 of the converted files.
FILES = {
    "config.json": "c8afec2589b8f8ad8ac2637e28bac081dd936d21813c1b7e211771b51784cf40",
    "config_sentence_transformers.json": "60d79f2338873809d064b8548d64d4c588f1a1d7325085b9c21d6a945e88eba9",
    "sentence_bert_config.json": "d51f4982a6db295ccc6436d007e2feea03d22e219f165375e74e8ee4f085b80e",
    "model.onnx": "d5d82e967b11c84afadfbc2db28fa1a680757556e9007c0febeac5f4e7fd2fde",
    "model.onnx_data": "1b6e023dd65466439ec9331ec5c13cb251242498b921c4ca4b9577cc78c6085a",
    "sentencepiece.bpe.model": "c8fff814e29a69369eb8cf3bfacd6fd8423c3f86439bf1db0c1fab18092ec724",
}


class ModelFileError(Exception):
    """The weights are missing, damaged or of another version."""


def folder() -> Path:
    """Return the folder of the installed model, below the prefix of the Python environment."""
    return Path(sys.prefix) / "share" / "cato" / NAME


def verify(path: Path) -> None:
    """Compare the files of a converted model with their hashes. Raises ModelFileError."""
    for name, expected in FILES.items():
        try:
            with (path / name).open("rb") as file:
                digest = hashlib.file_digest(file, "sha256").hexdigest()
        except OSError as error:
            raise ModelFileError(f"{path / name} cannot be read: {error.strerror}") from error
        if digest != expected:
            raise ModelFileError(f"{path / name} is damaged")
    # These are computed at installation, so that their last digits depend on the machine.
    try:
        np.load(path / LANGUAGE_DIRECTIONS)
    except (OSError, ValueError) as error:
        raise ModelFileError(f"{path / LANGUAGE_DIRECTIONS} cannot be read") from error
