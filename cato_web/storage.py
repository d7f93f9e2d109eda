"""File storage that survives a loss of power."""

from __future__ import annotations

import os
from pathlib import Path

from django.core.files import File
from django.core.files.storage import FileSystemStorage


class DurableStorage(FileSystemStorage):
    """Django's file storage, synced to disk before a file's name is returned."""

    def _save(self, name: str, content: File[bytes]) -> str:
        saved_name: str = super()._save(name, content)  # type: ignore[misc]
        path = Path(self.path(saved_name))
        for target, flags in ((path, os.O_RDONLY), (path.parent, os.O_RDONLY | os.O_DIRECTORY)):
            handle = os.open(target, flags)
            try:
                os.fsync(handle)
            finally:
                os.close(handle)
        return saved_name
