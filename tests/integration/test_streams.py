"""The last line of defence of the commands: what nobody made visible is text all the same when it is written."""

from __future__ import annotations

import io
import sys
from typing import TYPE_CHECKING

import pytest

from engine.doors import exits, streams
from engine.doors.streams import Guarded
from tests.hostile import BAR, MARK, PAYLOADS, STEERS, obeyed
from tests.integration.shell import Shell, on_terminal

if TYPE_CHECKING:
    from pathlib import Path

CARELESS = """
import gc, logging, os, sys, threading, warnings
import click
from engine.doors import cli

EVIL = os.environ["EVIL"]

class Dying:
    def __del__(self):
        raise RuntimeError(EVIL)

def fall():
    raise RuntimeError(EVIL)

@click.command("open")
@click.argument("word", required=False)
def careless(word):
    print(EVIL)
    print(EVIL, file=sys.stderr)
    click.echo(EVIL)
    click.echo(EVIL, err=True)
    click.secho(EVIL, fg="red")
    sys.stdout.write(EVIL)
    sys.stderr.writelines([EVIL])
    warnings.warn(EVIL)
    logging.getLogger("other").warning(EVIL)
    logging.getLogger("noctuary.other").error(EVIL)
    thread = threading.Thread(target=fall)
    thread.start()
    thread.join()
    Dying()
    gc.collect()
    fall()

cli.main(careless)
"""


SHORT = "".join(
    PAYLOADS[each] for each in ("where is the cursor", "8-bit OSC", "overrides", "bell, backspace, return")
)


@pytest.mark.parametrize("encoding", ["utf-8", "ascii", "ascii:strict", "latin-1"])
def test_whatever_is_written_past_our_own_words_is_text(shell: Shell, tmp_path: Path, encoding: str) -> None:
    shell.program = ("-c", CARELESS)
    shell.env |= {
        "PYTHONIOENCODING": encoding,
        "PYTHONWARNINGS": "default",
        "EVIL": PAYLOADS["erase"] + SHORT,
    }
    status, got = on_terminal(shell, "open")
    assert status == exits.ERROR
    assert not obeyed(got)
    assert got.count(b"6n") >= 13, "something was not said at all"
    assert b"Fault: RuntimeError" in got
    piped = shell.run("open")
    assert not obeyed((piped.stdout + piped.stderr).encode())
    for kept in (tmp_path / "xdg" / "state" / "noctuary").glob("fault-*.txt"):
        assert MARK in kept.read_text()
        assert not obeyed(kept.read_bytes()), "it is read on a terminal too"


@pytest.fixture
def under() -> io.TextIOWrapper:
    """A stream as the interpreter has it."""
    return io.TextIOWrapper(io.BytesIO(), encoding="ascii", errors="strict")


def told(stream: io.TextIOWrapper) -> str:
    stream.flush()
    raw = stream.buffer
    assert isinstance(raw, io.BytesIO)
    return raw.getvalue().decode()


def test_a_guard_is_put_up_once_and_spells_what_the_encoding_lacks(
    under: io.TextIOWrapper, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdout", under)
    streams.guard()
    guarded = sys.stdout
    streams.guard()
    assert sys.stdout is guarded
    sys.stdout.write("é\x1b[2J")
    assert told(under) == "\\xe9\\u241b[2J"


def test_a_guarded_stream_is_one_that_programs_know(under: io.TextIOWrapper) -> None:
    under.reconfigure(errors="replace")
    guarded = Guarded(under)
    assert guarded.write("\x1b[2J\n") == 5, "as many as were given"
    assert (guarded.encoding, guarded.errors) == ("ascii", "replace")
    assert (guarded.isatty(), guarded.closed, guarded.writable()) == (False, False, True)
    assert not hasattr(guarded, "buffer"), "bytes would go around the guard"
    with pytest.raises(TypeError):
        guarded.write(b"\x1b[2J")  # type: ignore[arg-type]
    under.close()
    assert guarded.closed


def test_only_a_bar_may_go_back_and_hide_the_cursor(under: io.TextIOWrapper) -> None:
    under.reconfigure(errors="backslashreplace")
    bar = Guarded(under).for_drawing()
    bar.write("\r\x1b[?25l\x1b[2J\x1b[?1049h\x9b2J\x1b[?25h\n")
    assert told(under) == "\r\x1b[?25l\\u241b[2J\\u241b[?1049h\\u27e6U+009B\\u27e72J\x1b[?25h\n"
    Guarded(under).write("\r\x1b[?25l")
    assert told(under).endswith("\\u240d\\u241b[?25l")


@pytest.mark.parametrize("payload", PAYLOADS.values(), ids=list(PAYLOADS))
def test_no_payload_passes_either_guard(payload: str) -> None:
    for guarded in (Guarded, lambda stream: Guarded(stream).for_drawing()):
        stream = io.StringIO()
        guarded(stream).write(payload)
        assert not STEERS.search(BAR.sub("", stream.getvalue().translate({10: None, 9: None, 13: None})))
