"""A signal, or a line that drops, ends the console in order: no server, no lease and no word stays behind."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.integration.database_processes import servers
from tests.support import eventually
from tests.tui.desk import NOTES, write
from tests.tui.terminal import Terminal

if TYPE_CHECKING:
    from tests.conftest import Server

SIGNALS = (signal.SIGTERM, signal.SIGHUP)


def data(environment: dict[str, str]) -> Path:
    return Path(environment["XDG_DATA_HOME"])


def faults(environment: dict[str, str]) -> list[Path]:
    return list(Path(environment["XDG_STATE_HOME"]).rglob("fault-*"))


@pytest.mark.parametrize("number", SIGNALS)
async def test_a_signal_stops_the_server_and_restores_the_terminal(
    environment: dict[str, str], tmp_path: Path, number: signal.Signals
):
    with Terminal(environment, str(write(tmp_path / "vault", NOTES)), cwd=tmp_path) as screen:
        screen.until("vectors ✓")
        assert servers(data(environment))
        screen.signal(number)
        assert await eventually(screen.ended, 20) == (-number,)
        assert b"\x1b[?1049l" in screen.output
        assert b"Traceback" not in screen.output
    assert servers(data(environment)) == []
    assert faults(environment) == []


async def test_a_line_that_drops_stops_the_server(environment: dict[str, str], tmp_path: Path):
    with Terminal(environment, str(write(tmp_path / "vault", NOTES)), cwd=tmp_path) as screen:
        screen.until("vectors ✓")
        screen.hang_up()
        assert await eventually(screen.ended, 20) == (-signal.SIGHUP,)
    assert servers(data(environment)) == []
    assert faults(environment) == []


async def test_a_signal_while_the_server_is_starting_leaves_none(environment: dict[str, str], tmp_path: Path):
    with Terminal(environment, str(write(tmp_path / "vault", NOTES)), cwd=tmp_path) as screen:
        await eventually(lambda: servers(data(environment)))
        screen.signal(signal.SIGTERM)
        assert await eventually(screen.ended, 20) == (-signal.SIGTERM,)
    await eventually(lambda: servers(data(environment)) == [])


@pytest.mark.parametrize("number", SIGNALS)
async def test_jobs_in_hand_are_given_back(
    environment: dict[str, str], database_url: str, server: Server, tmp_path: Path, number: signal.Signals
):
    name = database_url.rpartition("?")[0].rpartition("/")[2]

    def jobs(status: str) -> int:
        [[count]] = server.run(f"SELECT count(*) FROM noctuary.job WHERE status = '{status}'", name)
        return int(str(count))

    vault = write(tmp_path / "vault", {f"{n}.md": f"# Note {n}\n\nowl {n}\n" * 50 for n in range(3_000)})
    with Terminal({**environment, "DATABASE_URL": database_url}, str(vault), cwd=tmp_path) as screen:
        await eventually(lambda: jobs("processing"), 20)
        screen.signal(number)
        assert await eventually(screen.ended, 20) == (-number,)
    assert jobs("processing") == 0
    assert jobs("pending"), "everything was done before the signal: the test shows nothing"
