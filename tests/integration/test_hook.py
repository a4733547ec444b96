"""`noctuary hook claude-code`: each turn is kept once, whole, and the agent is never held up."""

from __future__ import annotations

import asyncio
import io
import json
from typing import TYPE_CHECKING, Any

import pytest

from engine.doors import exits
from engine.doors.commands import hook

if TYPE_CHECKING:
    from pathlib import Path

    from tests.integration.line import Line, Outcome

ANSWER = 'In hollow "trees",\nas a rule – and barns.'


def line(role: str, text: str, number: int) -> str:
    content: object = text if role == "user" else [{"type": "text", "text": text}]
    return json.dumps(
        {
            "type": role, "uuid": f"{role}-{number}", "sessionId": "s1",
            "timestamp": f"2026-05-06T10:00:{number:02}Z", "cwd": "/work",
            "message": {"role": role, "id": f"m{number}", "content": content},
        },
        ensure_ascii=False,
    ) + "\n"  # fmt: skip


class Session:
    """A session of Claude Code: its transcript, and its hooks."""

    def __init__(self, noctuary: Line, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.noctuary = noctuary
        self.path = path
        self._monkeypatch = monkeypatch

    def write(self, *lines: str) -> None:
        with self.path.open("a", encoding="utf-8") as file:
            file.writelines(lines)

    def hook(self, event: str = "Stop", *arguments: str, text: str | None = None, **more: Any) -> Outcome:
        told = {"session_id": "s1", "transcript_path": str(self.path), "hook_event_name": event, **more}
        data = json.dumps(told) if text is None else text
        self._monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(data.encode())))
        outcome = self.noctuary("hook", "claude-code", *arguments)
        assert outcome.status == exits.DONE, outcome
        assert outcome.err.count("\n") <= 1
        return outcome

    def kept(self) -> list[tuple[str, str]]:
        packets = self.noctuary("memory", "--json").json["packets"]
        return [(packet["input"], packet["response"]) for packet in reversed(packets)]


@pytest.fixture
def session(noctuary: Line, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Session:
    for name in ("NOCTUARY_CORE", "NOCTUARY_USER"):
        monkeypatch.delenv(name, raising=False)
    return Session(noctuary, tmp_path / "s1.jsonl", monkeypatch)


def test_each_turn_is_kept_once_when_its_answer_is_there(session: Session) -> None:
    session.write(line("user", "Where do owls sleep?", 1), line("assistant", ANSWER, 2))
    said = session.hook(last_assistant_message=ANSWER)
    assert (said.out, said.err) == ("", "")
    session.hook(last_assistant_message=ANSWER)
    assert session.kept() == [("Where do owls sleep?", ANSWER)]
    session.write(line("user", "And larks?", 3), line("assistant", "On the ground.", 4))
    report = session.hook("Stop", "--json", last_assistant_message="On the ground.").json
    assert (report["packets"], report["known"]) == (1, 1)
    assert session.kept()[1] == ("And larks?", "On the ground.")


def test_an_answer_that_is_written_meanwhile_is_waited_for(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    session.write(line("user", "Where do owls sleep?", 1))
    look, looks = hook._tail, []

    def looked(path: Path, size: int) -> bytes:
        looks.append(look(path, size))
        if len(looks) == 2:  # the program writes on while its hook runs
            session.write(line("assistant", ANSWER, 2))
        return looks[-1]

    monkeypatch.setattr(hook, "_tail", looked)
    session.hook(last_assistant_message=ANSWER)
    assert len(looks) == 3
    assert session.kept() == [("Where do owls sleep?", ANSWER)]


def test_an_answer_that_does_not_come_in_time_is_kept_whole_with_the_next_turn(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hook, "ANSWER_SECONDS", 0.1)
    session.write(line("user", "Where do owls sleep?", 1))
    session.hook(last_assistant_message=ANSWER)
    assert session.noctuary("memory").status == exits.FOUND_NOTHING
    session.write(line("assistant", ANSWER, 2), line("user", "And larks?", 3))
    session.hook("UserPromptSubmit", prompt="And larks?")
    assert session.kept() == [("Where do owls sleep?", ANSWER)]
    session.write(line("assistant", "On the ground.", 4))
    session.hook("SessionEnd")
    assert session.kept()[1:] == [("And larks?", "On the ground.")]


@pytest.mark.parametrize(
    "text",
    [
        "", "{", "[]", "7", "{}", "[" * 100_000, '{"hook_event_name": "Stop"}',
        '{"hook_event_name": "Stop", "transcript_path": 7}',
        '{"hook_event_name": "PreToolUse", "transcript_path": "/x"}',
    ],
)  # fmt: skip
def test_what_is_no_turn_is_told_in_a_line_and_is_no_failure(session: Session, text: str) -> None:
    said = session.hook(text=text)
    assert (said.out, said.err.count("\n")) == ("", 1)
    assert "standard input is no Stop hook" in said.err


def test_whatever_goes_wrong_the_agent_goes_on(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    assert session.hook().err.startswith("Import: There is no ")
    session.write("no JSON\n")
    assert session.hook("SessionEnd").out == ""
    assert session.hook("Stop", "--core", "nowhere").err.startswith("Core: There is no core 'nowhere'.")

    async def fall(*_arguments: object) -> None:
        raise RuntimeError("\x1b[2J")

    with monkeypatch.context() as patch:
        patch.setattr(hook, "_keep", fall)
        assert session.hook().err == "Noctuary met a fault of its own; `noctuary log` tells of it.\n"
        patch.setattr(hook, "_keep", stuck)
        patch.setattr(hook, "SECONDS", 0.01)
        assert session.hook().err == "The turn was not kept in time; it comes with the next one.\n"
    monkeypatch.setenv("NOCTUARY_DATABASE_URL", "postgresql://u:p@127.0.0.1:1/none")
    assert session.hook().err.startswith("Database unavailable: ")
    monkeypatch.setenv("NOCTUARY_WATCH", "sometimes")
    assert session.hook().err.startswith("Setting: ")


async def stuck(*_arguments: object) -> None:
    await asyncio.Event().wait()


def test_an_end_user_of_a_core_has_turns_of_his_own(session: Session) -> None:
    session.write(line("user", "Where do owls sleep?", 1), line("assistant", ANSWER, 2))
    assert session.noctuary("cores", "add", "work").status == exits.DONE
    session.hook("Stop", "--core", "work", "--user", "ann", last_assistant_message=ANSWER)
    assert session.noctuary("memory").status == exits.FOUND_NOTHING
    assert session.noctuary("memory", "--core", "work", "--user", "ann").status == exits.DONE
