"""`noctuary hook`: what an agent's own hooks call, so that each of its turns is kept.

Whatever happens here, the agent goes on: a hook that fails would hold it up, or be read by its model.
"""

from __future__ import annotations

import asyncio
import json
import logging
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from engine.doors import exits, output, parameters, remembering, session
from engine.errors import NoctuaryError
from engine.settings.paths import expanded

if TYPE_CHECKING:
    from engine import Engine
    from engine.memory.imported import ImportReport

CLAUDE_CODE = "claude-code"

SECONDS = 30.0
"""What a turn's import may take; what is left of it comes with the next one."""

ANSWER_SECONDS, LOOK_SECONDS = 2.0, 0.05
"""How long to wait until the answer is in the transcript, which is written meanwhile; how often to look."""

TAIL_BYTES = 256 * 1024
"""Beside the answer's own length: what may stand behind it."""

EVENTS = frozenset({"Stop", "SessionEnd", "UserPromptSubmit"})

_log = logging.getLogger("noctuary.hook")


@click.group()
@parameters.JSON
def hook(*, as_json: bool) -> None:
    """Keep each turn of an agent, called by its hooks."""
    del as_json  # asked for by the verbs


@hook.command(CLAUDE_CODE)
@parameters.whose
@parameters.JSON
def claude_code(*, core: str | None, user: str | None, as_json: bool) -> int:
    """Keep the turns of a Claude Code session, whose hook says on standard input where its transcript is.

    It never fails: the exit status is 0, and what went wrong is one line on standard error.
    """
    as_json = parameters.json_wanted(as_json=as_json)
    told = {} if sys.stdin is not None and sys.stdin.isatty() else _told(parameters.read_input())
    path = told.get("transcript_path")
    if told.get("hook_event_name") not in EVENTS or not isinstance(path, str) or not path:
        output.note("There is no turn to keep: standard input is no Stop hook of Claude Code.")
        return exits.DONE

    async def work(engine: Engine) -> int:
        async with asyncio.timeout(SECONDS):
            report = await _keep(engine, expanded(Path(path)), told, core, user)
        if as_json:
            output.dump(report)
        return exits.DONE

    try:
        session.run(work, application="noctuary hook")
    except NoctuaryError as error:
        output.complain(error.title, error.message, error.remedy)
    except TimeoutError:
        output.note("The turn was not kept in time; it comes with the next one.")
    # The agent must not stop at a fault of ours, whatever it is.
    except Exception as error:  # noqa: BLE001
        _log.error("the hook fell", exc_info=error)
        output.note("Noctuary met a fault of its own; `noctuary log` tells of it.")
    return exits.DONE


async def _keep(
    engine: Engine, path: Path, told: dict[str, Any], core: str | None, user: str | None
) -> ImportReport:
    key = remembering.key(engine.settings, core, user)
    settled = told["hook_event_name"] == "SessionEnd" or await _answered(path, told)
    return await engine.memory.importing.run(CLAUDE_CODE, path, key, settled=settled)


async def _answered(path: Path, told: dict[str, Any]) -> bool:
    """Whether the answer that the hook tells stands in the transcript. Claude Code writes that at the same
    time; an answer that is not there yet is kept with the next turn.
    """
    answer = told.get("last_assistant_message")
    if told["hook_event_name"] != "Stop" or not isinstance(answer, str) or not answer.strip():
        return False
    written = json.dumps(answer.strip(), ensure_ascii=False)[1:-1].encode("utf-8", "surrogatepass")
    end = asyncio.get_running_loop().time() + ANSWER_SECONDS
    while written not in await asyncio.to_thread(_tail, path, len(written) + TAIL_BYTES):
        if asyncio.get_running_loop().time() > end:
            return False
        await asyncio.sleep(LOOK_SECONDS)
    return True


def _tail(path: Path, size: int) -> bytes:
    """The end of a file; nothing where it cannot be read."""
    try:
        with path.open("rb") as file:
            file.seek(max(0, path.stat().st_size - size))
            return file.read()
    except OSError:
        return b""


def _told(text: str) -> dict[str, Any]:
    """What the hook says; empty where it is no JSON object."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}
