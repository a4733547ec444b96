"""A random walk over everything that happens to a folder of notes, with the watcher and the worker live.

hypothesis draws the steps and shrinks a failing walk to the few that matter. Each walk has a database and a
folder of its own.
"""

from __future__ import annotations

import asyncio
import itertools
import os
import shutil
import tempfile
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st

from engine.database import Database
from engine.notes import Notes, disk, events, hints, watcher
from engine.notes.model import DriftCause, WatchMode
from engine.services import Services
from engine.settings import Settings
from tests.faults.truth import settle
from tests.integration.test_watcher_faults import listeners
from tests.integration.vault import Vault
from tests.integration.watching import Watched, watched
from tests.support import eventually

if TYPE_CHECKING:
    from engine.models.embedding.base import Embedder
    from tests.conftest import Server

WALKS = int(os.environ.get("NOCTUARY_WALKS", "12"))
FOLDERS = ["", "sub", "sub/deep", "x.md", ".hidden"]
NAMES = ["a.md", "b.md", "A.md", "B.MD", "🐘.markdown", "c.txt"]
_numbers = itertools.count(1)

paths = st.builds(
    lambda folder, name: f"{folder}/{name}".lstrip("/"), st.sampled_from(FOLDERS), st.sampled_from(NAMES)
)
texts = st.lists(st.sampled_from(["owl", "# lark", "日本語", "real-time", "***"]), max_size=6).map(
    "\n\n".join
)
raws = texts.map(str.encode) | st.sampled_from([b"\xff\xff", b"nul \0", b"", b"\xef\xbb\xbf# mark\r\n"])
folders = st.sampled_from(FOLDERS[1:4])
counts = st.integers(1, 3)
steps = st.one_of(
    st.tuples(st.just("write"), paths, raws),
    st.tuples(st.just("write"), paths, raws),
    st.tuples(st.just("append"), paths, texts),
    st.tuples(st.just("save"), paths, texts),
    st.tuples(st.just("backup"), paths, texts),
    st.tuples(st.just("rename"), paths, paths),
    st.tuples(st.just("case"), paths),
    st.tuples(st.just("delete"), paths),
    st.tuples(st.just("remove"), folders),
    st.tuples(st.just("move"), folders, st.sampled_from(["moved", "sub/moved", "sub"])),
    st.tuples(st.just("out"), folders),
    st.tuples(st.just("back"), st.sampled_from([*FOLDERS[1:4], "in"])),
    st.tuples(st.just("link"), paths, st.sampled_from([".", "..", "sub", "a.md", "nothing"])),
    st.tuples(st.just("ignore"), st.sampled_from(["sub/", "a.md", "*.markdown", "!a.md", ""])),
    st.tuples(st.just("vanish"), paths, counts),
    st.tuples(st.just("change"), paths, counts),
    st.tuples(st.just("away")),
    st.tuples(st.just("listener"), counts),
    st.tuples(st.just("deaf"), counts),
    st.tuples(st.just("broken"), counts),
    st.tuples(st.just("many"), st.sampled_from([40, 300])),
    st.tuples(st.just("quiet")),
    st.tuples(st.just("quiet")),
)


@dataclass
class Hooks:
    """Faults at the program's edges, each for so many times: paths relative to the root."""

    vanishing: dict[str, int] = field(default_factory=dict)
    changing: dict[str, int] = field(default_factory=dict)
    deaf: int = 0
    broken: int = 0

    def install(self, patch: pytest.MonkeyPatch) -> None:
        read, sort, changes = disk._bytes, hints.sort_hints, events.changes

        def reading(descriptor: int) -> bytes:
            file = Path(os.readlink(f"/proc/self/fd/{descriptor}"))  # noqa: PTH115 - a descriptor's name
            raw = read(descriptor)
            if _spent(self.changing, str(file)):
                with suppress(OSError), file.open("ab") as stream:
                    stream.write(b"more\n")
            if _spent(self.vanishing, str(file)):
                file.unlink(missing_ok=True)
            return raw

        def deafened(root: Path, found: Any) -> hints.Hints:
            if self.deaf:
                self.deaf -= 1
                return hints.Hints()
            return sort(root, found)

        def breaking(root: Path, *, beat: float) -> Any:
            if self.broken:
                self.broken -= 1
                return _refused()
            return changes(root, beat=beat)

        patch.setattr(disk, "_bytes", reading)
        patch.setattr(watcher, "sort_hints", deafened)
        patch.setattr(events, "changes", breaking)


def _spent(left: dict[str, int], name: str) -> bool:
    left[name] = left.get(name, 0) - 1
    return left[name] >= 0


async def _refused() -> Any:
    raise events.EventsFailed("OS file watch limit reached. about []")
    yield


@dataclass
class Walk:
    """One folder, what was moved out of it, and how its index is watched."""

    live: Watched
    hooks: Hooks
    outside: Path
    deafened: bool = False

    @property
    def root(self) -> Path:
        return self.live.vault.root

    async def take(self, kind: str, *values: Any) -> None:
        """One step; one that is not possible as things stand is left out."""
        if kind == "quiet":
            await self.quiet()
            return
        with suppress(OSError, shutil.Error):
            getattr(self, f"_{kind}")(*values)
        await asyncio.sleep(0)

    async def quiet(self) -> None:
        """Wait until nothing is to come, and see that the index is the disk."""
        if self.hooks.deaf or self.deafened:
            self.live.notes._watchers[self.live.vault.folder.id].survey_soon()  # as every so often anyway
            self.hooks.deaf, self.deafened = 0, False
        await eventually(lambda: not self.live.notes._watchers[self.live.vault.folder.id]._due)
        await settle(self.live.vault)
        assert self.live.services.faults == {}
        await eventually(
            self._failures_are_told, 5
        )  # the last event may cause one more look at a failed note

    async def _failures_are_told(self) -> bool:
        report = await self.live.vault.notes.drift()
        told = {row.path for row in report.rows if row.cause is DriftCause.JOB_FAILED}
        return told == set(await self.live.vault.failures())

    def _write(self, path: str, raw: bytes) -> None:
        (self.root / path).parent.mkdir(parents=True, exist_ok=True)
        (self.root / path).write_bytes(raw)

    def _append(self, path: str, text: str) -> None:
        with (self.root / path).open("a") as stream:
            stream.write(text)

    def _save(self, path: str, text: str) -> None:
        self._write(f"{path}.tmp", text.encode())
        (self.root / f"{path}.tmp").rename(self.root / path)

    def _backup(self, path: str, text: str) -> None:
        (self.root / path).rename(self.root / f"{path}~")
        self._write(path, text.encode())
        (self.root / f"{path}~").unlink()

    def _rename(self, path: str, other: str) -> None:
        (self.root / other).parent.mkdir(parents=True, exist_ok=True)
        (self.root / path).rename(self.root / other)

    def _case(self, path: str) -> None:
        (self.root / path).rename((self.root / path).with_name(Path(path).name.swapcase()))

    def _delete(self, path: str) -> None:
        (self.root / path).unlink()

    def _remove(self, path: str) -> None:
        shutil.rmtree(self.root / path)

    def _move(self, path: str, other: str) -> None:
        (self.root / path).rename(self.root / other)

    def _out(self, path: str) -> None:
        (self.root / path).rename(self.outside / f"{next(_numbers)}")

    def _back(self, path: str) -> None:
        newest = max(self.outside.iterdir(), key=lambda each: int(each.name), default=None)
        if newest:
            newest.rename(self.root / path)

    def _link(self, path: str, target: str) -> None:
        (self.root / path).parent.mkdir(parents=True, exist_ok=True)
        (self.root / path).symlink_to(target)

    def _ignore(self, pattern: str) -> None:
        """Ignore nothing at all for longer than a moment: the walk of the truth knows no patterns."""
        (self.root / ".gitignore").write_text(pattern + "\n")
        (self.root / ".gitignore").unlink()

    def _vanish(self, path: str, times: int) -> None:
        self.hooks.vanishing[str(self.root / path)] = times
        self._write(path, b"soon gone\n")

    def _change(self, path: str, times: int) -> None:
        self.hooks.changing[str(self.root / path)] = times
        self._write(path, b"soon other\n")

    def _away(self) -> None:
        self.root.rename(self.outside / "root")
        (self.outside / "root").rename(self.root)

    def _listener(self, times: int) -> None:
        for child in listeners()[:times]:
            child.kill()

    def _deaf(self, times: int) -> None:
        self.hooks.deaf, self.deafened = times, True

    def _broken(self, times: int) -> None:
        self.hooks.broken = times
        self._listener(1)

    def _many(self, count: int) -> None:
        for number in range(count):
            self._write(f"many/{number % 7}/{number}.md", b"word%d\n" % number)


class Ground:
    """Where walks take place: a fresh database and folder for each."""

    def __init__(self, server: Server, embedder: Embedder) -> None:
        self._server, self._embedder = server, embedder

    async def walk(self, drawn: list[tuple[Any, ...]]) -> None:
        name = f"walk_{os.getpid()}_{next(_numbers)}"
        url = self._server.create(name)
        try:
            with tempfile.TemporaryDirectory() as home, pytest.MonkeyPatch.context() as patch:
                await self._walk(drawn, Path(home), url, patch)
        finally:
            self._server.drop(name)

    async def _walk(
        self, drawn: list[tuple[Any, ...]], home: Path, url: str, patch: pytest.MonkeyPatch
    ) -> None:
        patch.setattr(watcher, "SETTLE", (0.05, 0.6))
        patch.setattr(watcher, "BEAT", 0.3)
        patch.setattr(watcher, "DEATH_PAUSE", 0.05)
        hooks = Hooks()
        hooks.install(patch)
        (home / "notes").mkdir()
        (home / "outside").mkdir()
        environment = {f"XDG_{each}_HOME": str(home / each) for each in ("DATA", "CONFIG", "STATE", "CACHE")}
        chosen = Settings.load({**environment, "DATABASE_URL": url}, cwd=home)
        database = await Database.open(chosen, application="tests")
        notes = Notes(database, self._embedder, chosen, Services())
        try:
            await notes.prepare()
            vault = Vault(database, notes, chosen, await notes.add_folder(home / "notes"))
            vault.write("anchor.md", "The folder is never empty.\n")
            async with watched(vault, poll_interval=0.2) as live:
                await live.mode(WatchMode.EVENTS)
                walk = Walk(live, hooks, home / "outside")
                for step in drawn:
                    note(f"{step}")
                    await walk.take(*step)
                await walk.quiet()
        finally:
            await database.close()


def test_whatever_happens_to_the_folder_its_index_becomes_the_disk(server: Server, model: Embedder) -> None:
    ground = Ground(server, model)

    @settings(
        max_examples=WALKS, deadline=None, database=None, print_blob=True,
        suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    @given(st.lists(steps, min_size=8, max_size=30))
    def walks(drawn: list[tuple[Any, ...]]) -> None:
        asyncio.run(ground.walk(drawn))

    walks()
