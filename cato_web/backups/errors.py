"""What can go wrong with a backup: each error is a sentence for whoever called the command.

BackupError
├── BackupWriteError   the file cannot be written, or the database is not of this version
├── RestoreError  this is no place for it: somebody is here, it runs, or the backup is of a newer Cato
└── CorruptBackupError        the file is no backup, or not all of it is there
"""

from __future__ import annotations


class BackupError(Exception):
    """The root of the tree."""


class BackupWriteError(BackupError):
    """Nothing was written."""


class RestoreError(BackupError):
    """Nothing was changed."""


class CorruptBackupError(BackupError):
    """The file cannot be believed; nothing was changed."""

    def __init__(self, why: str) -> None:
        super().__init__(f"This is not a whole backup: {why}. Nothing was changed.")
