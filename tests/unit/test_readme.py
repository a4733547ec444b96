"""The README is true: every command, option, setting and key is in it, and its commands are the real ones."""

from __future__ import annotations

import re
import shlex
import tomllib
from pathlib import Path

import click
import pytest

from engine.doors.cli import COMMANDS, group
from engine.notes.labelled import parse
from engine.settings import Settings
from engine.version import VERSION
from tui.actions import REGISTRY
from tui.keymap import Keymap

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
CONTEXT = click.Context(group)
LATER_PANES = {"app.pane-5", "app.pane-6", "app.pane-7"}
EXPLAINED_BY_THEIR_DIALOG = {"folders", "dialog", "confirm", "ask"}


def section(title: str) -> str:
    found = re.search(rf"^## {title}\n(.*?)(?=^## |\Z)", README, re.MULTILINE | re.DOTALL)
    assert found, title
    return found[1]


def row(name: str) -> str:
    """The line of the table of commands that is about a command."""
    (line,) = [line for line in section("Commands").splitlines() if line.startswith(f"| `noctuary {name}")]
    return line


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_and_option_is_documented(name: str) -> None:
    command = group.get_command(CONTEXT, name)
    assert command is not None
    for parameter in command.params:
        if getattr(parameter, "hidden", False):
            continue
        for option in parameter.opts if isinstance(parameter, click.Option) else []:
            assert option == "--json" or f"`{option}" in row(name), option
    if isinstance(command, click.Group):
        for verb in command.commands:
            assert f"`noctuary {name} {verb}" in row(name)


def test_every_command_that_is_documented_exists() -> None:
    named = set(re.findall(r"`noctuary ([a-z-]+)", README))
    assert named <= {*COMMANDS, "open"}
    options = set(re.findall(r"--[a-z][a-z-]+", section("Commands")))
    known = {"--help", "--json", "--version"}
    for name in COMMANDS:
        command = group.get_command(CONTEXT, name)
        assert command is not None
        for parameter in command.params:
            known |= {*parameter.opts, *parameter.secondary_opts}
    assert options <= known


def test_the_table_of_settings_and_what_config_shows_agree() -> None:
    rows = [line.split("|") for line in section("Settings").splitlines() if line.startswith("| `")]
    told = {cells[1].strip().strip("`"): cells[2].strip().replace("`", "") for cells in rows}
    assert len(told) == len(rows)
    real = Settings().rows()
    assert told == {
        setting.name if setting.name == "keys" else setting.variable: setting.default for setting in real
    }
    for setting in real:
        assert setting.source == "default"
        assert setting.value == setting.default or setting.name == "editor"


def test_every_key_is_documented() -> None:
    keymap = Keymap({})
    text = section("Keys")
    for action in REGISTRY.values():
        if action.scope not in EXPLAINED_BY_THEIR_DIALOG and action.id not in LATER_PANES:
            assert f"`{keymap.shown(action.id)}`" in text, action.id


def test_the_example_of_keys_is_a_valid_one() -> None:
    (example,) = re.findall(r"```toml\n(.*?)```", section("Keys"), re.DOTALL)
    tables = tomllib.loads(example)["keys"]
    flat = {f"{scope}.{verb}": keys for scope, verbs in tables.items() for verb, keys in verbs.items()}
    assert Keymap(flat).keys("list.copy") == ("y", "C")


def test_the_example_of_questions_is_a_valid_one() -> None:
    (example,) = re.findall(r"```json\n(.*?)```", section("Models"), re.DOTALL)
    assert [question.id for question in parse(example.encode(), "README.md")] == ["owls", "cup"]


def test_there_are_exactly_two_commands_to_start_with() -> None:
    commands = re.findall(r"```sh\n(.*?)```", section("Start"), re.DOTALL)
    assert len(commands) == 2
    assert all(command.count("\n") == 1 for command in commands)
    assert shlex.split(commands[0])[-2:] == [".venv/bin/noctuary", "~/notes"]
    assert shlex.split(commands[1])[-1] == ".venv/bin/pytest"
    marker = (ROOT / ".ci/run").read_text(encoding="utf-8")
    assert "<!-- test command -->" in marker
    assert f"<!-- test command -->\n```sh\n{commands[1]}```" in README


def test_the_benchmarks_are_where_it_says() -> None:
    (command,) = re.findall(r"`python -m (pytest [^`]+)`", README)
    words = shlex.split(command)
    assert words[:3] == ["pytest", "-m", "benchmark"]
    files = list((ROOT / words[-1]).glob("test_*.py"))
    assert files
    assert all("pytest.mark.benchmark" in file.read_text(encoding="utf-8") for file in files)


def test_the_pictures_are_there() -> None:
    for picture in re.findall(r"\]\((screenshots/[^)]+)\)", README):
        assert (ROOT / picture).is_file(), picture


def test_the_changelog_tells_of_this_version() -> None:
    assert f"\n## {VERSION}\n" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
