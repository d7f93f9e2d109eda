"""Leave out modules that packages import by themselves and that Cato never uses: 13 MB of each process."""

from __future__ import annotations

import sys
from types import ModuleType

# The command line of httpx, with rich, and metrics of redis. Both do without them if they cannot be imported.
_OPTIONAL = ("httpx._main", "opentelemetry.sdk.metrics")
# An exporter of traces, with gRPC. Chroma's client imports it, but uses it only with a setting that Cato does not set.
_TRACE_EXPORTER, _EXPORTER_CLASS = "opentelemetry.exporter.otlp.proto.grpc.trace_exporter", "OTLPSpanExporter"


def leave_out() -> None:
    """Let these imports find nothing; has no effect on modules that were imported before."""
    # The import of a module that is None raises ImportError.
    for name in _OPTIONAL:
        sys.modules.setdefault(name, None)  # type: ignore[arg-type]
    if _TRACE_EXPORTER not in sys.modules:
        exporter = sys.modules[_TRACE_EXPORTER] = ModuleType(_TRACE_EXPORTER)
        setattr(exporter, _EXPORTER_CLASS, None)
