"""Memory by HTTP: Khwan's shapes, whose memory a request means, and errors that tell what the client did."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from engine.doors.http.bounds import LARGE_BYTES
from engine.errors import SynthesisBusy
from engine.memory.model import BrainKey
from tests.hostile import PAYLOADS
from tests.integration.serving import Served, served
from tests.support import eventually

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from engine.settings import Settings
    from tests.asgi import Headers

OWNER: Headers = {"x-api-key": "0wner"}
ACME: Headers = {"x-api-key": "acme-1"}


@pytest.fixture
async def door(settings: Settings, tmp_path: Path) -> AsyncIterator[Served]:
    async with served(settings, tmp_path / "notes") as held:
        yield held


@pytest.fixture
async def guarded(settings: Settings, tmp_path: Path) -> AsyncIterator[Served]:
    keyed = replace(settings, api_token="0wner", api_keys=(("acme", "acme-1"),))
    async with served(keyed, tmp_path / "notes") as held:
        yield held


async def turn(door: Served, text: str, answer: str = "Noted.", headers: Headers | None = None) -> Any:
    prepared = await door.post("/prepare", {"input": text}, headers)
    assert prepared.status == 200, prepared
    sent = {"turn_token": prepared.json["turn_token"], "answer": answer}
    recorded = await door.post("/record", sent, headers)
    assert recorded.status == 200, recorded
    return recorded.json


async def learn(door: Served, rule: str, headers: Headers | None = None) -> str:
    """Teach a rule by the caller's own model; the id of its lesson."""
    await turn(door, "No, that is wrong: I want answers in one line.", headers=headers)
    await door.engine.start(watch=False, work=False, embed=True)

    async def clusters() -> Any:
        batch = (await door.post("/synthesize/prepare", headers=headers)).json
        return batch if batch["synthesis_token"] else None

    batch = await eventually(clusters)
    rules = [{"cluster_id": batch["clusters"][0]["id"], "text": rule}]
    done = await door.post(
        "/synthesize/record", {"synthesis_token": batch["synthesis_token"], "lessons": rules}, headers
    )
    assert (done.status, done.json["lessons_created"], done.json["status"]) == (200, 1, "completed")
    return str(done.json["outcomes"][0]["lesson"])


async def test_a_turn_is_prepared_verified_and_recorded_in_khwans_shapes(door: Served) -> None:
    prepared = (await door.post("/prepare", {"input": "My name is Alice.", "model": "any"})).json
    assert set(prepared) >= {
        "messages", "coherence", "lessons", "sources", "allowed", "reason", "turn_token", "contradiction",
    }  # fmt: skip
    assert prepared["messages"][-1]["role"] == "user"
    assert (prepared["allowed"], prepared["reason"], prepared["sources"]) == (True, None, [])
    token = prepared["turn_token"]
    verified = (await door.post("/verify", {"answer": "Your name is Bob.", "turn_token": token})).json
    assert set(verified) == {"ok", "reason", "coherence", "contradiction"}
    recorded = (await door.post("/record", {"turn_token": token, "answer": "Hello, Alice."})).json
    assert (recorded["ok"], recorded["kind"], recorded["confidence"]) == (True, "raw", 0.5)
    again = (await door.post("/record", {"turn_token": token, "answer": "Hello, Alice."})).json
    assert (again["packet"], again["again"]) == (recorded["packet"], True)
    other = await door.post("/record", {"turn_token": token, "answer": "Hello, Bob."})
    assert other.status == 410
    assert other.json["detail"].startswith("The turn token was used")
    (packet,) = (await door.json("/memory"))["packets"]
    assert (packet["input"], packet["response"], packet["origin"]) == (
        "My name is Alice.", "Hello, Alice.", "http",
    )  # fmt: skip
    metrics = await door.json("/metrics")
    assert (metrics["packets"], metrics["unseen_packets"]) == (1, 1)
    assert await door.json("/cores") == [{"slug": "default", "name": "Default", "is_default": True}]


async def test_what_was_said_is_recalled_and_contradicted(door: Served) -> None:
    await turn(door, "My name is Alice.")
    prepared = (await door.post("/prepare", {"input": "My name is Bob, right?"})).json
    assert prepared["contradiction"] == {"key": "name", "known": "Alice", "claimed": "Bob"}
    verified = (await door.post("/verify", {"answer": "Your name is Bob."})).json
    assert (verified["ok"], verified["contradiction"]["claimed"]) == (False, "Bob")


OCCURRED = {
    "2021-03-04T05:06:07": "2021-03-04T05:06:07Z",
    "2021-03-04T05:06:07+02:00": "2021-03-04T03:06:07Z",
    "2021-03-04": "2021-03-04T00:00:00Z",
    "0001-01-01T00:00:00+14:00": "1900-01-01T00:00:00Z",
    "2999-01-01T00:00:00+02:00": None,
    "9999-12-31T23:59:59-14:00": None,
}
"""When a turn was, as its client says, and as it is kept; None: now."""


async def test_when_a_turn_was_is_taken_from_its_client_within_reason(door: Served) -> None:
    for occurred in OCCURRED:
        prepared = (await door.post("/prepare", {"input": f"Owls in {occurred}."})).json
        sent = {"turn_token": prepared["turn_token"], "answer": "Yes.", "occurred_at": occurred}
        assert (await door.post("/record", sent)).status == 200
    kept = {packet["input"]: packet["at"] for packet in (await door.json("/memory"))["packets"]}
    now = datetime.now(UTC)
    for occurred, at in OCCURRED.items():
        found = kept[f"Owls in {occurred}."]
        assert found == at if at else now - timedelta(minutes=5) < datetime.fromisoformat(found) <= now


INVALID: list[tuple[str, object]] = [
    ("/prepare", {}),
    ("/prepare", {"input": ""}),
    ("/prepare", {"input": " \n"}),
    ("/prepare", {"input": 7}),
    ("/prepare", {"input": "x", "constitution": "nowhere"}),
    ("/prepare", {"input": "x", "channel": ""}),
    ("/prepare", b'{"input": "\\ud800 owls"}'),
    ("/record", {"answer": "x"}),
    ("/record", {"turn_token": None, "answer": "x"}),
    ("/record", {"turn_token": "", "answer": "x"}),
    ("/record", {"turn_token": "x", "answer": "x", "occurred_at": "soon"}),
    ("/record", {"turn_token": "x", "answer": "x", "occurred_at": 7}),
    ("/verify", {"answer": ""}),
    ("/synthesize/record", {"synthesis_token": None, "lessons": []}),
    ("/synthesize/record", {"synthesis_token": "x", "lessons": [{"text": "x"}]}),
    ("/synthesize/record", {"synthesis_token": "x", "lessons": [{"cluster_id": "1", "text": None}]}),
]


async def test_what_is_no_turn_is_refused_in_a_sentence(door: Served) -> None:
    for path, body in INVALID:
        reply = await door.post(path, body)
        assert reply.status == 422, (path, body, reply)
        assert set(reply.json) == {"detail"}
        assert str(door.engine.settings.paths.config) not in reply.json["detail"]
    assert (await door.json("/memory"))["packets"] == []


async def test_a_token_that_was_never_given_out_is_gone(door: Served) -> None:
    for path, body in (
        ("/record", {"turn_token": "x", "answer": "x"}),
        ("/verify", {"turn_token": "x", "answer": "x"}),
        ("/synthesize/record", {"synthesis_token": "x", "lessons": []}),
    ):
        reply = await door.post(path, body)
        assert reply.status == 410, (path, reply)


async def test_a_core_that_is_unknown_is_not_made(door: Served) -> None:
    for path, body in (("/prepare", {"input": "x"}), ("/sync", None), ("/synthesize/prepare", None)):
        reply = await door.post(path, body, {"x-khwan-core": "nowhere"})
        assert (reply.status, reply.json) == (404, {"detail": "There is no core 'nowhere'."}), path
    for path in ("/memory", "/lessons", "/metrics", "/lessons/1/sources"):
        assert (await door.get(path, headers={"x-khwan-core": "nowhere"})).status == 404, path
    assert len(await door.json("/cores")) == 1


async def test_a_core_and_an_end_user_have_memories_of_their_own(door: Served) -> None:
    await door.engine.memory.add_core("work")
    whose: list[Headers] = [
        {}, {"x-khwan-core": "work"}, {"x-khwan-user": "ann"}, {"x-khwan-user": "ann1"},
        {"x-khwan-core": "work", "x-khwan-user": "ann"}, {"x-khwan-user": "%"},
    ]  # fmt: skip
    for number, headers in enumerate(whose):
        await turn(door, f"The heron is number {number}.", headers=headers)
    for number, headers in enumerate(whose):
        (packet,) = (await door.get("/memory", headers=headers)).json["packets"]
        assert packet["input"] == f"The heron is number {number}."
        again = (await door.post("/prepare", {"input": "heron number"}, headers)).json
        told = [source["input"] for source in again["sources"]]
        assert all(text == packet["input"] for text in told)


async def test_a_name_in_a_header_is_utf8_or_latin1_and_never_a_control_sign(door: Served) -> None:
    key = BrainKey(user="zoë")
    for written in ("zoë".encode().decode("latin-1"), "zoë"):  # as its bytes come over the line
        await turn(door, "Owls hunt.", headers={"x-khwan-user": written})
    assert len(await door.engine.memory.recent(key)) == 2
    for name in ("", "a\0b", "a\x1b[2J", "a\x85b", "x" * 257):
        for header in ("x-khwan-user", "x-khwan-core"):
            reply = await door.get("/memory", headers={header: name})
            assert reply.status == 422, (header, name)
            assert name == "" or name not in reply.json["detail"]


async def test_a_lesson_is_listed_traced_worded_anew_and_thrown_out(door: Served) -> None:
    number = await learn(door, "Answer in one line.")
    (lesson,) = (await door.json("/lessons", "limit=5"))["lessons"]
    assert (lesson["id"], lesson["response_text"]) == (number, "Answer in one line.")
    found = await door.json(lesson["source_link"])
    assert "one line" in found["sources"][0]["input"]
    assert found["lesson"] == lesson
    edited = await door.send("PATCH", f"/lessons/{number}", {"text": "Answer in two lines."})
    assert (edited.status, edited.json["response_text"]) == (200, "Answer in two lines.")
    assert edited.json["sources"] == lesson["sources"]
    given = (await door.post("/prepare", {"input": "Please answer in two lines."})).json
    assert given["lessons"] == ["Answer in two lines."]
    assert (await door.send("DELETE", f"/lessons/{number}")).json == {
        "ok": True, "id": number, "deleted": True,
    }  # fmt: skip
    assert (await door.json("/lessons"))["lessons"] == []
    for method, path in (("DELETE", ""), ("PATCH", ""), ("GET", "/sources")):
        body = {"text": "x"} if method == "PATCH" else None
        assert (await door.send(method, f"/lessons/{number}{path}", body)).status == 404, method


async def test_a_lesson_that_is_not_there_is_404(door: Served) -> None:
    for method, path in (("DELETE", ""), ("PATCH", ""), ("GET", "/sources")):
        body = {"text": "x"} if method == "PATCH" else None
        assert (await door.send(method, f"/lessons/99{path}", body)).status == 404, method
    assert (await door.send("DELETE", "/lessons/L1")).status == 422
    for text in ("", " \n", "x" * 2_001):
        assert (await door.send("PATCH", "/lessons/99", {"text": text})).status == 422


async def test_learning_now_counts_what_it_did_and_waits_its_turn(
    door: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = (await door.post("/sync")).json
    assert (done["status"], done["lessons_created"], done["skipped"]) == ("skipped", 0, 0)

    async def busy(*_arguments: object, **_options: object) -> None:
        raise SynthesisBusy("Another process is learning in this brain.")

    monkeypatch.setattr(door.engine.memory.synthesis, "run", busy)
    reply = await door.post("/sync")
    assert (reply.status, reply.headers["retry-after"]) == (503, "1")


async def test_the_route_that_took_a_providers_key_is_gone(door: Served) -> None:
    reply = await door.post("/chat", {"api_key": "sk-secret", "message": "hello"})
    assert reply.status == 410
    assert "/prepare" in reply.json["detail"]
    assert "sk-secret" not in reply.json["detail"]


async def test_a_turn_of_a_megabyte_goes_through_and_no_more_than_four(door: Served) -> None:
    said = "owl " * 250_000
    recorded = await turn(door, said, answer=said)
    (packet,) = (await door.json("/memory"))["packets"]
    assert (packet["id"], packet["input"]) == (recorded["packet"], said)
    assert (await door.post("/prepare", {"input": "x" * LARGE_BYTES})).status == 413
    assert (await door.post("/ask", {"q": said})).status == 413


async def test_hostile_text_comes_back_as_data(door: Served) -> None:
    for payload in PAYLOADS:
        await turn(door, f"The heron says {payload}")
    reply = await door.get("/memory", "limit=1000")
    assert len(reply.json["packets"]) == len(PAYLOADS)
    assert all(byte >= 0x20 and byte != 0x7F for byte in reply.body)


async def test_an_account_sees_nothing_of_another(guarded: Served) -> None:
    memory = guarded.engine.memory
    assert (await guarded.get("/cores", headers=ACME)).json == []
    assert (await guarded.post("/prepare", {"input": "x"}, ACME)).status == 404, "it has no core yet"
    await memory.add_core("default", account="acme")
    number = await learn(guarded, "Answer in one line.", OWNER)
    mine = (await guarded.post("/prepare", {"input": "What did I say of lines?"}, OWNER)).json
    batch = (await guarded.post("/synthesize/prepare", headers=OWNER)).json
    for headers in (ACME, ACME | {"x-khwan-core": "default"}, ACME | {"x-khwan-user": "local"}):
        assert (await guarded.get("/memory", headers=headers)).json["packets"] == []
        assert (await guarded.get("/lessons", headers=headers)).json["lessons"] == []
        assert (await guarded.get("/metrics", headers=headers)).json["packets"] == 0
        theirs = (await guarded.post("/prepare", {"input": "What did I say of lines?"}, headers)).json
        assert (theirs["sources"], theirs["lessons"]) == ([], [])
        stolen = {"turn_token": mine["turn_token"], "answer": "x"}
        assert (await guarded.post("/record", stolen, headers)).status == 410
        assert (await guarded.post("/verify", stolen, headers)).status == 410
        rules = {"synthesis_token": batch["synthesis_token"] or "x", "lessons": []}
        assert (await guarded.post("/synthesize/record", rules, headers)).status == 410
        assert (await guarded.get(f"/lessons/{number}/sources", headers=headers)).status == 404
        assert (await guarded.send("PATCH", f"/lessons/{number}", {"text": "x"}, headers)).status == 404
        assert (await guarded.send("DELETE", f"/lessons/{number}", headers=headers)).status == 404
    assert (await guarded.get("/lessons", headers=OWNER)).json["lessons"][0]["id"] == number
    recorded = await guarded.post("/record", {"turn_token": mine["turn_token"], "answer": "x"}, OWNER)
    assert recorded.status == 200


async def test_the_notes_are_the_owners_alone(guarded: Served) -> None:
    document = (await guarded.get("/openapi.json", headers=OWNER)).json
    memory = {"prepare", "record", "verify", "lessons", "synthesize", "sync", "memory", "metrics", "cores"}
    for path, item in document["paths"].items():
        if path == "/health" or path.split("/")[1] in memory:
            continue
        for method in item:
            reply = await guarded.send(method.upper(), path, headers=ACME)
            assert reply.status == 403, path
    assert (await guarded.get("/search", "q=owls", OWNER)).status == 200
