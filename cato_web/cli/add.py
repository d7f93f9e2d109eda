"""Add files to memory from the command line, and wait until they can be found."""

from __future__ import annotations

import hashlib
import sys
import time
import uuid
from pathlib import Path
from typing import Any

from django.core.files import File
from django.core.files.base import ContentFile
from tqdm import tqdm

from memory import api as memory
from memory.api import DocumentVersion, InvalidInputError, ServerFile, Space, VectorStoreUnavailableError

_Stage = DocumentVersion.Stage


def add_files(path: Path, *, space: Space, person_id: uuid.UUID, is_quiet: bool) -> list[dict[str, Any]]:
    """Add a file, or the files of a folder with a progress bar, to a space.

    Returns for each file its name with the document's id, outcome and number of passages, or with the error. Raises
    InvalidInputError if there is no file, and VectorStoreUnavailableError if stored text can only be embedded later.
    """
    files = memory.list_server_folder(path)
    bar = tqdm(files, unit=" files", disable=True if is_quiet or len(files) == 1 else None, file=sys.stderr)
    return [_add_file(file, space, person_id) for file in bar]


def add_content(content: bytes, *, name: str | None, space: Space, person_id: uuid.UUID) -> dict[str, Any]:
    """Add a text as a document; without a name it is called by its content, so that it never replaces another text."""
    name = name or f"stdin-{hashlib.sha256(content).hexdigest()[:12]}.txt"
    return _add(ContentFile(content), name, "", space, person_id)


def _add_file(file: ServerFile, space: Space, person_id: uuid.UUID) -> dict[str, Any]:
    try:
        with memory.open_server_file(file) as content:
            return _add(content, file.name, str(file.path), space, person_id)
    except InvalidInputError as error:
        return {"name": file.name, "error": str(error)}


def _add(content: File[bytes], name: str, path: str, space: Space, person_id: uuid.UUID) -> dict[str, Any]:
    try:
        uploaded = memory.upload_document(
            content, name=name, space=space, owner_id=person_id, source="cli", source_path=path
        )
    except InvalidInputError as error:
        return {"name": name, "error": str(error)}
    version = _wait_until_live(uploaded.version)
    if version.stage != _Stage.READY:
        return {"name": name, "error": f"{name}: {version.error or 'cancelled'}"}
    outcome = "unchanged" if uploaded.is_known else "added" if version.number == 1 else f"version {version.number}"
    return {
        "name": version.document.name,
        "path": path,
        "document_id": str(version.document_id),
        "outcome": outcome,
        "passages": version.total_chunks,
    }


def _wait_until_live(version: DocumentVersion) -> DocumentVersion:
    """Process a version, possibly concurrently with workers, until it is live or has failed."""
    while version.stage in DocumentVersion.UNDER_WAY:
        memory.read_documents(limit=1)
        memory.index_pending()
        memory.publish_ready_versions()
        version.refresh_from_db()
        if version.stage in DocumentVersion.UNDER_WAY:
            if memory.is_blocked(version):
                raise VectorStoreUnavailableError(
                    "The file is stored, but could not be embedded yet. Cato tries again while it runs."
                )
            time.sleep(0.1)  # a worker is processing it
    return version
