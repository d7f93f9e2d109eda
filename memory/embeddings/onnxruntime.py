"""The one way to onnxruntime: its packages report to their maker unless they are told not to before they are loaded."""

from __future__ import annotations

import os
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from onnxruntime import InferenceSession  # type: ignore[import-untyped]

__all__ = ["InferenceSession", "load_onnxruntime"]


def load_onnxruntime() -> ModuleType:
    """The module onnxruntime, which sends nothing anywhere, makes no identifier and keeps no events on the disk."""
    os.environ["ORT_DISABLE_TELEMETRY"] = "1"
    import onnxruntime

    module: ModuleType = onnxruntime
    return module
