"""Errors of backup and restore."""

from __future__ import annotations


class BackupError(Exception):
    """Base of these errors."""


class BackupWriteError(BackupError):
    """The file cannot be written, or the database is not of this version. Nothing was written."""


class RestoreError(BackupError):
    """The installation is not empty, cannot be written, or the backup is of a newer Cato. No data was changed."""


class CorruptBackupError(BackupError):
    """The file is not a backup, or incomplete. Nothing was changed."""

    def __init__(self, reason: str) -> None:
        super().__init__(f"This is not a complete backup: {reason}. Nothing was changed.")
