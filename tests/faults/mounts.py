"""File systems of a test's own: mounted for it, and unmounted whatever becomes of it."""

from __future__ import annotations

import os
import shutil
import subprocess
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


def mount(*arguments: str) -> None:
    subprocess.run(["mount", *arguments], check=True, capture_output=True)


def unmount(folder: Path) -> None:
    """Take it away even where a file of it is open: a pulled plug does not ask."""
    subprocess.run(["umount", "--lazy", str(folder)], check=True, capture_output=True)


@cache
def refusal() -> str:
    """Why nothing can be mounted here; empty when it can."""
    if os.geteuid() != 0:
        return "only root can mount"
    if shutil.which("unshare") is None:
        return "there is no unshare to try it with"
    command = ["unshare", "-m", "mount", "-t", "tmpfs", "tmpfs", "/mnt"]
    tried = subprocess.run(command, check=False, capture_output=True, text=True)
    return tried.stderr.strip()


@pytest.fixture
def may_mount() -> None:
    if refusal():
        pytest.skip(f"no file system can be mounted: {refusal()}")


@contextmanager
def mounted(folder: Path, *arguments: str) -> Iterator[None]:
    """Something mounted at `folder`, until the end or until the test unmounts it itself."""
    folder.mkdir(parents=True, exist_ok=True)
    mount(*arguments, str(folder))
    try:
        yield
    finally:
        if os.path.ismount(folder):
            unmount(folder)
