"""Find and open files on the server, in configured folders or at a path given to a command."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from django.core.files import File
from django.utils.translation import gettext as _

from memory.errors import InvalidInputError


@dataclass(frozen=True, slots=True)
class ServerFile:
    """A file and its document name."""

    name: str
    path: Path


def resolve_server_path(locations: Mapping[str, Path], asked: str) -> list[ServerFile]:
    """Return the file or files that `alias:path` names, below the folder that `locations` has for the alias.

    Raises InvalidInputError for an unknown alias, a path that leaves the folder, also by links, and a missing file.
    """
    alias, colon, path = asked.partition(":")
    if not colon or alias not in locations:
        known = ", ".join(f"{name}:" for name in sorted(locations)) or _("none")
        raise InvalidInputError(
            _("Name a file as alias:path. Configured here: %(known)s (locations).") % {"known": known}
        )
    try:
        root = locations[alias].resolve(strict=True)
    except OSError as error:
        raise InvalidInputError(_("The folder of %(alias)s: is not there.") % {"alias": alias}) from error
    wanted = Path(path)
    if wanted.is_absolute() or ".." in wanted.parts:
        said = _("%(asked)s should be a path below %(alias)s:, without .. and without a leading slash.")
        raise InvalidInputError(said % {"asked": asked, "alias": alias})
    found = [ServerFile(f"{alias}/{each.relative_to(root)}", each) for each in _below(root, root / wanted, asked)]
    if not found:
        raise InvalidInputError(_("There are no files in %(path)s.") % {"path": asked})
    return found


def list_server_folder(path: Path) -> list[ServerFile]:
    """Return the file at `path`, or the files of the folder. Raises InvalidInputError if there is none."""
    try:
        there = path.resolve(strict=True)
    except OSError as error:
        raise _not_readable(str(path), error) from error
    if not there.is_dir():
        return [ServerFile(path.name, there)]
    found = [ServerFile(f"{there.name}/{each.relative_to(there)}", each) for each in _below(there, there, str(path))]
    if not found:
        raise InvalidInputError(_("There are no files in %(path)s.") % {"path": path})
    return found


@contextmanager
def open_server_file(found: ServerFile) -> Iterator[File[bytes]]:
    """Open the file. Raises InvalidInputError if it is not a regular file or cannot be read."""
    try:
        # Without these flags a pipe would block forever, and a file replaced by a link would be followed.
        handle = os.open(found.path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError as error:
        raise _not_readable(found.name, error) from error
    with os.fdopen(handle, "rb") as stream:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise InvalidInputError(_("%(name)s is no ordinary file.") % {"name": found.name})
        yield File(stream, name=found.name)


def _not_readable(name: str, error: OSError) -> InvalidInputError:
    reason = (error.strerror or str(error)).lower()
    return InvalidInputError(_("%(name)s cannot be read: %(reason)s.") % {"name": name, "reason": reason})


def _below(root: Path, wanted: Path, asked: str) -> Iterator[Path]:
    """Yield the file, or the files of the folder sorted by name, without hidden files and links."""
    try:
        there = wanted.resolve(strict=True)
    except (OSError, ValueError) as error:
        raise InvalidInputError(_("There is nothing at %(path)s.") % {"path": asked}) from error
    if not there.is_relative_to(root):
        raise InvalidInputError(_("%(path)s leads out of its folder.") % {"path": asked})
    if not there.is_dir():
        yield there
        return
    for folder, folders, files in os.walk(there):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(files):
            path = Path(folder) / name
            if not name.startswith(".") and not path.is_symlink():
                yield path
