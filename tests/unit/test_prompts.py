"""Prompts: found by version, complete, filled in once, and part of what is installed."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from engine import prompts
from engine.errors import PromptError
from engine.notes.ask import PARTS
from engine.settings import Settings

ROOT = Path(__file__).parents[2]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of prompts in the place of ours."""
    monkeypatch.setattr(prompts.resources, "files", lambda package: tmp_path)
    prompts._names.cache_clear()
    yield tmp_path
    prompts._names.cache_clear()


@pytest.mark.parametrize("version", prompts.versions("ask"))
def test_every_prompt_of_ours_is_whole(version: str) -> None:
    prompt = prompts.load(version, "ask", PARTS)
    assert "[1]" in prompt.part("system")
    assert prompt.part("unknown")


def test_the_default_version_is_there() -> None:
    assert Settings().prompt_version in prompts.versions("ask")


@pytest.mark.parametrize(
    "version",
    [
        "ask_v99",
        "",
        "ask_",
        "write_v1",
        "../ask_v1",
        "ask_v1.txt",
        "/etc/passwd",
        "ask_v1\0",
        "prompts/ask_v1",
        ".",
        "ask_v1/",
    ],
)
def test_an_unknown_version_is_an_error_that_lists_those_there_are(version: str) -> None:
    with pytest.raises(PromptError) as error:
        prompts.load(version, "ask", PARTS)
    assert "ask_v1" in error.value.remedy
    assert "write" not in error.value.remedy
    assert repr(version) in error.value.message


def test_only_prompts_of_the_kind_are_listed_and_taken(folder: Path) -> None:
    for name in ("ask_a.txt", "ask_b.txt", "write_a.txt", "ask_c.md", "__init__.py"):
        (folder / name).write_text("--- user ---\n{x}")
    assert prompts.versions("ask") == ["ask_a", "ask_b"]
    with pytest.raises(PromptError, match=r"There are: ask_a, ask_b\."):
        prompts.load("write_a", "ask", {"user": ("x",)})


@pytest.mark.parametrize(
    ("text", "lacks"),
    [
        ("--- user ---\n{question}", "no place {passages}"),
        ("--- user ---\n{passages} { question}", "no place {question}"),
        ("--- system ---\nx", "no part 'user'"),
        ("", "no part 'user'"),
        ("--- user ---\n\n--- system ---\n{passages}{question}", "no part 'user'"),
    ],
)
def test_a_prompt_that_lacks_a_part_or_a_place_is_an_error(folder: Path, text: str, lacks: str) -> None:
    (folder / "ask_x.txt").write_text(text)
    with pytest.raises(PromptError) as error:
        prompts.load("ask_x", "ask", {"user": ("passages", "question")})
    assert lacks in error.value.message


def test_what_is_filled_in_is_not_read_again(folder: Path) -> None:
    (folder / "ask_x.txt").write_text('--- user ---\n{a} {b} {"c": 1} {d}')
    prompt = prompts.load("ask_x", "ask", {"user": ("a", "b")})
    assert prompt.part("user", a="{b}", b="{a}\\1") == '{b} {a}\\1 {"c": 1} {d}'


def test_prompts_are_in_the_wheel() -> None:
    wheel = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]["targets"]["wheel"]
    assert "prompts" in wheel["packages"]
    ignored = (ROOT / ".gitignore").read_text().split()
    assert not any(line.endswith(".txt") for line in ignored), "hatch leaves out what git ignores"
