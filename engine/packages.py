"""The packages that nothing works without: which of them are missing, and what to run then.

It imports none of them, so that it can say so.
"""

from __future__ import annotations

import importlib
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from engine.errors import PackageMissing

if TYPE_CHECKING:
    from types import ModuleType

NEEDED = {
    "click": "click",
    "textual": "textual",
    "psycopg": "psycopg",
    "psycopg_pool": "psycopg-pool",
    "watchfiles": "watchfiles",
    "platformdirs": "platformdirs",
    "pathspec": "pathspec",
    "numpy": "numpy",
    "dotenv": "python-dotenv",
    "psutil": "psutil",
    "Stemmer": "PyStemmer",
    "detect_secrets": "detect-secrets",
}
"""Packages by the modules they are imported as. The others are missed by one database or one model, which
say so themselves.
"""

_OURS = {"engine", "tui", "prompts"}
_ROOT = Path(__file__).parents[1]


def check() -> None:
    """See that they are all there.

    Raises:
        PackageMissing: some are not; it names every one of them.
    """
    missing = [name for module, name in NEEDED.items() if find_spec(module) is None]
    if missing:
        raise _lacking(missing)


def explained(error: ModuleNotFoundError) -> PackageMissing | None:
    """What to say of a failed import; None when it is no package that is missing, but a module of ours."""
    wanted = (error.name or "").partition(".")[0]
    if not wanted or wanted in _OURS or wanted in sys.stdlib_module_names or find_spec(wanted) is not None:
        return None
    try:
        check()
    except PackageMissing as missing:
        if wanted in NEEDED:
            return missing
    return _lacking([wanted])


def install(extra: str) -> str:
    """What to run for an extra. Never by the project's name alone: an index may have another's under it."""
    if (_ROOT / "pyproject.toml").is_file():
        return f"Run `pip install '.[{extra}]'` in {_ROOT}."
    return f"Install Noctuary again with its extra {extra}: `pip install '.[{extra}]'` where you cloned it."


def require(module: str, extra: str) -> ModuleType:
    """A module that an extra brings.

    Raises:
        PackageMissing: it is not installed.
    """
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != module:
            raise
        raise PackageMissing(f"The package {module} is not installed.", remedy=install(extra)) from error


def _lacking(names: list[str]) -> PackageMissing:
    are = "is" if len(names) == 1 else "are"
    cloned = (_ROOT / "pyproject.toml").is_file()
    return PackageMissing(
        f"Noctuary needs {', '.join(names)}, which {are} not installed for {sys.executable}.",
        remedy=f"Run `pip install .` in {_ROOT}." if cloned else "Install Noctuary again with pip.",
    )
