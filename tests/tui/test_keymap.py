"""One registry: every action has keys, an owner and a way to be reached; keymaps are data."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from engine.errors import SettingsError
from tests.tui.desk import NOTES, desk, write
from tui.actions import REGISTRY, SCOPES, Actor
from tui.keymap import DEFAULTS, INSTEAD, Keymap
from tui.panes import PANES
from tui.panes.list_pane import ListPane
from tui.screens.add_folder import AddFolder
from tui.screens.ask_line import AskLine
from tui.screens.dialog import Confirm, TextDialog
from tui.screens.eval import EvalScreen
from tui.screens.folders import FoldersScreen
from tui.screens.help import help_text
from tui.screens.main import MainScreen
from tui.screens.palette import Palette

if TYPE_CHECKING:
    from pathlib import Path

    from engine.settings import Settings

OWNERS: dict[str, list[type]] = {
    "app": [MainScreen],
    "list": [*PANES],
    "dialog": [TextDialog, FoldersScreen, EvalScreen],
    "folders": [FoldersScreen],
    "eval": [EvalScreen],
    "confirm": [Confirm],
    "ask": [AddFolder, AskLine, Palette],
    **{pane.scope: [pane] for pane in PANES},
}


def _bound(owner: type) -> dict[str, set[str]]:
    """Keys by action id among the bindings of a class."""
    found: dict[str, set[str]] = {}
    for binding in owner._merged_bindings:  # type: ignore[attr-defined]
        _, one = binding
        if one.id:
            found.setdefault(one.id, set()).add(one.key)
    return found


def test_every_action_has_keys_and_every_key_an_action():
    assert set(DEFAULTS) == set(REGISTRY)
    assert {action.scope for action in REGISTRY.values()} <= set(SCOPES)


@pytest.mark.parametrize("action", REGISTRY.values(), ids=lambda action: action.id)
def test_every_action_is_bound_where_it_is_answered(action):
    keymap = Keymap({})
    for owner in OWNERS[action.scope]:
        assert callable(getattr(owner, action.method, None)), f"{owner.__name__} has no {action.method}"
        own = [
            each for each, other in INSTEAD.items() if other == action.id and owner in OWNERS[_scope(each)]
        ]
        taken = {key for each in own for key in keymap.keys(each)}
        assert _bound(owner).get(action.id, set()) == set(keymap.keys(action.id)) - taken


def _scope(action: str) -> str:
    return REGISTRY[action].scope


def test_a_key_that_a_pane_has_for_itself_is_that_of_every_list_elsewhere():
    assert all(REGISTRY[own].scope not in {"app", "list"} for own in INSTEAD)
    assert all(REGISTRY[lists].scope == "list" for lists in INSTEAD.values())
    with pytest.raises(SettingsError, match="is given to both"):
        Keymap({"lessons.pin": "n"})


@pytest.mark.parametrize("pane", PANES, ids=lambda pane: pane.scope)
def test_a_footer_has_at_most_six_hints_of_actions_that_its_pane_answers(pane):
    assert 1 <= len(pane.hints) <= 5  # and `?`
    assert all(REGISTRY[hint].scope in {"app", "list", pane.scope} for hint in pane.hints)


@pytest.mark.parametrize(
    "action", [a for a in REGISTRY.values() if a.scope == "list"], ids=lambda action: action.id
)
async def test_a_key_of_a_list_reaches_its_action(settings: Settings, action, monkeypatch):
    reached = []
    async with desk(settings) as screen:
        monkeypatch.setattr(Actor, "action_act", lambda self, name: reached.append(name))
        await screen.press(*Keymap({}).keys(action.id))
    assert reached == [action.id] * len(Keymap({}).keys(action.id))


@pytest.mark.parametrize(
    "pane", [pane for pane in PANES if issubclass(pane, ListPane)], ids=lambda pane: pane.scope
)
async def test_every_key_of_a_pane_and_of_everywhere_reaches_its_action(
    settings: Settings, pane, monkeypatch
):
    actions = [action for action in REGISTRY.values() if action.scope in {pane.scope, "app"}]
    reached: list[str] = []
    async with desk(settings) as screen:
        await screen.press(str(pane.number))
        monkeypatch.setattr(Actor, "action_act", lambda self, name: reached.append(name))
        for action in actions:
            await screen.pilot.press(*Keymap({}).keys(action.id))
    assert set(reached) == {action.id for action in actions}


def test_the_help_tells_every_action_with_its_keys_and_its_id():
    keymap = Keymap({"jobs.retry": "z"})
    text = help_text(keymap, "jobs", 112).plain
    for action in (action for action in REGISTRY.values() if action.listed):
        line = next(line for line in text.splitlines() if line.endswith(f" {action.id}"))
        assert action.help in line
        assert line.startswith(keymap.shown_all(action.id))
    assert text.startswith("Jobs\n")


@pytest.mark.parametrize("width", [71, 85, 91, 115])
def test_the_help_fits_its_width(width: int):
    assert max(len(line) for line in help_text(Keymap({}), "jobs", width).plain.splitlines()) <= width


def test_the_help_tells_only_of_what_there_is():
    assert "later" not in help_text(Keymap({}), "jobs", 112).plain


async def test_the_palette_runs_any_command_of_the_pane_by_name(settings: Settings, tmp_path: Path):
    async with desk(settings, write(tmp_path / "vault", NOTES)) as screen:
        await screen.press("3", "colon")
        await screen.type("next status")
        assert "Show the next status" in screen.text
        await screen.press("enter")
        assert "[○ pending 0]" in screen.text
        await screen.press("colon")
        await screen.type("drift")
        await screen.press("enter")
        assert "[4 Drift]" in screen.text


def test_a_key_given_to_no_action_names_the_nearest():
    with pytest.raises(SettingsError, match=r"jobs\.rety.*jobs\.retry"):
        Keymap({"jobs.rety": "x"})


@pytest.mark.parametrize("overrides", [{"jobs.retry": "q"}, {"jobs.retry": "s"}, {"list.mark": "?"}])
def test_one_key_for_two_actions_in_one_place_is_refused(overrides):
    with pytest.raises(SettingsError, match="is given to both"):
        Keymap(overrides)


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ("", "left without a key"),
        (" , ", "left"),
        ("ctrl+nokey", "is no key"),
        ("\u202e", "is no key"),
        ("ctrl+\x9b", "is no key"),
    ],
)
def test_keys_that_are_none_are_refused(keys, said):
    with pytest.raises(SettingsError, match=said):
        Keymap({"jobs.retry": keys})


def test_keys_may_be_given_as_they_are_typed():
    assert Keymap({"jobs.retry": "^, f5,ctrl+x"}).keys("jobs.retry") == ("circumflex_accent", "f5", "ctrl+x")


def test_one_key_may_serve_in_two_places():
    Keymap({"log.follow": "z", "dialog.close": "z"})


async def test_a_remapped_key_works_and_is_told_and_the_old_one_does_nothing(
    settings: Settings, tmp_path: Path
):
    remapped = replace(settings, keys={"jobs.status": "z", "app.help": "f1"})
    async with desk(remapped, write(tmp_path / "vault", NOTES)) as screen:
        await screen.press("3", "s")
        assert "[all 0]" in screen.text
        assert "z status" in screen.flash
        await screen.press("z")
        assert "[○ pending 0]" in screen.text
        await screen.press("f1")
        assert "Show the next status" in screen.text
