"""A headless Chromium, driven over a pipe by its own protocol: no driver, no port, no package."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import os
import shutil
import signal
import sys
from typing import TYPE_CHECKING, Any

from tests.support import eventually

if TYPE_CHECKING:
    from pathlib import Path
    from typing import Self

PROGRAM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
FLAGS = (
    "--headless=new",
    "--no-sandbox",  # root may not have one
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-extensions",
    "--disable-sync",
    "--no-first-run",
    "--remote-debugging-pipe",
)
SECONDS = 30.0

# Chromium reads commands from descriptor 3 and answers on 4.
START = "import os, sys; os.dup2(int(sys.argv[1]), 3); os.dup2(int(sys.argv[2]), 4); os.execv(sys.argv[3], sys.argv[3:])"


class Browser:
    """One page of one browser. `requests` are the addresses it asked for, `complaints` what it said of errors."""

    def __init__(self, profile: Path) -> None:
        self._profile = profile
        self._numbers = itertools.count(1)
        self._answers: dict[int, asyncio.Future[Any]] = {}
        self._session: dict[str, str] = {}
        self.requests: list[str] = []
        self.complaints: list[str] = []

    async def __aenter__(self) -> Self:
        assert PROGRAM
        commands, self._commands = os.pipe()
        answers, answering = os.pipe()
        self._process = await asyncio.create_subprocess_exec(
            sys.executable, "-c", START, str(commands), str(answering),
            PROGRAM, *FLAGS, f"--user-data-dir={self._profile}", "about:blank",
            pass_fds=(commands, answering), stdin=asyncio.subprocess.DEVNULL, start_new_session=True,
            stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.DEVNULL,
        )  # fmt: skip
        os.close(commands)
        os.close(answering)
        reader = asyncio.StreamReader(limit=2**26)
        self._pipe, _ = await asyncio.get_running_loop().connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(answers, "rb")
        )
        self._reading = asyncio.create_task(self._read(reader))
        made = await self.call("Target.createTarget", url="about:blank")
        opened = await self.call("Target.attachToTarget", targetId=made["targetId"], flatten=True)
        self._session = {"sessionId": opened["sessionId"]}
        for part in ("Page", "Network", "Runtime", "Log"):
            await self.call(f"{part}.enable")
        return self

    async def __aexit__(self, *_exception: object) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        await self._process.wait()
        self._reading.cancel()
        await asyncio.gather(self._reading, return_exceptions=True)
        self._pipe.close()
        os.close(self._commands)

    async def call(self, method: str, **parameters: object) -> Any:
        """Tell the browser to do something; what it answers."""
        number = next(self._numbers)
        answer = self._answers[number] = asyncio.get_running_loop().create_future()
        command = {"id": number, "method": method, "params": parameters, **self._session}
        os.write(self._commands, json.dumps(command).encode() + b"\0")
        async with asyncio.timeout(SECONDS):
            return await answer

    async def open(self, address: str) -> None:
        await self.call("Page.navigate", url=address)

    async def evaluate(self, expression: str) -> Any:
        """The value of an expression in the page."""
        answer = await self.call(
            "Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True
        )
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    async def text(self, selector: str = "body") -> str:
        """What is written in a part of the page; empty where there is none."""
        return str(await self.evaluate(f"document.querySelector({json.dumps(selector)})?.innerText ?? ''"))

    async def until(self, expression: str) -> None:
        """Wait until an expression holds in the page."""

        async def holds() -> bool:
            return bool(await self.evaluate(f"Boolean({expression})"))

        await eventually(holds)

    async def type(self, text: str) -> None:
        """Type into what has the focus."""
        await self.call("Input.insertText", text=text)

    async def press(self, key: str, code: int, text: str = "") -> None:
        for kind in ("keyDown", "keyUp"):
            await self.call(
                "Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=code,
                **({"text": text} if text and kind == "keyDown" else {}),
            )  # fmt: skip

    async def _read(self, reader: asyncio.StreamReader) -> None:
        while True:
            message = json.loads((await reader.readuntil(b"\0"))[:-1])
            if "id" in message:
                answer = self._answers.pop(message["id"])
                if "error" in message:
                    answer.set_exception(AssertionError(message["error"]))
                else:
                    answer.set_result(message["result"])
            else:
                self._heard(message["method"], message["params"])

    def _heard(self, event: str, told: dict[str, Any]) -> None:
        if event == "Network.requestWillBeSent":
            self.requests.append(told["request"]["url"])
        elif event == "Runtime.exceptionThrown":
            self.complaints.append(json.dumps(told["exceptionDetails"]))
        elif event == "Log.entryAdded":
            self.complaints.append(f"{told['entry']['source']}: {told['entry']['text']}")
