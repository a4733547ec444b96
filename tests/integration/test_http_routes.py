"""The routes: knowman's shapes over a real index, and errors that tell the client what it did and nothing else."""

from __future__ import annotations

import json
import logging
import re
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from engine.doors.http import problems, turns
from engine.doors.http.problems import AWAY, FAULT, NO_SUCH_NOTE
from engine.errors import DatabaseUnavailable, ModelError
from tests.hostile import NAMES, PAYLOADS
from tests.integration.serving import NOTES, Served, served
from tests.support import eventually

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from engine.settings import Settings


@pytest.fixture
async def door(settings: Settings, tmp_path: Path) -> AsyncIterator[Served]:
    async with served(settings, tmp_path / "notes") as held:
        yield held


async def test_health_is_told_without_the_database(door: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(type(door.engine.database), "connection")
    assert await door.json("/health") == {"status": "ok", "embeddings_provider": "bundled"}


async def test_search_gives_knowmans_citations_and_the_engines_own_time(door: Served) -> None:
    reply = await door.get("/search", "q=owls+hunt&k=1")
    assert reply.status == 200
    (citation,) = reply.json["citations"]
    five = {name: citation[name] for name in ("path", "line_start", "line_end", "text", "distance")}
    assert five == {
        "path": "birds/owls.md", "line_start": 1, "line_end": 5, "text": NOTES["birds/owls.md"].strip(),
        "distance": None,
    }  # fmt: skip
    assert citation["freshness"] == "same"
    assert citation["folder"] == str(door.root)
    name, _, milliseconds = reply.headers["server-timing"].partition(";dur=")
    assert name == "engine"
    assert 0 < float(milliseconds) < 60_000
    assert len((await door.json("/search", "q=owls+lantern"))["citations"]) == 2


async def test_nothing_found_is_an_empty_list(door: Served) -> None:
    assert (await door.json("/search", "q=zebra"))["citations"] == []
    assert (await door.json("/search", "q=%20%00"))["citations"] == []


async def test_a_citation_that_changed_says_so(door: Served) -> None:
    (door.root / "larks.md").write_text("Larks are quiet.\n")
    (citation,) = (await door.json("/search", "q=larks+dawn&k=1"))["citations"]
    assert citation["freshness"] == "changed"


async def test_ask_without_a_model_gives_citations_alone(door: Served) -> None:
    reply = await door.post("/ask", {"q": "when do owls hunt", "k": 1})
    assert reply.status == 200
    assert reply.json["answer"] is None
    assert reply.json["outcome"] == "citations"
    assert [each["path"] for each in reply.json["citations"]] == ["birds/owls.md"]
    nothing = await door.post("/ask", {"q": "zebra"})
    assert (nothing.json["outcome"], nothing.json["citations"]) == ("no_evidence", [])


INVALID = [
    ("/search", "", "q: Field required."),
    ("/search", "q=", "q: String should have at least 1 character."),
    ("/search", "q=" + "x" * 2001, "q: String should have at most 2000 characters."),
    ("/search", "q=x&k=0", "k: Input should be greater than or equal to 1."),
    ("/search", "q=x&k=201", "k: Input should be less than or equal to 200."),
    ("/search", "q=x&k=%1b[2J", "k: Input should be a valid integer, unable to parse string as an integer."),
    ("/jobs/recent", "limit=100000", "limit: Input should be less than or equal to 200."),
    ("/index/99999999999999999999", "", "job_id: Input should be less than or equal to 9223372036854775807."),
]


async def test_what_is_not_valid_is_a_sentence_that_repeats_nothing(door: Served) -> None:
    for path, query, sentence in INVALID:
        reply = await door.get(path, query)
        assert (reply.status, reply.json) == (422, {"detail": sentence})


BODIES: list[tuple[object, int]] = [
    ({"q": "owls", "k": True}, 422),
    ({"q": "owls", "k": "3"}, 422),
    ({"q": "owls", "k": 1.5}, 422),
    ({"q": "owls", "k": 3.0}, 200),
    ({"q": None}, 422),
    ({"q": "x" * 2001}, 422),
    ({"q": "x" * 2000}, 200),
    (["owls"], 422),
    (None, 422),
    (b"{", 422),
    (b"\xff\xfe", 422),
    (b'{"q": "\\ud800 owls"}', 422),
    (b"[" * 50_000, 400),
    (b"x" * 70_000, 413),
]


async def test_a_question_of_any_shape_is_answered_or_refused(door: Served) -> None:
    for body, status in BODIES:
        reply = await door.post("/ask", body)
        assert reply.status == status, reply
        if status != 200:
            assert set(reply.json) == {"detail"}
            assert "ecodeError" not in reply.json["detail"]


async def test_paths_and_methods_that_there_are_not(door: Served) -> None:
    for path in ("/nope", "/docs", "/redoc", "/search/", "//search", "/index/1/2", "/favicon.ico"):
        reply = await door.get(path)
        assert (reply.status, reply.json) == (404, {"detail": "Not Found."}), path
    reply = await door.post("/search")
    assert (reply.status, reply.headers["allow"]) == (405, "GET")


async def test_an_indexing_is_asked_for_and_asked_after(door: Served) -> None:
    first = await door.post("/index")
    assert first.status == 202
    number = first.json["job_id"]
    assert await door.json(f"/index/{number}") == {"id": number, "status": "done", "error": None}
    (door.root / "swifts.md").write_text("Swifts fly.\n")
    (door.root / "birds" / "bad.md").write_bytes(b"\xff\xfe\x00")
    number = (await door.post("/index", {})).json["job_id"]
    assert (await door.json(f"/index/{number}"))["status"] == "pending"
    one = (await door.post("/index", {"path": "swifts.md"})).json["job_id"]
    await door.engine.notes.work_until_idle(embed=False)
    assert await door.json(f"/index/{one}") == {"id": one, "status": "done", "error": None}
    assert await door.json(f"/index/{number}") == {
        "id": number,
        "status": "failed",
        "error": "1 of 2 failed.",
    }
    assert (await door.json("/search", "q=swifts"))["citations"][0]["path"] == "swifts.md"
    reply = await door.get(f"/index/{one + 1}")
    assert (reply.status, reply.json) == (404, {"detail": "There is no indexing of that number."})


async def test_a_folder_of_notes_can_be_named_by_its_path_or_within(door: Served) -> None:
    (door.root / "birds" / "kite.md").write_text("Kites.\n")
    (door.root / "other.md").write_text("Other.\n")
    for path in ("birds", str(door.root / "birds"), "birds/kite.md"):
        assert (await door.post("/index", {"path": path})).status == 202, path
    await door.engine.notes.work_until_idle(embed=False)
    assert [job.path for job in await door.engine.notes.jobs(limit=1)] == ["birds/kite.md"]


NO_NOTES = [
    *(
        "nope.md",
        "../secret.md",
        "/etc/passwd",
        "~/x.md",
        "~root",
        "\0",
        "x" * 4000,
        "birds/../..",
        "." * 300,
    ),
    *(name for name in NAMES if name and not re.search("[\ud800-\udfff]", name)),  # those are no text
]


async def test_a_path_that_is_no_note_is_refused_without_a_word_on_the_disk(door: Served) -> None:
    (door.root.parent / "secret.md").write_text("Secret.\n")
    for path in NO_NOTES:
        reply = await door.post("/index", {"path": path})
        assert (reply.status, reply.json) == (404, {"detail": NO_SUCH_NOTE}), path
    assert (await door.post("/index", b'{"path": "\\udcff.md"}')).status == 422


async def test_status_and_files_tell_of_index_and_disk(door: Served) -> None:
    (door.root / "new.md").write_text("New.\n")
    (door.root / "larks.md").unlink()
    (door.root / "plan.md").write_text("Another plan.\n")
    (door.root / "bad.md").write_bytes(b"\xff\xfe\x00")
    await door.engine.notes.ingest(door.root / "bad.md")
    await door.engine.notes.work_until_idle(embed=False)
    await door.engine.notes.drift()
    status = await door.json("/status")
    assert (status["files_on_disk"], status["files_indexed"], status["chunks"]) == (4, 3, 3)
    assert status["embeddings_model"] == "all-MiniLM-L6-v2-int8"
    assert status["jobs"] | {"rate": 0} == {"pending": 0, "processing": 0, "failed": 1, "done": 3, "rate": 0}
    causes = {
        name: status["drift"][name]
        for name in ("not_indexed", "orphaned", "changed", "job_failed", "other_model")
    }
    assert causes == {"not_indexed": 1, "orphaned": 1, "changed": 1, "job_failed": 1, "other_model": 0}
    assert status["vectors"]["embedded"] == 0
    assert status["vectors"]["pending"] > 0
    files = {
        each["path"]: (each["chunks"], each["indexed"], each["on_disk"]) for each in await door.json("/files")
    }
    assert files == {
        "bad.md": (0, False, True),
        "birds/owls.md": (1, True, True),
        "larks.md": (1, True, False),
        "new.md": (0, False, True),
        "plan.md": (1, True, True),
    }
    jobs = await door.json("/jobs/recent", "limit=1")
    assert [(job["type"], job["status"], job["path"]) for job in jobs] == [
        ("ingest_path", "failed", "bad.md")
    ]
    assert str(door.root) not in json.dumps(jobs)
    assert "UTF" not in json.dumps(jobs)


async def test_a_server_that_does_not_watch_looks_again_when_its_look_is_old(
    door: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert (await door.json("/status"))["files_on_disk"] == 3
    (door.root / "new.md").write_text("New.\n")
    assert (await door.json("/status"))["files_on_disk"] == 3
    old = door.engine.notes.last_drift
    assert old is not None
    door.engine.notes._standing.report = replace(old, at=old.at.replace(year=2020))
    assert (await door.json("/status"))["files_on_disk"] == 4


async def test_what_is_searched_is_recent(door: Served) -> None:
    await door.get("/search", "q=owls")
    await door.get("/search", "q=zebra")

    async def both() -> bool:
        return len(await door.json("/traces/recent")) == 2

    await eventually(both)
    last, first = await door.json("/traces/recent")
    assert (last["query"], last["citation_count"], last["answered"], last["kind"]) == (
        "zebra",
        0,
        False,
        "search",
    )
    assert (first["query"], first["citation_count"], first["answered"]) == ("owls", 1, True)
    assert first["door"] == "noctuary serve"
    assert first["latency_ms"] > 0
    assert last["id"] > first["id"]


async def test_hostile_queries_and_names_come_back_as_json(door: Served) -> None:
    from urllib.parse import quote

    for payload in PAYLOADS.values():
        query = quote(payload.encode("utf-8", "surrogatepass"))[:5000]
        assert (await door.get("/search", f"q={query}")).status in {200, 422}
    hostile = [name for name in NAMES if name.strip(".") and not name.startswith(".")]
    for name in hostile:
        (door.root / f"{name}.md").write_text("The kestrel.\n")
    await door.engine.notes.index_all()
    await door.engine.notes.work_until_idle(embed=False)
    assert len((await door.json("/search", "q=kestrel&k=200"))["citations"]) == 1
    for path in ("/status", "/files", "/jobs/recent", "/traces/recent"):
        reply = await door.get(path)
        assert reply.status == 200
        reply.body.decode("utf-8")


async def test_a_database_that_is_away_is_told_with_when_to_come_again(
    door: Served, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def away(*_: object, **__: object) -> None:
        raise DatabaseUnavailable(
            "The database at secret-host:5432 cannot be reached.", remedy="Check secret."
        )

    monkeypatch.setattr(door.engine.notes, "search", away)
    monkeypatch.setattr(door.engine.notes, "status", away)
    for path, query in (("/search", "q=x"), ("/status", "")):
        reply = await door.get(path, query)
        assert (reply.status, reply.json) == (503, {"detail": AWAY})
        assert int(reply.headers["retry-after"]) > 0


@pytest.mark.parametrize(
    "error", [RuntimeError("secret /root/path"), ModelError("secret"), KeyError("secret")]
)
async def test_a_fault_is_told_by_a_number_that_the_log_has_too(
    door: Served, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    async def faulty(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(door.engine.notes, "jobs", faulty)
    reply = await door.get("/jobs/recent")
    assert reply.status == 500
    assert set(reply.json) == {"detail", "id"}
    assert reply.json["detail"] == FAULT
    told = [record.text for record in door.engine.log.records() if reply.json["id"] in record.text]
    assert told == [f"GET /jobs/recent: fault {reply.json['id']}"]
    stored = (door.engine.settings.paths.state / "noctuary.log").read_text()
    assert "Traceback" in stored
    assert reply.headers["x-content-type-options"] == "nosniff"


async def test_who_waits_too_long_for_a_turn_is_told_to_come_again(
    door: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    held = turns.Turns(1, 0.01)
    async with held._free:
        with pytest.raises(problems.Busy):
            async with held.turn():
                raise AssertionError("it was not its turn")
    async with held.turn():
        pass

    async def slow(*_: object, **__: object) -> None:
        raise problems.Busy

    monkeypatch.setattr(door.engine.notes, "search", slow)
    reply = await door.get("/search", "q=x")
    assert (reply.status, reply.json, reply.headers["retry-after"]) == (503, {"detail": problems.BUSY}, "2")


async def test_the_log_tells_of_requests_and_not_of_what_they_ask(door: Served) -> None:
    await door.get("/search", "q=heronsecret")
    await door.post("/ask", {"q": "lanternsecret"})
    await door.get("/status")
    await door.get("/a\u202eb\x1b[2J" + "c" * 500)
    told = [record.text for record in door.engine.log.records() if record.source == "http"]
    assert [line.rsplit(" ", 2)[0] for line in told][:2] == ["GET /search 200", "POST /ask 200"]
    assert len(told) == 3
    assert told[2].startswith("GET /a%E2%80%AEb%1B%5B2Jccc")
    assert len(told[2]) < 300
    assert "secret" not in "".join(told)
    logging.getLogger("noctuary").setLevel(logging.DEBUG)
    await door.get("/search", "q=heronsecret")
    assert door.engine.log.records()[-1].text == "asked for ?q=heronsecret"


async def test_every_answer_is_for_our_own_pages_and_kept_by_nobody(door: Served) -> None:
    for path in ("/health", "/search", "/nope", "/status", "/dashboard", "/openapi.json"):
        headers = (await door.get(path)).headers
        assert headers["cross-origin-resource-policy"] == "same-origin"
        assert headers["cache-control"] == "no-store"
        assert "access-control-allow-origin" not in headers
        assert "server" not in headers
    page = await door.get("/dashboard")
    assert page.headers["content-security-policy"].startswith("default-src 'none'; script-src 'sha256-")
    assert page.headers["content-type"] == "text/html; charset=utf-8"


async def test_with_a_token_only_health_and_the_bare_page_are_open(
    settings: Settings, tmp_path: Path
) -> None:
    guarded = replace(settings, api_token="s3cret")
    async with served(guarded, tmp_path / "notes") as door:
        document = (await door.get("/openapi.json", headers={"authorization": "Bearer s3cret"})).json
        assert document["paths"]["/search"]["get"]["security"] == [{"token": []}, {"key": []}]
        assert "security" not in document["paths"]["/health"]["get"]
        for path, item in document["paths"].items():
            for method in item:
                reply = await door.send(method.upper(), path)
                assert reply.status == (200 if path == "/health" else 401), path
        assert (await door.get("/openapi.json")).status == 401
        page = await door.get("/dashboard")
        assert page.status == 200
        assert b"owls" not in page.body
