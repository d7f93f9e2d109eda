"""Files on disk that are there after a loss of power, once they were said to be kept."""

from __future__ import annotations

import os
from pathlib import Path

from django.core.files import File
from django.core.files.storage import FileSystemStorage


class DurableStorage(FileSystemStorage):
    """Django's folder of files, each written through to the disk before its name is known."""

    def _save(self, name: str, content: File[bytes]) -> str:
        kept: str = super()._save(name, content)  # type: ignore[misc]
        path = Path(self.path(kept))
        for each, flags in ((path, os.O_RDONLY), (path.parent, os.O_RDONLY | os.O_DIRECTORY)):
            handle = os.open(each, flags)
            try:
                os.fsync(handle)
            finally:
                os.close(handle)
        return kept
