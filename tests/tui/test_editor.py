"""The user's editor: the right words for the line, no shell, no option out of a path, a loop that runs on."""

from __future__ import annotations

import asyncio
import json
import os
import pty
import re
import select
import signal
import sys
from pathlib import Path

import pytest
from textual.app import App

from engine.settings import Settings
from tui.editor import EditorError, arguments, command, edit, environment

NOTE = Path("/notes/a b/-x.md")


@pytest.mark.parametrize(
    ("editor", "expected"),
    [
        ("vim", ["vim", "+7", "/notes/a b/-x.md"]),
        ("nvim -R", ["nvim", "-R", "+7", "/notes/a b/-x.md"]),
        ("/usr/bin/vim.basic", ["/usr/bin/vim.basic", "+7", "/notes/a b/-x.md"]),
        ("emacs-29 -nw", ["emacs-29", "-nw", "+7", "/notes/a b/-x.md"]),
        ("nano", ["nano", "+7", "/notes/a b/-x.md"]),
        ("micro", ["micro", "+7", "/notes/a b/-x.md"]),
        ("kak", ["kak", "+7", "/notes/a b/-x.md"]),
        ("hx", ["hx", "/notes/a b/-x.md:7"]),
        ("subl --wait", ["subl", "--wait", "/notes/a b/-x.md:7"]),
        ("code --wait", ["code", "--wait", "--goto", "/notes/a b/-x.md:7"]),
        ("code-insiders", ["code-insiders", "--goto", "/notes/a b/-x.md:7"]),
        ("pycharm", ["pycharm", "--line", "7", "/notes/a b/-x.md"]),
        ("my-own-editor", ["my-own-editor", "/notes/a b/-x.md"]),
    ],
)
def test_each_editor_is_told_the_line_in_its_own_way(editor: str, expected: list[str]):
    assert arguments(editor.split(), NOTE, 7) == expected


def test_a_relative_path_with_a_dash_is_made_absolute():
    assert arguments(["vi"], Path("-c:!id.md"), 1) == ["vi", "+1", f"{Path.cwd()}/-c:!id.md"]


def test_braces_in_a_name_are_only_braces():
    assert arguments(["hx"], Path("/n/{line}{0}.md"), 3) == ["hx", "/n/{line}{0}.md:3"]


def test_a_line_is_never_below_one():
    assert arguments(["vi"], Path("/n/a.md"), 0)[1] == "+1"


def test_an_editor_that_is_not_installed_is_named_with_its_source():
    settings = Settings(editor="no-such-editor --wait", sources={"editor": "VISUAL"})
    with pytest.raises(EditorError, match=r"not installed.*'no-such-editor' \(VISUAL\)"):
        command(settings)


def test_the_shell_is_never_asked():
    assert command(Settings(editor="echo '$(id); rm' x")) == ["echo", "$(id); rm", "x"]


def test_no_color_is_given_back_to_the_editor():
    assert environment({"A": "1"}, no_color=True) == {"A": "1", "NO_COLOR": "1"}
    assert environment({"A": "1"}, no_color=False) == {"A": "1"}


def script(folder: Path, body: str) -> str:
    """An editor that is a Python script."""
    file = folder / "editor.py"
    file.write_text(f"#!{sys.executable}\nimport os, sys, pathlib\n{body}\n")
    file.chmod(0o755)
    return str(file)


async def test_the_file_is_edited_and_the_loop_runs_on(tmp_path: Path):
    note = tmp_path / "a.md"
    note.write_text("old")
    go = tmp_path / "go"
    os.mkfifo(go)
    editor = script(tmp_path, f"open({str(go)!r}).read(); pathlib.Path(sys.argv[-1]).write_text('new')")
    async with App[None]().run_test() as pilot:
        editing = asyncio.create_task(edit(pilot.app, note, 1, Settings(editor=editor)))
        descriptor = await asyncio.to_thread(os.open, go, os.O_WRONLY)  # returns once the editor waits
        assert not editing.done()
        assert note.read_text() == "old"
        os.close(descriptor)
        await editing
    assert note.read_text() == "new"


async def test_an_editor_that_fails_or_a_file_that_is_gone_is_one_sentence(tmp_path: Path):
    note = tmp_path / "a.md"
    note.write_text("x")
    async with App[None]().run_test() as pilot:
        with pytest.raises(EditorError, match="ended with status 3"):
            await edit(pilot.app, note, 1, Settings(editor=script(tmp_path, "sys.exit(3)")))
        with pytest.raises(EditorError, match="ended with signal 9"):
            await edit(pilot.app, note, 1, Settings(editor=script(tmp_path, "os.kill(os.getpid(), 9)")))
        with pytest.raises(EditorError, match="no file any more"):
            await edit(pilot.app, tmp_path / "gone.md", 1, Settings(editor="true"))
        broken = tmp_path / "broken"
        broken.write_text("#!/no/such/interpreter\n")
        broken.chmod(0o755)
        with pytest.raises(EditorError, match=r"not started, .*broken"):
            await edit(pilot.app, note, 1, Settings(editor=str(broken)))


async def test_an_editor_is_ended_when_the_app_ends(tmp_path: Path):
    note = tmp_path / "a.md"
    note.write_text("x")
    pids = tmp_path / "pid"
    os.mkfifo(pids)
    body = f"import signal; open({str(pids)!r}, 'w').write(str(os.getpid())); signal.pause()"
    async with App[None]().run_test() as pilot:
        editing = asyncio.create_task(edit(pilot.app, note, 1, Settings(editor=script(tmp_path, body))))
        pid = int(await asyncio.to_thread(pids.read_text))
        editing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await editing
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


HOST = """
import asyncio, os, pathlib, sys
from textual.app import App
from textual.widgets import Static
from engine.settings import Settings
from tui.editor import EditorError, edit

class Host(App):
    def compose(self):
        yield Static("SHOWN-0", id="s")

    def on_mount(self):
        self.ticks, self.before, self.told = 0, sys.maxsize, False
        self.set_interval(0.005, self.tick)
        self.call_after_refresh(lambda: self.run_worker(self.work()))

    def tick(self):
        self.ticks += 1
        self.query_one("#s").update(f"SHOWN-{self.ticks}")
        if self.before + 200 < self.ticks and not self.told:  # far more repaints than the driver's queue holds
            try:
                os.close(os.open(sys.argv[3], os.O_WRONLY | os.O_NONBLOCK))
            except OSError:
                return  # the editor does not wait yet
            self.told = True

    async def work(self):
        before = self.before = self.ticks
        try:
            await edit(self, pathlib.Path(sys.argv[1]), 4, Settings(editor=sys.argv[2]))
        except EditorError as error:
            self.exit(f"{error}")
            return
        ran = self.ticks - before
        self.query_one("#s").update("BACK")
        while self.ticks < before + ran + 20:
            await asyncio.sleep(0.01)
        self.exit(f"ran {ran}")

print("RESULT", Host().run(), flush=True)
"""

EDITOR = """
import json, signal, time
streams = [os.isatty(n) for n in (0, 1, 2)]
print("EDITOR-SPEAKS", flush=True)
os.kill(os.getppid(), signal.SIGINT)  # what the terminal does to all when ctrl+c is typed
typed = sys.stdin.readline()
open(pathlib.Path(__file__).parent / "ticked").read()  # opens once the app has repainted 200 times
ctrl_c = signal.getsignal(signal.SIGINT) is signal.default_int_handler
seen = {"tty": streams, "typed": typed, "argv": sys.argv[1:], "color": os.environ.get("NO_COLOR"), "int": ctrl_c}
pathlib.Path(__file__ + ".seen").write_text(json.dumps(seen))
print("EDITOR-ENDS", flush=True)
"""


def on_terminal(
    argv: list[str], environ: dict[str, str], say: dict[bytes, bytes], seconds: float = 30
) -> bytes:
    """Run a program on a pseudo-terminal, answering each text of `say` once; all it wrote."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.execve(argv[0], argv, environ)
    written = b""
    waiting = dict(say)
    try:
        while select.select([terminal], [], [], seconds)[0]:
            try:
                data = os.read(terminal, 65536)
            except OSError:
                break
            if not data:
                break
            written += data
            for text in [text for text in waiting if text in written]:
                os.write(terminal, waiting.pop(text))
    finally:
        os.close(terminal)
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
    return written


def test_on_a_real_terminal_the_editor_has_it_and_the_app_takes_it_back(tmp_path: Path):
    note = tmp_path / "n.md"
    note.write_text("x")
    host = tmp_path / "host.py"
    host.write_text(HOST)
    editor = script(tmp_path, EDITOR)
    root = Path(__file__).parents[2]
    os.mkfifo(tmp_path / "ticked")
    environ = {**os.environ, "PYTHONPATH": str(root), "NO_COLOR": "1", "TERM": "xterm-256color"}
    argv = [sys.executable, str(host), str(note), editor, str(tmp_path / "ticked")]
    written = on_terminal(argv, environ, {b"EDITOR-SPEAKS": b"hello\n"})
    text = written.decode()
    seen = json.loads(Path(f"{editor}.seen").read_text())
    assert seen == {"tty": [True] * 3, "typed": "hello\n", "argv": [str(note)], "color": "1", "int": True}
    while_lent = text[text.index("EDITOR-SPEAKS") : text.index("EDITOR-ENDS")]
    assert "SHOWN" not in while_lent
    after = text[text.index("EDITOR-ENDS") :]
    assert "\x1b[?1049h" in after
    assert "BACK" in after or "SHOWN" in after
    assert re.search(r"RESULT ran \d+", text)
