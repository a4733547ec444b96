"""A model of the library sentence-transformers, loaded and asked in whichever thread calls. Blocks.

The library comes with an extra and is imported by `load` alone: 6 s on an idle machine, and 300 MB.
"""

from __future__ import annotations

import hashlib
import logging
import os
import re
import threading
import warnings
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine.errors import ModelError
from engine.models.embedding import counted, languages
from engine.packages import install
from engine.settings.paths import is_folder

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import numpy as np
    from numpy.typing import NDArray
    from sentence_transformers import SentenceTransformer

    from engine.models.embedding.counted import Piece

    Vectors = NDArray[np.float32]

INSTALL = f"{install('sentence-transformers')} The CPU build of torch is enough."

QUERY, PASSAGE = "query", "passage"
"""What a text is embedded as."""

_PROMPTS = {QUERY: ("query",), PASSAGE: ("document", "passage", "corpus")}
"""Where a model's configuration says what to put before a text."""

_E5 = re.compile(r"\be5-(?!.*instruct)", re.IGNORECASE)
"""Models trained with `query: ` and `passage: `, of which not all say so in their configuration."""

_MULTILINGUAL = re.compile(r"multilingual|bge-m3|labse|xlm", re.IGNORECASE)
MANY_PIECES = 100_000
"""A vocabulary of that many pieces has words of many languages: 30,000 to 50,000 are English alone,
119,547 (multilingual BERT) and 250,002 (XLM-R) are not."""

MOST_TOKENS = 8192
"""The largest window, for models that know no limit or a larger one."""

LEAST_WINDOW = 8
"""Tokens below which a window is not made smaller to fit what stands around it."""

OVERLAP = 0.125
"""The share of a window that repeats the one before it, so that a sentence on the seam is read whole once."""

LETTERS = 8
"""Characters a token: a longer text is taken apart without being counted as a whole first."""

PORTION = 256
"""Texts tokenized at a time: some milliseconds."""

THREADS = min(2, os.cpu_count() or 1)
HUB_TIMEOUT = 10.0
"""Seconds to learn that the hub cannot be reached. The library itself tries for 70."""

SAMPLE, SAMPLES = 65_536, 16
"""Bytes and places at which a weight file is read to tell it from another: a model that was trained on
differs everywhere."""

BLANK = "."
"""Read in place of a text without any visible character: some models make nothing of nothing."""

LIBRARIES = ("sentence_transformers", "transformers", "huggingface_hub", "torch", "filelock")


class SentenceModel:
    """A loaded model. Its methods may be called in several threads at once."""

    def __init__(self, model: SentenceTransformer, name: str, version: str) -> None:
        self._model = model
        self._tokenizing = threading.Lock()  # a fast tokenizer refuses a second thread
        self._prompts = {kind: _prompt(model.prompts, name, kind) for kind in _PROMPTS}
        signs = getattr(model.tokenizer, "all_special_tokens", None) or []
        self._signs = _first_letters(signs)
        self.token_limit = _token_limit(model)
        self.model_id = f"st:{name}@{version}"
        self._reads_all = bool(_MULTILINGUAL.search(name)) or _vocabulary(model.tokenizer) >= MANY_PIECES
        self.dimension: int = self.vectors([counted.whole(0, BLANK, 1)], PASSAGE).shape[1]

    def pieces(self, number: int, text: str, kind: str) -> list[Piece]:
        """Text number `number` in windows the model reads whole, with what it puts around them."""
        size = max(LEAST_WINDOW, self.token_limit - self._frame(kind))
        readable = self._readable(text)
        if len(readable) <= size * LETTERS and (tokens := self._count([readable])[0]) <= size:
            return [counted.whole(number, readable, tokens)]
        pieces = self._packed(number, counted.atoms(readable), size)
        if max(self._count([piece.body for piece in pieces])) > size:  # joined, they cost more than alone
            pieces = self._packed(number, list(readable), size)
        return pieces

    def vectors(self, pieces: Sequence[Piece], kind: str) -> Vectors:
        """One vector a piece, of length 1: a call of the model.

        Raises:
            ModelError: The model fails.
        """
        import numpy as np
        import torch

        from engine.models.embedding.windows import normalised

        prompt = self._prompts[kind]
        task = "query" if kind == QUERY else "document"
        try:
            with torch.inference_mode():
                with self._tokenizing:
                    features = self._model.preprocess([p.body for p in pieces], prompt=prompt, task=task)
                moved = {key: _moved(value, self._model.device) for key, value in features.items()}
                made = self._model(moved, task=task)["sentence_embedding"]
                rows = np.asarray(made.float().cpu().numpy(), np.float32)
        except (RuntimeError, ValueError, IndexError, MemoryError) as error:
            raise ModelError(f"{self.model_id} failed: {_sentence(error)}") from error
        if not np.isfinite(rows).all():
            raise ModelError(f"{self.model_id} gives numbers that are none.")
        return normalised(rows)

    def reads(self, text: str) -> float:
        """See `Embedder.reads`: models of many languages read all, others are judged by their own pieces."""
        if self._reads_all:
            return float(any(map(str.isalpha, text[: languages.MOST_LETTERS])))
        return languages.reads(self._readable(text), lambda words: self._count([" " + " ".join(words)])[0])

    def _readable(self, text: str) -> str:
        """The text without what has no encoding, and without what the model would take for its own signs."""
        clean = text.encode("utf-8", "replace").decode("utf-8").replace("\0", " ")
        return self._signs.sub(lambda sign: f"{sign[0]} ", clean) if clean.strip() else BLANK

    def _packed(self, number: int, parts: Sequence[str], size: int) -> list[Piece]:
        return list(counted.packed(number, parts, self._count(parts), size, int(size * OVERLAP)))

    def _count(self, texts: Sequence[str]) -> list[int]:
        """Tokens of each text alone, without the model's signs, at least 1. In portions, so that whoever
        else has something to tokenize is not kept waiting.
        """
        tokenizer = self._model.tokenizer
        if not hasattr(tokenizer, "all_special_tokens"):  # not of transformers
            return [max(1, len(text.encode())) for text in texts]  # no token is less than a byte
        counts: list[int] = []
        for start in range(0, len(texts), PORTION):
            portion = list(texts[start : start + PORTION])
            with self._tokenizing:
                made = tokenizer(portion, add_special_tokens=False, truncation=False, verbose=False)
            counts += [max(1, len(ids)) for ids in made["input_ids"]]
        return counts

    def _frame(self, kind: str) -> int:
        """Tokens that stand around each window: the model's signs and the prompt."""
        specials = getattr(self._model.tokenizer, "num_special_tokens_to_add", lambda: 2)()
        prompt = self._prompts[kind]
        return int(specials) + (self._count([prompt])[0] if prompt else 0)


def load(name: str) -> SentenceModel:
    """The model of a folder, of the hub's cache, or else of the hub.

    Raises:
        ModelError: The library or the model is missing or does not work, or the hub cannot be reached.
    """
    if find_spec("sentence_transformers") is None:
        raise ModelError("The package sentence-transformers is not installed.", remedy=INSTALL)
    try:
        _silence()
        return _opened(name)
    except ImportError as error:
        raise ModelError(
            f"sentence-transformers does not load: {_sentence(error)}", remedy=INSTALL
        ) from error


def _opened(name: str) -> SentenceModel:
    import torch

    torch.set_num_threads(THREADS)
    folder = Path(name).expanduser()
    if is_folder(folder):
        return SentenceModel(_transformer(str(folder)), folder.resolve().name, fingerprint(folder))
    if name.startswith(("/", ".", "~")):
        raise ModelError(f"There is no folder {name}.", remedy="Set EMBEDDINGS_MODEL to one with a model.")
    repository = name if "/" in name else f"sentence-transformers/{name}"
    return SentenceModel(*_of_hub(repository))


def _of_hub(repository: str) -> tuple[SentenceTransformer, str, str]:
    """The model with its name and revision; the hub is asked only for what is not in its cache."""
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HFValidationError, LocalEntryNotFoundError

    cache = os.environ.get("SENTENCE_TRANSFORMERS_HOME")
    try:
        model = _cached(repository)
        if model is None:
            _ask_hub(repository)
            model = _transformer(repository)
        snapshot = snapshot_download(repository, local_files_only=True, cache_dir=cache)
    except (HFValidationError, LocalEntryNotFoundError) as error:
        raise ModelError(f"The model {repository} cannot be had: {_sentence(error)}") from error
    return model, repository, Path(snapshot).name[:12]


def _cached(repository: str) -> SentenceTransformer | None:
    from sentence_transformers import SentenceTransformer

    try:
        return SentenceTransformer(repository, trust_remote_code=False, local_files_only=True)
    except (OSError, ValueError):  # not there, or only in part
        return None


def _ask_hub(repository: str) -> None:
    """Nothing, when the hub has the model.

    Raises:
        ModelError: It has not, or cannot be reached.
    """
    from huggingface_hub import HfApi
    from huggingface_hub.errors import RepositoryNotFoundError

    try:
        HfApi().model_info(repository, timeout=HUB_TIMEOUT)
    except RepositoryNotFoundError as error:
        raise ModelError(
            f"The hub has no model {repository}, or not for everyone.",
            remedy="Set EMBEDDINGS_MODEL to a model's name there, or to a folder.",
        ) from error
    except _net_failures() as error:
        raise ModelError(
            f"The model {repository} is not on this machine, and the hub cannot be reached.",
            remedy="Connect once to download it, or set EMBEDDINGS_MODEL to a folder with a model.",
        ) from error


def _transformer(where: str) -> SentenceTransformer:
    """The library's own object; a model with code of its own is not run.

    Raises:
        ModelError: It does not load.
    """
    from safetensors import SafetensorError
    from sentence_transformers import SentenceTransformer

    try:
        return SentenceTransformer(where, trust_remote_code=False)
    except (*_net_failures(), ValueError, RuntimeError, LookupError, TypeError, SafetensorError) as error:
        raise ModelError(
            f"The model {where} does not load: {_sentence(error)}",
            remedy="Set EMBEDDINGS_MODEL to a model for sentence-transformers.",
        ) from error


def _net_failures() -> tuple[type[Exception], ...]:
    """What the hub's client raises when the net fails; which HTTP library it uses differs."""
    from huggingface_hub.errors import HfHubHTTPError

    return (OSError, *HfHubHTTPError.__bases__)


def fingerprint(folder: Path) -> str:
    """Tells a model's files from others: small files by their contents, weights by their size and samples."""
    digest = hashlib.sha256()
    for path in sorted(_files(folder)):
        size = path.stat().st_size
        digest.update(f"{path.relative_to(folder)}\0{size}\0".encode("utf-8", "surrogateescape"))
        with path.open("rb") as file:
            for place in range(SAMPLES):
                file.seek(place * size // SAMPLES)
                digest.update(file.read(SAMPLE))
    return digest.hexdigest()[:12]


def _files(folder: Path) -> Iterator[Path]:
    """What makes the model: neither its description nor hidden files."""
    for path in folder.rglob("*"):
        hidden = any(part.startswith(".") for part in path.relative_to(folder).parts)
        if path.is_file() and not hidden and path.suffix.lower() != ".md":
            yield path


def _prompt(prompts: dict[str, str], name: str, kind: str) -> str | None:
    """What stands before each text, by the model's configuration, else by what its name tells."""
    configured = next((prompts[key] for key in _PROMPTS[kind] if prompts.get(key)), None)
    return configured or (f"{kind}: " if _E5.search(name) else None)


def _first_letters(signs: Sequence[str]) -> re.Pattern[str]:
    """Finds the first letter of each of the signs, none of which it finds when that is set apart."""
    ways = (f"{re.escape(sign[0])}(?={re.escape(sign[1:])})" for sign in signs if len(sign) > 1)
    return re.compile("|".join(ways) or "(?!)")


def _token_limit(model: SentenceTransformer) -> int:
    limits = (model.max_seq_length, getattr(model.tokenizer, "model_max_length", None), MOST_TOKENS)
    return int(min(limit for limit in limits if limit))


def _vocabulary(tokenizer: Any) -> int:  # noqa: ANN401 (of whichever library the model brings)
    size = getattr(tokenizer, "vocab_size", 0)
    return size if isinstance(size, int) else 0


def _moved(value: Any, device: Any) -> Any:  # noqa: ANN401 (a tensor, or a number beside it)
    return value.to(device) if hasattr(value, "to") else value


def _sentence(error: BaseException) -> str:
    """The first line of what a library says."""
    return next(iter(str(error).strip().splitlines()), type(error).__name__)


def _silence() -> None:
    """Nothing of these libraries reaches the terminal: neither bars, nor warnings, nor log lines, which
    go to our own log where there is one.
    """
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")  # else they write when a child is started
    os.environ.setdefault("TORCH_CPP_LOG_LEVEL", "ERROR")
    for library in LIBRARIES:
        warnings.filterwarnings("ignore", module=rf"{library}(\.|$)")
    import sentence_transformers  # noqa: F401 (makes the loggers that are changed below)
    import transformers.utils.logging
    from huggingface_hub.utils.tqdm import disable_progress_bars

    disable_progress_bars()
    transformers.utils.logging.disable_progress_bar()
    for library in LIBRARIES:
        logger = logging.getLogger(library)
        logger.handlers = [logging.NullHandler()]
        logger.propagate = True
