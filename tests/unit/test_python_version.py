"""From a clone, an older Python is told so in one sentence."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from engine.doors import exits

ROOT = Path(__file__).parents[2]
OLDER = sorted(Path.home().glob(".pyenv/versions/3.[89].*/bin/python")) + sorted(
    Path.home().glob(".pyenv/versions/3.10.*/bin/python")
)
AS_IF_OLDER = "import runpy, sys; sys.version_info = (3, 10, 1); runpy.run_module('tui', run_name='__main__')"


def told(*command: str) -> str:
    done = subprocess.run(
        [*command], cwd=ROOT, capture_output=True, text=True, timeout=60, check=False,
        env={"PYTHONDONTWRITEBYTECODE": "1"},
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (exits.ERROR, "")
    return done.stderr


def test_a_version_that_is_too_old_is_one_sentence() -> None:
    (line,) = told(sys.executable, "-c", AS_IF_OLDER).splitlines()
    assert line.startswith("Noctuary needs Python 3.11 or later; this is ")


@pytest.mark.skipif(not OLDER, reason="no Python before 3.11 is installed here by pyenv")
def test_an_older_python_gets_as_far_as_that_sentence() -> None:
    for python in OLDER:
        version = python.parents[1].name
        assert told(str(python), "-m", "tui", "version") == (
            f"Noctuary needs Python 3.11 or later; this is {version}.\n"
        )
