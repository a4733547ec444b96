"""The wire: the unmodified `khwan` client from PyPI against `noctuary serve`, its retries and errors included."""

from __future__ import annotations

import threading
import time
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import khwan
import pytest
from khwan import AsyncKhwan, Khwan, KhwanError

from engine.doors import exits
from tests.integration.server_process import Serving, until
from tests.support import eventually

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.integration.shell import Shell

KEY = "kwk_live_0wner"
CORRECTION = "No, that is wrong: I want answers in one line."


@pytest.fixture(autouse=True)
def no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")


@pytest.fixture
def api(shell: Shell) -> Iterator[Serving]:
    shell.env |= {"API_TOKEN": KEY, "NOCTUARY_API_KEYS": "acme=kwk_acme"}
    with Serving(shell, "--no-watch") as serving:
        yield serving
        assert not [line for line in serving.told() if line["level"] == "error"]


def client(api: Serving, **options: Any) -> Khwan:
    return Khwan(**({"api_key": KEY} | options), base_url=api.url)


def refused(error: pytest.ExceptionInfo[KhwanError], status: int) -> bool:
    return error.value.status == status


def test_the_whole_loop(api: Serving) -> None:
    kw = client(api, user_id="zoë")
    turn = kw.prepare(CORRECTION)
    assert turn.allowed
    assert turn.messages[-1]["role"] == "user"
    assert CORRECTION in turn.messages[-1]["content"]
    verdict = kw.verify(turn, "From now on, in one line.")
    assert verdict["ok"] is True
    kept = kw.record(turn, "From now on, in one line.", occurred_at=datetime(2024, 2, 3, tzinfo=UTC))
    assert (kept["kind"], kept["confidence"]) == ("correction", 0.7)
    (packet,) = kw.memory(limit=5)["packets"]
    assert (packet["input"], packet["at"]) == (CORRECTION, "2024-02-03T00:00:00Z")
    assert kw.lessons() == []

    asked: list[str] = []

    def distill(system: str, prompt: str) -> str:
        assert system
        asked.append(prompt)
        return "Answer in one line."

    until(lambda: kw.synthesize(distill)["lessons_created"])
    assert CORRECTION in asked[0]
    (lesson,) = kw.lessons(limit=10)
    assert lesson["response_text"] == "Answer in one line."
    assert lesson["source_link"] == f"/lessons/{lesson['id']}/sources"
    assert kw.prepare("Please answer in one line.").lessons == ["Answer in one line."]

    kw.edit_lesson(lesson["id"], "Answer in two lines.")
    assert [each["response_text"] for each in kw.lessons()] == ["Answer in two lines."]
    assert kw.prepare("Please answer in one line.").lessons == ["Answer in two lines."]
    kw.delete_lesson(lesson["id"])
    assert kw.lessons() == []
    assert kw.prepare("Please answer in one line.").lessons == []
    assert kw.synthesize(distill)["status"] == "skipped"
    assert kw.sync()["status"] == "skipped"
    assert kw.metrics()["packets"] == 1
    assert kw.cores() == [{"slug": "default", "name": "Default", "is_default": True}]


def test_a_cluster_that_fails_and_one_that_says_nothing_are_no_failure(api: Serving) -> None:
    kw = client(api)
    kw.record(kw.prepare(CORRECTION), "Yes.")
    until(lambda: kw.synthesize_prepare()["synthesis_token"])

    def broken(_system: str, _prompt: str) -> str:
        raise OSError("no model")

    done = kw.synthesize(broken)
    assert (done["lessons_created"], done["skipped"], done["status"]) == (0, 1, "completed")
    assert kw.lessons() == []


def test_a_record_in_the_background_lands_before_the_end(api: Serving) -> None:
    kw = client(api)
    assert kw.record(kw.prepare("Owls hunt at night."), "Yes.", background=True) == {"queued": True}
    kw.flush()
    assert [each["input"] for each in kw.memory()["packets"]] == ["Owls hunt at night."]


async def test_the_loop_of_an_asynchronous_host(api: Serving) -> None:
    async with AsyncKhwan(bearer_token=KEY, base_url=api.url, user_id="bea") as kw:
        turn = await kw.prepare("My name is Zoë.")
        assert (await kw.verify(turn, "Hello, Zoë."))["ok"] is True
        assert (await kw.record(turn, "Hello, Zoë."))["ok"] is True
        assert await kw.lessons() == {"lessons": []}  # as it came: this one does not unpack it
        assert await kw.cores() == client(api).cores()
        again = await kw.prepare("My name is Bob, right?")
        assert again.raw()["contradiction"]["known"] == "Zoë"
        await kw.record(again, "Really?", background=True)

        async def both() -> bool:
            return len((await kw.memory())["packets"]) == 2

        await eventually(both)
        with pytest.raises(KhwanError) as error:
            await kw.record(turn, "Another answer.")
        assert refused(error, 410)
    async with AsyncKhwan(api_key=KEY, base_url=api.url, user_id="bea", core="nowhere") as kw:
        with pytest.raises(KhwanError, match="check the core") as error:
            await kw.memory()
        assert refused(error, 404)


def test_what_goes_wrong_is_told_by_its_status(api: Serving) -> None:
    with pytest.raises(KhwanError, match="unauthorized") as error:
        client(api, api_key="kwk_wrong").cores()
    assert refused(error, 401)
    with pytest.raises(KhwanError, match="check the core") as error:
        client(api, core="nowhere").prepare("x")
    assert refused(error, 404)
    kw = client(api)
    turn = kw.prepare("Owls hunt at night.")
    kw.record(turn, "Yes.")
    with pytest.raises(KhwanError, match="was used") as error:
        kw.record(turn, "No.")
    assert refused(error, 410)
    with pytest.raises(KhwanError, match="input: ") as error:
        kw.prepare("")
    assert refused(error, 422)
    for call in (lambda: kw.delete_lesson("99"), lambda: kw.edit_lesson("99", "x")):
        with pytest.raises(KhwanError) as error:
            call()
        assert refused(error, 404)
    with pytest.raises(KhwanError) as error:
        kw.synthesize_record("never given out", [])
    assert refused(error, 410)
    with pytest.raises(KhwanError) as error:
        kw._request("POST", "/chat", {"api_key": "sk-x"})
    assert refused(error, 410)


def test_another_account_has_another_memory_under_the_same_names(api: Serving, shell: Shell) -> None:
    mine, theirs = client(api, user_id="alice"), client(api, user_id="alice", api_key="kwk_acme")
    mine.record(mine.prepare("The heron is mine."), "Yes.")
    assert theirs.cores() == []
    assert shell.run("cores", "add", "default", "--account", "acme").returncode == exits.DONE
    assert theirs.memory()["packets"] == []
    assert theirs.prepare("Whose is the heron?").sources == []
    with pytest.raises(KhwanError) as error:
        theirs._request("GET", "/search?q=heron")
    assert refused(error, 403)


def test_who_asks_too_often_waits_as_long_as_he_is_told(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    waits: list[float] = []
    monkeypatch.setattr(khwan, "time", SimpleNamespace(sleep=waits.append, time=time.time))
    shell.env["RATE_LIMIT_PER_MINUTE"] = "2"
    with Serving(shell, "--no-watch", "--no-work") as server:
        kw = client(server)
        assert kw.cores() == kw.cores()
        with pytest.raises(KhwanError, match="rate limited") as error:
            kw.cores()
    assert refused(error, 429)
    assert len(waits) == 2
    assert all(0 < seconds <= 60 and seconds == int(seconds) for seconds in waits)


def test_eight_threads_record_at_once_and_nothing_is_lost(api: Serving) -> None:
    def talk(number: int) -> None:
        kw = client(api, user_id="crowd")
        for turn in range(3):
            kw.record(kw.prepare(f"Turn {turn} of {number}."), "Yes.")

    threads = [threading.Thread(target=talk, args=[number]) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    kept = [each["input"] for each in client(api, user_id="crowd").memory(limit=100)["packets"]]
    assert sorted(kept) == sorted(f"Turn {turn} of {number}." for turn in range(3) for number in range(8))
