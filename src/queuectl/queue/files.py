"""Files that people name for us to write."""

from __future__ import annotations

from queuectl.errors import Conflict, Unavailable


class FileExists(Conflict):
    code = "file-exists"

    def __init__(self, path: str) -> None:
        super().__init__(f"there is a file {path} already", hint="name a new one: nothing is ever written over")


class FileUnwritable(Unavailable):
    code = "file-unwritable"

    def __init__(self, path: str, problem: str) -> None:
        super().__init__(
            f"cannot write {path}: {problem}", hint="check the directory, who may write there, and the disk"
        )
