"""Every payload through every pane, dialog and line of the console, on a real terminal: none of it steers it."""

from __future__ import annotations

import base64
import json
import re
import sys
from typing import TYPE_CHECKING

import pytest
from psycopg import sql

from tests.hostile import (
    MARK,
    PAYLOADS,
    STEERING,
    STEERS,
    TEXTUAL,
    encoded,
    name,
    obeyed,
    write_notes,
)
from tests.scripted_ollama import Answer, Asked, ScriptedOllama, in_thread, vector
from tests.support import eventually
from tests.tui.desk import NOTES, write
from tests.tui.terminal import Terminal

if TYPE_CHECKING:
    from pathlib import Path

    from tests.conftest import Server

SHORT = "".join(payload for payload in STEERING.values() if "\0" not in payload)
CUT = "".join(payload[:12] for payload in STEERING.values() if "\0" not in payload)
"""The beginnings of all, where a terminal's line has room for more of them."""

ESCAPE, UP, DOWN, DELETE_LINE, HALF_PAGE = "\x1b", "\x1b[A", "\x1b[B", "\x15", "\x04"

COPYING = "\x1b]52;c;"
COPIED = re.compile(rb"\x1b\]52;c;([A-Za-z0-9+/=]*)\x07")
"""How the console itself asks a terminal to copy."""


def pasted(text: str) -> str:
    return f"\x1b[200~{text}\x1b[201~"


def check(output: bytes) -> None:
    """The console wrote text and its own codes, and what it copied was text of one or more lines."""
    copied = [base64.b64decode(each).decode() for each in COPIED.findall(output)]
    assert MARK not in copied, "a note copied something by itself"
    assert not any(STEERS.search(text.replace("\n", "")) for text in copied)
    assert not obeyed(COPIED.sub(b"", output), allowed=TEXTUAL)


@pytest.fixture
def surroundings(environment: dict[str, str], database_url: str, tmp_path: Path) -> dict[str, str]:
    """An installation whose log, history, theme and editor are hostile."""
    state = tmp_path / "xdg" / "state" / "noctuary"
    state.mkdir(parents=True)
    at = "2026-03-01T12:00:00+00:00"
    records = [{"at": at, "level": each, "source": each, "text": each} for each in PAYLOADS.values()]
    (state / "noctuary.log").write_text("".join(json.dumps(record) + "\n" for record in records))
    (state / "search_history.jsonl").write_text(
        "".join(json.dumps(each) + "\n" for each in PAYLOADS.values())
    )
    (state / "theme").write_text(STEERING["title"])
    return {**environment, "DATABASE_URL": database_url, "NOCTUARY_EDITOR": f"'{CUT}'", "ESCDELAY": "20"}


async def spoil_the_queue(server: Server, database_url: str) -> None:
    """Each payload as the error of a job, once all were done."""
    database = database_url.partition("?")[0].rpartition("/")[2]
    done = "SELECT count(*) > 80 AND bool_and(status IN ('done', 'failed')) FROM noctuary.job"
    await eventually(lambda: server.run(done, database)[0][0])
    for number, payload in enumerate(PAYLOADS.values()):
        error = encoded(f"{payload} {payload}").decode("utf-8", "replace").replace("\0", "")
        change = sql.SQL(
            "UPDATE noctuary.job SET status = 'failed', error = {} WHERE id ="
            " (SELECT id FROM noctuary.job ORDER BY id OFFSET {} LIMIT 1)"
        ).format(sql.Literal(error), sql.Literal(number))
        server.run(change.as_string(), database)


def spoil_the_records(server: Server, database_url: str) -> None:
    """Each payload as a query with all that is kept of it, and as a purpose and a model in the ledger."""
    database = database_url.partition("?")[0].rpartition("/")[2]
    trace = sql.SQL(
        "INSERT INTO noctuary.trace (kind, door, query, citations, seconds, answered, provider, model,"
        " prompt_version, trouble) VALUES ('ask', {0}, {0}, 1, 1, true, {0}, {0}, {0}, {0})"
    )
    use = sql.SQL(
        "INSERT INTO noctuary.language_use (purpose, provider, model, prompt_tokens, completion_tokens)"
        " VALUES ({0}, {0}, {0}, 1, 1)"
    )
    for payload in PAYLOADS.values():
        text = sql.Literal(encoded(payload).decode("utf-8", "replace").replace("\0", ""))
        for statement in (trace, use):
            server.run(statement.format(text).as_string(), database)


class Tour:
    """Presses keys and lets each screen be painted."""

    def __init__(self, screen: Terminal) -> None:
        self.screen = screen

    def __call__(self, keys: str, then: str = "") -> None:
        self.screen.press(keys, then)
        # An escape that is followed at once is a key with Alt.
        self.screen.rest(0.3 if keys.endswith(ESCAPE) else 0.06)

    def scroll(self, times: int = 6) -> None:
        for _ in range(times):
            self.screen.press(HALF_PAGE)
            self.screen.rest(0.05)

    def panes(self) -> None:
        """What each pane shows, row by row and in every state."""
        self("3", "Jobs]")
        self("s", "[○ pending")
        self("s", "[◐ working")
        self("s", "[✗ failed")
        for _ in range(4):
            self("jji", "attempts")
            self("q")
        self.scroll()
        self("gy", COPYING)
        self("*y", COPYING)
        self("u")
        self("4", "compared")
        for sign in "+-~≠✗":
            self("c", f"[{sign}")
        self.scroll(3)
        self("8", "Log]")
        self("fg")
        self.scroll()
        self("l", "warnings and errors")
        self("y", COPYING)
        self("1", "Inbox]")
        self("jy", COPYING)

    def records(self) -> None:
        """Queries and tokens row by row; what is copied of them, and a query that is asked again."""
        self("8s", "[searches and asks]")
        for _ in PAYLOADS:
            self("k")
        self("gy", COPYING)
        self("*y", COPYING)
        self("/" + pasted(CUT), "No row has “")
        self("\r")
        self(ESCAPE, " queries")
        self("t", "[tokens]")
        for _ in PAYLOADS:
            self("j")
        self("y", COPYING)
        self("sgjj\r", "Search]")
        self(DELETE_LINE, "Type to search")
        self(ESCAPE, "Type to search")
        self("8o", "[log]")

    def filters(self) -> None:
        """What is typed and pasted into the filter of every list, and said of it; and what is asked of a filter."""
        for pane, title, back in (
            ("3", "Jobs]", " jobs"),
            ("4", "Drift]", "compared"),
            ("8", "Log]", "records"),
            ("1", "Inbox]", "Notes that"),
        ):
            self(pane, title)
            for text in (pasted(CUT), "[/ [b [@click=app.quit]x[/]"):
                self("/" + text, "No row has “")
                self("\r")
                self("n", "No row shown")
                self(ESCAPE, back)
        self("3/" + pasted("[b] \x1b[2J"), "No row has “")
        self("\r")
        self("r", "Retry")
        self("n")
        self(ESCAPE, " jobs")
        self("4r", "Repair")
        self("n")

    def search(self) -> None:
        """The search line with its history, the citations and the preview of each."""
        self("2", "Type to search")
        for _ in range(8):
            self(UP)
        self(DELETE_LINE + pasted(SHORT))
        self(DELETE_LINE + "[/ [b [link=x]y[/link] app.quit")
        self(DELETE_LINE + "owl ", "citation")
        self("\r", "▸")
        self("x")
        for _ in range(12):
            self("jj")
        self("v")
        self.scroll(2)
        self("v*y", "copied by OSC 52")
        self("e", "Editor")
        self("p" + pasted(CUT))
        self("\r", "No indexed file")
        self(ESCAPE, "citation")

    def dialogs(self, folder: Path) -> None:
        """Palette, help, folders and questions."""
        self("1", "Inbox]")
        self(":", "Commands")
        self(pasted(CUT), "OWN")
        self(ESCAPE, "Inbox]")
        self("?", "Everywhere")
        self.scroll(3)
        self("q", "Inbox]")
        self("A", "Add a folder")
        self(DELETE_LINE + pasted(CUT), "OWN")
        self("\r", "✗")
        self(DELETE_LINE + pasted(f"{folder}/"), "Folders here")
        self(DOWN * 30)
        self("\t")
        self("\r", "✗")
        self(DELETE_LINE + pasted(str(folder.parent / name(PAYLOADS["link tag"]))), "link")
        self("\r", "Added")
        self("F", "Folders of notes")
        self("j")
        self("d", "Remove")
        self("y", "Removed")
        self("q", "Inbox]")


async def finish(screen: Terminal) -> None:
    """Leave, and look at every byte."""
    screen.press("q")
    assert await eventually(screen.ended) == (0,)
    check(screen.output)
    shown = re.sub(r"\x1b\[[0-9;]*[mH]", "", screen.output.decode())
    for symbol in (MARK, "␛]52;c;", "␇", "⟦U+009B⟧", "⟦U+202E⟧", "[@click=app.quit]", "日本語", "\\xff"):
        assert symbol in shown, f"{symbol!r} was never shown: the test shows nothing"


async def test_no_payload_steers_the_console(
    surroundings: dict[str, str], server: Server, database_url: str, tmp_path: Path
) -> None:
    vault = write_notes(tmp_path / name(CUT))
    (tmp_path / name(PAYLOADS["link tag"])).mkdir()
    with Terminal(surroundings, str(vault), cwd=tmp_path) as screen:
        screen.until("vectors ✓")
        await spoil_the_queue(server, database_url)
        spoil_the_records(server, database_url)
        tour = Tour(screen)
        tour.panes()
        tour.records()
        tour.filters()
        tour.search()
        tour.dialogs(vault)
        assert not list(tmp_path.rglob(MARK)), "a shell obeyed"
        await finish(screen)


def refuses(asked: Asked) -> Answer:
    """A model that reads its own test, and no note."""
    texts = asked.body["input"]
    if any("owl" in text for text in texts):
        return Answer({"error": SHORT}, 400)
    return Answer({"embeddings": [vector(text) for text in texts]})


async def test_no_payload_of_a_model_steers_a_wide_console(
    surroundings: dict[str, str], server: Server, database_url: str, tmp_path: Path
) -> None:
    vault = write_notes(tmp_path / "vault")
    with (
        in_thread(ScriptedOllama({f"{CUT}:latest": {}}, answers={"/api/embed": refuses})) as ollama,
        Terminal(
            {
                **surroundings,
                "EMBEDDINGS_PROVIDER": "ollama",
                "EMBEDDINGS_MODEL": CUT,
                "OLLAMA_URL": ollama.url,
            },
            str(vault),
            cwd=tmp_path,
            size=(120, 40),
        ) as screen,
    ):
        screen.until("✗ 45")
        await spoil_the_queue(server, database_url)
        spoil_the_records(server, database_url)
        tour = Tour(screen)
        tour.panes()
        tour("3", "Jobs]")
        tour("s", "[✓ done")
        tour("s", "[✗ vectors")
        tour.scroll(4)
        tour("i", "Passage without a vector")
        tour("q")
        tour.records()
        tour.search()
        await finish(screen)


UNGUARDED = """
import tui.text, tui.widgets.line_input
tui.text.visible = lambda text, **_: text
tui.widgets.line_input.LineInput.validate_value = lambda _input, value: value
from tui.main import main
main()
"""


async def test_what_a_widget_forgot_to_make_visible_is_text_all_the_same(
    surroundings: dict[str, str], server: Server, database_url: str, tmp_path: Path
) -> None:
    vault = write_notes(tmp_path / name(CUT))
    with Terminal(
        surroundings, str(vault), cwd=tmp_path, program=(sys.executable, "-c", UNGUARDED)
    ) as screen:
        screen.until("vectors ✓")
        await spoil_the_queue(server, database_url)
        spoil_the_records(server, database_url)
        tour = Tour(screen)
        tour("3", "Jobs]")
        tour("i", "attempts")
        tour("q")
        tour.scroll()
        tour("/" + pasted(CUT), "OWNED")
        tour("\r")
        tour("8", "Log]")
        tour.scroll(4)
        tour("s", "[searches and asks]")
        tour.scroll(4)
        tour("t", "[tokens]")
        tour.scroll(4)
        tour("2" + pasted("owl\x1b[31m\x9b2J "), "citation")
        tour("\r", "▸")
        tour.scroll(3)
        tour("F", "Folders of notes")
        check(screen.output)
    shown = re.sub(r"\x1b\[[0-9;]*[mH]", "", screen.output.decode())
    assert "␛]52;c;" in shown
    assert "\N{REPLACEMENT CHARACTER}" in shown, "for what has no picture"
    assert "⟦U+" not in shown, "something was made visible: the test shows nothing of the last line"


STRAY = """
import os, tui.work
start = tui.work.start
async def started(*arguments):
    os.write(2, os.environ["EVIL"].encode() + b"\\n")
    await start(*arguments)
tui.work.start = started
from tui.main import main
main()
"""


async def test_what_a_library_writes_by_itself_stands_in_the_log_and_not_on_the_screen(
    surroundings: dict[str, str], tmp_path: Path
) -> None:
    environment = {**surroundings, "EVIL": f"panicked at {CUT.partition('a')[0]}"}
    with Terminal(
        environment,
        str(write(tmp_path / "vault", NOTES)),
        cwd=tmp_path,
        program=(sys.executable, "-c", STRAY),
    ) as screen:
        screen.until("vectors ✓")
        screen.press("8/panic")
        screen.until("with “panic”")
        screen.press("\r")
        screen.rest()
        screen.press("q")
        assert await eventually(screen.ended) == (0,)
        check(screen.output)
        assert "panicked at ␛]52;c;" in screen.output.decode()


FALLING = """
import os, tui.panes.jobs
def fall(self, _kind=""):
    secret = "postgresql://u:hunter2@h/d"
    raise RuntimeError(os.environ["EVIL"] + secret)
tui.panes.jobs.JobsPane.do_status = fall
from tui.main import main
main()
"""


async def test_a_fault_of_the_console_is_one_sentence_and_shows_nobody_its_values(
    surroundings: dict[str, str], tmp_path: Path
) -> None:
    environment = {**surroundings, "EVIL": CUT}
    with Terminal(
        environment,
        str(write(tmp_path / "vault", NOTES)),
        cwd=tmp_path,
        program=(sys.executable, "-c", FALLING),
    ) as screen:
        screen.until("vectors ✓")
        screen.press("3", "Jobs]")
        screen.press("s")
        assert await eventually(screen.ended) == (2,)
        check(screen.output)
    after = screen.output.rpartition(b"\x1b[?1049l")[2].decode()
    assert "Fault: RuntimeError: ␛]52;c;" in after
    assert "its details are in" in after
    assert "hunter2" not in after
    assert after.count("\n") == 1
    (kept,) = (tmp_path / "xdg" / "state" / "noctuary").glob("fault-*.txt")
    assert "do_status" not in after
    assert "fall" in kept.read_text()
    assert "hunter2@h" not in kept.read_text()
    assert not obeyed(kept.read_bytes())
