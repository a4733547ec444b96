"""More keys than anybody presses: the screen stays in hand, and a signal ends it all the same."""

from __future__ import annotations

import asyncio
import signal
import sys
import threading
from typing import TYPE_CHECKING

import pytest
from textual.events import Key

from tests.support import eventually
from tests.tui.desk import NOTES, write
from tests.tui.terminal import Terminal
from tui.driver import MOST_REPEATS, PAUSE_SECONDS, Driver, Repeats

if TYPE_CHECKING:
    from pathlib import Path


FLOOD = 3000
"""Keys that the terminal holds, and that are far more than the loop's pipe holds."""


@pytest.mark.parametrize("keys", ["\x1b" * 8000, "sjk" * 4000], ids=["escape", "mixed"])
async def test_a_signal_ends_the_console_in_the_midst_of_a_flood(
    environment: dict[str, str], database_url: str, tmp_path: Path, keys: str
):
    surroundings = {**environment, "DATABASE_URL": database_url}
    with Terminal(surroundings, str(write(tmp_path / "vault", NOTES)), cwd=tmp_path) as screen:
        screen.until("vectors ✓")
        screen.press("3")
        screen.until("Jobs]")
        screen.flood(keys)
        screen.signal(signal.SIGTERM)
        assert await eventually(screen.ended, 10) == (-signal.SIGTERM,)


# What the loop is told by another thread, or by a signal, goes through a pipe, which nobody reads while the
# loop is busy: here until the keys of a flood were all handed over, or a second long where they are not.
BUSY = f"""
import asyncio, os, signal, socket, time
from pathlib import Path
from tui.main import main
from tui.panes.jobs import JobsPane

def busy(pane):
    loop = asyncio.get_running_loop()
    loop._csock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1)
    Path("busy").touch()
    end = time.monotonic() + 10
    while not Path("flooded").exists() and time.monotonic() < end:
        time.sleep(0.01)
    end = time.monotonic() + 1
    while len(loop._ready) < {FLOOD} and time.monotonic() < end:
        time.sleep(0.01)
    os.kill(os.getpid(), signal.SIGTERM)

JobsPane.do_status = busy
main()
"""


async def test_a_signal_is_heard_when_the_loop_was_busy_while_the_keys_came(
    environment: dict[str, str], database_url: str, tmp_path: Path
):
    surroundings = {**environment, "DATABASE_URL": database_url}
    vault, program = str(write(tmp_path / "vault", NOTES)), (sys.executable, "-c", BUSY)
    with Terminal(surroundings, vault, cwd=tmp_path, program=program) as screen:
        screen.until("vectors ✓")
        screen.press("3", "Jobs]")
        screen.press("s")
        await eventually((tmp_path / "busy").exists)
        screen.flood("jk" * (FLOOD // 2))
        (tmp_path / "flooded").touch()
        assert await eventually(screen.ended, 10) == (-signal.SIGTERM,)


async def test_letters_typed_ahead_reach_what_the_key_before_them_opens(
    environment: dict[str, str], database_url: str, tmp_path: Path
):
    surroundings = {**environment, "DATABASE_URL": database_url}
    with Terminal(surroundings, str(write(tmp_path / "vault", NOTES)), cwd=tmp_path) as screen:
        screen.until("vectors ✓")
        for number in "348":
            screen.press(f"{number}/owl{number}\r", f"“owl{number}”")
        screen.press("2owl", "citation")


class _SlowApp:
    """Takes one key and no other until the gate is opened."""

    def __init__(self) -> None:
        self.taken: list[str] = []
        self.gate = asyncio.Event()

    async def _post_message(self, message: Key) -> None:
        self.taken.append(message.key)
        await self.gate.wait()


def _reading(app: _SlowApp, keys: str) -> tuple[Driver, threading.Thread]:
    """A driver whose input thread was given these keys."""
    driver = Driver.__new__(Driver)
    driver._app, driver._loop = app, asyncio.get_running_loop()
    driver._repeats, driver.exit_event = Repeats(), threading.Event()
    thread = threading.Thread(target=lambda: [driver.send_message(Key(key, key)) for key in keys])
    driver._key_thread = thread
    thread.start()
    return driver, thread


async def test_a_key_is_handed_over_when_the_one_before_it_was_taken():
    app = _SlowApp()
    _, thread = _reading(app, "abc")
    await eventually(lambda: app.taken)
    await asyncio.to_thread(thread.join, 0.3)
    assert thread.is_alive()
    assert app.taken == ["a"]
    app.gate.set()
    await eventually(lambda: not thread.is_alive())
    await eventually(lambda: app.taken == ["a", "b", "c"])


async def test_leaving_the_screen_waits_for_no_key():
    app = _SlowApp()
    driver, thread = _reading(app, "abc")
    await eventually(lambda: app.taken)
    driver.exit_event.set()
    thread.join(10)  # as Textual does, on the loop that the thread waits for
    assert not thread.is_alive()
    app.gate.set()


def test_a_key_without_a_pause_counts_only_so_often():
    repeats = Repeats()
    taken = [not repeats.too_many("j", pause=0.0) for _ in range(8000)]
    assert sum(taken) == MOST_REPEATS
    assert not repeats.too_many("k", pause=0.0)


def test_a_key_that_is_held_down_always_counts():
    repeats = Repeats()
    assert not any(repeats.too_many("j", pause=PAUSE_SECONDS) for _ in range(8000))
