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


def resolve_server_path(locations: Mapping[str, Path], location: str) -> list[ServerFile]:
    """Return the file or files that `alias:path` names, below the folder that `locations` has for the alias.

    Raises InvalidInputError for an unknown alias, a path that leaves the folder, also by links, and a missing file.
    """
    alias, colon, path = location.partition(":")
    if not colon or alias not in locations:
        known = ", ".join(f"{name}:" for name in sorted(locations)) or _("none")
        raise InvalidInputError(
            _("Name a file as alias:path. Configured here: %(known)s (locations).") % {"known": known}
        )
    try:
        root = locations[alias].resolve(strict=True)
    except OSError as error:
        raise InvalidInputError(_("The folder of %(alias)s: does not exist.") % {"alias": alias}) from error
    relative_path = Path(path)
    if relative_path.is_absolute() or ".." in relative_path.parts:
        sentence = _("%(asked)s should be a path below %(alias)s:, without .. and without a leading slash.")
        raise InvalidInputError(sentence % {"asked": location, "alias": alias})
    files = _list_files(root, root / relative_path, location)
    return [ServerFile(f"{alias}/{file.relative_to(root)}", file) for file in files]


def list_server_folder(path: Path) -> list[ServerFile]:
    """Return the file at `path`, or the files of the folder. Raises InvalidInputError if there is none."""
    try:
        resolved = path.resolve(strict=True)
    except OSError as error:
        raise _not_readable(str(path), error) from error
    if not resolved.is_dir():
        return [ServerFile(path.name, resolved)]
    files = _list_files(resolved, resolved, str(path))
    return [ServerFile(f"{resolved.name}/{file.relative_to(resolved)}", file) for file in files]


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
            raise InvalidInputError(_("%(name)s is not a regular file.") % {"name": found.name})
        yield File(stream, name=found.name)


def _not_readable(name: str, error: OSError) -> InvalidInputError:
    reason = (error.strerror or str(error)).lower()
    return InvalidInputError(_("%(name)s cannot be read: %(reason)s.") % {"name": name, "reason": reason})


def _list_files(root: Path, target: Path, location: str) -> list[Path]:
    """Return the file, or the files of the folder sorted by name, without hidden files and links.

    Raises InvalidInputError for a path that is missing, outside `root` or without files.
    """
    try:
        resolved = target.resolve(strict=True)
    except (OSError, ValueError) as error:
        raise InvalidInputError(_("There is nothing at %(path)s.") % {"path": location}) from error
    if not resolved.is_relative_to(root):
        raise InvalidInputError(_("%(path)s is outside its folder.") % {"path": location})
    if not resolved.is_dir():
        return [resolved]
    found: list[Path] = []
    for folder, folders, files in os.walk(resolved):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        paths = [Path(folder) / name for name in sorted(files) if not name.startswith(".")]
        found += [path for path in paths if not path.is_symlink()]
    if not found:
        raise InvalidInputError(_("There are no files in %(path)s.") % {"path": location})
    return found
