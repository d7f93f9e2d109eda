"""Load onnxruntime with its telemetry disabled, which must happen before the import."""

from __future__ import annotations

import os
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from onnxruntime import InferenceSession  # type: ignore[import-untyped]

__all__ = ["InferenceSession", "load_onnxruntime"]


def load_onnxruntime() -> ModuleType:
    """Return the module onnxruntime, configured to send nothing and to store no identifier or events."""
    os.environ["ORT_DISABLE_TELEMETRY"] = "1"
    import onnxruntime

    module: ModuleType = onnxruntime
    return module
