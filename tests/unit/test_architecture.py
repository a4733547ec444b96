"""The border between engine and screen, and the arrows of the design."""

from __future__ import annotations

import ast
import pkgutil
import subprocess
import sys
from pathlib import Path

import pytest

import engine
import tui

ROOT = Path(__file__).parents[2]
TOOLKITS = ("textual", "rich")
MODULES = sorted(
    ["engine", *(found.name for found in pkgutil.walk_packages(engine.__path__, prefix="engine."))]
)


def _imported(statement: str) -> set[str]:
    """The modules a fresh interpreter holds after a statement."""
    code = f"import sys\n{statement}\nprint(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, check=True, capture_output=True, text=True, timeout=60
    )
    return set(done.stdout.split())


def test_the_engine_and_each_of_its_modules_live_without_a_terminal_toolkit() -> None:
    assert len(MODULES) > 30
    loaded = _imported("\n".join(f"import {name}" for name in MODULES))
    assert set(MODULES) <= loaded
    assert loaded.isdisjoint(TOOLKITS)
    assert "tui" not in loaded


@pytest.mark.parametrize(
    "heavy",
    [
        "textual",
        "rich",
        "numpy",
        "onnxruntime",
        "psycopg",
        "watchfiles",
        "tokenizers",
        "fastapi",
        "uvicorn",
        "pydantic",
    ],
)
def test_the_command_line_starts_without_what_only_some_commands_need(heavy: str) -> None:
    statement = (
        "from click.testing import CliRunner; from engine.doors.cli import group; "
        "assert CliRunner().invoke(group, ['version']).exit_code == 0; import tui.main"
    )
    assert heavy not in _imported(statement)


def test_the_arrows_of_the_design_hold() -> None:
    lint = Path(sys.executable).with_name("lint-imports")
    done = subprocess.run(
        [lint, "--no-cache"], cwd=ROOT, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stdout
    assert "0 broken" in done.stdout


@pytest.mark.parametrize("package", [engine, tui], ids=["engine", "tui"])
def test_every_module_says_why_it_exists_and_none_is_a_heap(package: object) -> None:
    (folder,) = package.__path__  # type: ignore[attr-defined]
    for path in Path(folder).rglob("*.py"):
        source = path.read_text(encoding="utf-8")
        assert ast.get_docstring(ast.parse(source)), f"{path} has no docstring"
        assert source.count("\n") < 400, f"{path} is too long"


def test_no_file_of_the_product_asks_for_errors_to_be_overlooked() -> None:
    for folder in (ROOT / "engine", ROOT / "tui", ROOT / "prompts"):
        for path in folder.rglob("*.py"):
            assert "type: ignore" not in path.read_text(encoding="utf-8"), path
