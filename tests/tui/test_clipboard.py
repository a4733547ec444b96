"""Copying: the route that fits, named to the user, and never a silent failure."""

from __future__ import annotations

import asyncio
import base64
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from textual.app import App

from tui import clipboard
from tui.clipboard import OSC52_BYTES, Route, copy


class Told:
    """A terminal that remembers what it was asked to take."""

    def __init__(self) -> None:
        self.texts: list[str] = []

    def copy_to_clipboard(self, text: str) -> None:
        self.texts.append(text)


def tool(folder: Path, name: str, body: str) -> Path:
    """An executable that stands for a clipboard program."""
    file = folder / name
    file.write_text(f"#!{sys.executable}\n{body}\n")
    file.chmod(0o755)
    return file


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A PATH with nothing on it."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    return folder


TAKES = "import sys, pathlib; pathlib.Path(__file__ + '.got').write_bytes(sys.stdin.buffer.read())"


async def test_without_tmux_the_terminal_is_asked_and_the_sentence_says_it_must_allow_it():
    terminal = Told()
    copied = await copy(terminal, "notes/a.md:L3-L9", {})
    assert terminal.texts == ["notes/a.md:L3-L9"]
    assert copied.route is Route.OSC52
    assert not copied.certain
    assert copied.sentence == "copied by OSC 52: your terminal must allow it"


async def test_osc_52_leaves_through_the_driver_unwrapped():
    class Written(App[None]):
        pass

    app = Written()
    async with app.run_test():
        written: list[str] = []
        assert app._driver is not None
        app._driver.write = written.append  # type: ignore[method-assign]
        await copy(app, "Ä.md:L1-L2", {})
    encoded = base64.b64encode("Ä.md:L1-L2".encode()).decode()
    assert f"\x1b]52;c;{encoded}\a" in written
    assert not any("\x1bP" in text for text in written)


async def test_inside_tmux_the_text_goes_to_tmux(path: Path):
    fake = tool(path, "tmux", TAKES + "; pathlib.Path(__file__ + '.argv').write_text(' '.join(sys.argv[1:]))")
    terminal = Told()
    copied = await copy(terminal, "a\nb", {"TMUX": "/tmp/x,1,0", "PATH": str(path), "SSH_TTY": "/dev/pts/1"})
    assert Path(f"{fake}.got").read_text() == "a\nb"
    assert Path(f"{fake}.argv").read_text() == "load-buffer -w -"
    assert copied.route is Route.TMUX
    assert "tmux" in copied.sentence
    assert terminal.texts == []


async def test_a_tmux_that_refuses_is_named_and_the_terminal_is_asked_instead(path: Path):
    tool(path, "tmux", "import sys; sys.exit(1)")
    terminal = Told()
    copied = await copy(terminal, "x", {"TMUX": "gone", "PATH": str(path)})
    assert terminal.texts == ["x"]
    assert copied.route is Route.OSC52
    assert "tmux failed (status 1)" in copied.sentence


async def test_a_tool_that_hangs_is_given_up(path: Path, monkeypatch: pytest.MonkeyPatch):
    tool(path, "xclip", "import signal; signal.pause()")
    monkeypatch.setattr(clipboard, "TOOL_SECONDS", 0.3)
    terminal = Told()
    copied = await asyncio.wait_for(copy(terminal, "x", {"DISPLAY": ":9", "PATH": str(path)}), 5)
    assert terminal.texts == ["x"]
    assert "no answer" in copied.sentence


async def test_a_display_tool_is_used_at_the_desk_but_not_over_ssh(path: Path):
    fake = tool(path, "wl-copy", TAKES)
    at_desk = {"WAYLAND_DISPLAY": "wayland-0", "PATH": str(path)}
    assert (await copy(Told(), "here", at_desk)).sentence == "copied by wl-copy"
    assert Path(f"{fake}.got").read_text() == "here"
    terminal = Told()
    assert (await copy(terminal, "there", at_desk | {"SSH_CONNECTION": "1 2 3 4"})).route is Route.OSC52
    assert terminal.texts == ["there"]


async def test_more_than_terminals_take_is_said():
    copied = await copy(Told(), "x" * (OSC52_BYTES + 1), {})
    assert "more than many terminals take" in copied.sentence


async def test_text_that_is_not_unicode_is_copied_as_well_as_can_be():
    terminal = Told()
    await copy(terminal, "bad\udcff.md:L1-L1", {})
    assert terminal.texts == ["bad?.md:L1-L1"]


@pytest.mark.skipif(shutil.which("tmux") is None, reason="tmux is not installed")
async def test_a_real_tmux_server_holds_the_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    socket = tmp_path / "s"
    monkeypatch.delenv("TMUX", raising=False)
    tmux = ["tmux", "-f", os.devnull, "-S", str(socket)]
    subprocess.run([*tmux, "new-session", "-d", "-x", "80", "-y", "24", "cat"], check=True)
    try:
        monkeypatch.setenv("TMUX", f"{socket},0,0")
        copied = await copy(Told(), "notes/a.md:L3-L9\nb.md:L1-L1")
        assert copied.route is Route.TMUX
        shown = subprocess.run([*tmux, "show-buffer"], check=True, capture_output=True, text=True)
        assert shown.stdout == "notes/a.md:L3-L9\nb.md:L1-L1"
    finally:
        subprocess.run([*tmux, "kill-server"], check=True)
