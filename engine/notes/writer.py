"""The writing agent: a language model that searches the notes and writes one new note, by two tools.

It is bounded in steps and tokens, and can do nothing but these two things. What it reads is data; what it
asks for is judged here and in `engine.notes.newnote`; each step is told and logged.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from engine import prompts
from engine.errors import FolderError, QueryError, WriteError
from engine.language import Purpose
from engine.models.language.base import Finish, Message, Role, Tokens, Tool, ToolCall
from engine.notes import fencing, newnote
from engine.notes.named import folders_there_are
from engine.notes.newpath import Refused, shown
from engine.notes.written import WriteStep, Written
from engine.settings.paths import real
from engine.text.amounts import count
from engine.text.fencing import blunted
from engine.text.safe import visible

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from engine.database import Database
    from engine.language import Language
    from engine.models.language.base import Completion
    from engine.notes import Notes
    from engine.notes.model import Folder

VERSION = "write_v1"
PARTS = {"system": (), "user": ("instruction",), "nudge": ()}

MOST_STEPS = 12
"""Calls of tools, and turns without one, until a run has wandered."""

MOST_TOKENS = 60_000
"""Read and written together in one run."""

NOTE_TOKENS = 4_096
"""One turn at most: a note of some ten pages."""

MOST_REPEATS = 2
"""Times a call may be made again just as it was before; a model in a circle does not get out of it."""

MOST_SILENT = 2
"""Turns without a call; a model that knows no tools goes on talking."""

PASSAGES, MOST_PASSAGES = 5, 10
"""Passages of one search, where the model does not say, and at most."""

PASSAGE_TOKENS = 2_000
"""Tokens of passages that one search gives."""

LONGEST_QUERY = 2_000
LONGEST_INSTRUCTION = 20_000
"""Characters."""

INDEX_SECONDS = 60.0
"""After which an index that is busy with other things has the note later."""

LOOK_SECONDS = 0.05

SEARCH = Tool(
    "search_notes",
    "Find passages of the user's notes by words and by meaning.",
    {
        "type": "object",
        "properties": {
            "query": {"type": "string", "description": "What to look for."},
            "k": {"type": "integer", "minimum": 1, "maximum": MOST_PASSAGES},
        },
        "required": ["query"],
        "additionalProperties": False,
    },
)
WRITE = Tool(
    "write_note",
    "Write the new note. It ends the work; a note that exists is never changed.",
    {
        "type": "object",
        "properties": {
            "path": {"type": "string", "description": "Relative, and ends with .md: topics/owls.md"},
            "text": {"type": "string", "description": "The whole note, in Markdown."},
        },
        "required": ["path", "text"],
        "additionalProperties": False,
    },
)
TOOLS = (SEARCH, WRITE)

_HASH = "SELECT hash FROM file WHERE folder = %s AND path = %s"

_log = logging.getLogger("noctuary.writer")


class Writer:
    """Has notes written."""

    def __init__(self, database: Database, notes: Notes, language: Language) -> None:
        self._database = database
        self._notes = notes
        self._language = language

    async def write(
        self,
        instruction: str,
        *,
        dry_run: bool = False,
        folder: Path | None = None,
        on_step: Callable[[WriteStep], None] | None = None,
    ) -> Written:
        """Have a note written into a folder of notes (the only one, when none is named), and index it.

        With `dry_run` nothing is written. Cancelled before the note has its name, it leaves nothing behind.

        Raises:
            WriteError: nothing was written: there is no such folder, the disk does not take it, or the model
                came to no note.
            LanguageError: the model cannot be had, or calls no tools.
            BudgetError: the day's tokens are spent.
        """
        if not instruction.strip() or len(instruction) > LONGEST_INSTRUCTION:
            raise WriteError(
                f"What to write is said in 1 to {LONGEST_INSTRUCTION:,} characters.", remedy="Say it so."
            )
        target = await self._target(folder)
        run = _Run(self._notes, self._language, target.path, dry_run=dry_run, on_step=on_step)
        path, text = await run.to_its_note(instruction)
        indexed = not dry_run and await self._index(target, path, text)
        spent = run.spent
        return Written(
            target.path, path, text, dry_run, tuple(run.steps), spent.prompt, spent.completion, indexed
        )

    async def _target(self, wanted: Path | None) -> Folder:
        """The folder to write into.

        Raises:
            WriteError: there is none, it is not named where there are several, or it lies elsewhere.
        """
        known = await self._notes.folders()
        there_are = folders_there_are(each.path for each in known)
        if wanted is None:
            found = known
            if len(known) > 1:
                raise WriteError("There are several folders of notes: name one.", remedy=there_are)
        else:
            place = real(wanted)
            found = [each for each in known if each.path == place]
        if not found:
            missing = "There is no folder of notes." if wanted is None else f"{wanted} is no folder of notes."
            raise WriteError(missing, remedy=there_are)
        if reason := (await self._notes.foreign()).get(found[0].id):
            raise WriteError(reason, remedy="Write there.")
        return found[0]

    async def _index(self, folder: Folder, path: str, text: str) -> bool:
        """Index the note now; whether the index has it."""
        try:
            await self._notes.ingest(folder.path / path)
        except FolderError as error:  # it was moved or removed meanwhile
            _log.warning("%s was not indexed: %s", path, error)
            return False
        digest = hashlib.sha256(text.encode()).digest()
        working = asyncio.create_task(self._notes.work_until_idle(embed=False))
        try:
            async with asyncio.timeout(INDEX_SECONDS):
                while not (held := await self._holds(folder, path, digest)) and not working.done():
                    await asyncio.wait({working}, timeout=LOOK_SECONDS)
        except TimeoutError:
            return False
        finally:
            working.cancel()
            await asyncio.gather(working, return_exceptions=True)
        return held or await self._holds(folder, path, digest)

    async def _holds(self, folder: Folder, path: str, digest: bytes) -> bool:
        async with self._database.connection() as connection:
            row = await (await connection.execute(_HASH, (folder.id, path))).fetchone()
        return row is not None and bytes(row[0]) == digest


@dataclass
class _Run:
    """One run: what was said, what was done, what it took."""

    notes: Notes
    language: Language
    root: Path
    dry_run: bool
    on_step: Callable[[WriteStep], None] | None
    steps: list[WriteStep] = field(default_factory=list)
    spent: Tokens = field(default_factory=Tokens)
    _seen: set[str] = field(default_factory=set)
    _repeats: int = 0
    _silent: int = 0

    async def to_its_note(self, instruction: str) -> tuple[str, str]:
        """Path and text of the note that was written.

        Raises:
            WriteError: the model wandered, or the disk does not take the note.
        """
        prompt = prompts.load(VERSION, "write", PARTS)
        asked = prompt.part("user", instruction=blunted(instruction.strip()))
        messages = [Message(Role.SYSTEM, prompt.part("system")), Message(Role.USER, asked)]
        while True:
            said = await self._turn(messages)
            messages.append(Message(Role.ASSISTANT, said.text, said.calls))
            if not said.calls:
                self._talked(said)
                messages.append(Message(Role.USER, prompt.part("nudge")))
            for call in said.calls:
                answer = await self._called(call)
                if isinstance(answer, tuple):
                    return answer
                messages.append(Message(Role.TOOL, answer, call_id=call.id))

    async def _turn(self, messages: list[Message]) -> Completion:
        if self.spent.total >= MOST_TOKENS:
            raise self._wandered(f"{self.spent.total:,} tokens")
        said = await self.language.complete(
            Purpose.WRITE, messages, max_tokens=NOTE_TOKENS, tools=TOOLS, agent=True
        )
        self.spent += said.tokens
        if said.finish is Finish.REFUSED:
            raise WriteError("The model refused to write this.", remedy="Ask in other words.")
        return said

    def _talked(self, said: Completion) -> None:
        """A turn without a call: it was cut off, or the model does not know what tools are for."""
        self._silent += 1
        cut = " and was cut off" if said.finish is Finish.LENGTH else ""
        self._step(f"It called no tool{cut}.")
        if self._silent >= MOST_SILENT:
            raise WriteError(
                f"{self.language.agent_model} wrote no note: it called no tool in {MOST_SILENT} turns.",
                remedy="Set AGENT_MODEL to a model that calls tools.",
            )

    async def _called(self, call: ToolCall) -> str | tuple[str, str]:
        """Do one call; its answer for the model, or path and text of the note that was written."""
        same = json.dumps([call.name, dict(call.arguments)], sort_keys=True, default=str)
        if same in self._seen:
            self._repeats += 1
            self._step("It made the same call once more.")
            if self._repeats > MOST_REPEATS:
                raise self._wandered("the same call again and again")
            return "You made this very call before, and its answer is above. Do something else."
        self._seen.add(same)
        try:
            return await self._done(call)
        except (Refused, QueryError) as error:
            self._step(f"Refused: {error.message}")
            return f"Error: {error}"

    async def _done(self, call: ToolCall) -> str | tuple[str, str]:
        if call.name == SEARCH.name:
            return await self._search(call.arguments)
        if call.name == WRITE.name:
            return await self._write(call.arguments)
        there_are = "There are search_notes and write_note."
        raise Refused(f"There is no tool {shown(call.name)}.", remedy=there_are)

    async def _search(self, given: Mapping[str, Any]) -> str:
        query, k = _read(given, SEARCH), given.get("k", PASSAGES)
        if isinstance(k, bool) or not isinstance(k, int) or not 1 <= k <= MOST_PASSAGES:
            raise Refused(f"k has to be a whole number from 1 to {MOST_PASSAGES}.")
        asked = query["query"][:LONGEST_QUERY]
        found = (await self.notes.search(asked, k=k, trace=False)).citations
        self._step(f"Searched for {shown(asked)!r}: {count(len(found), 'passage')}.", quietly="Searched.")
        if not found:
            return "Nothing was found."
        return fencing.fence(found, PASSAGE_TOKENS).text

    async def _write(self, given: Mapping[str, Any]) -> tuple[str, str]:
        wanted = _read(given, WRITE)
        text = newnote.checked_text(wanted["text"])
        if self.dry_run:
            path = await asyncio.to_thread(newnote.check, self.root, wanted["path"])
            self._step(f"Would write {shown(path)}.", limited=False)
            return path, text
        called_off = threading.Event()
        try:
            path = await asyncio.to_thread(newnote.create, self.root, wanted["path"], text, called_off.is_set)
        except asyncio.CancelledError:
            called_off.set()
            raise
        self._step(f"Wrote {shown(path)}, {len(text.encode()):,} bytes.", limited=False)
        return path, text

    def _step(self, sentence: str, *, quietly: str = "", limited: bool = True) -> None:
        """Something was done. `quietly` is what the log is told, where the sentence quotes a note's words."""
        step = WriteStep(len(self.steps) + 1, sentence)
        self.steps.append(step)
        _log.info("Step %d: %s", step.number, quietly or sentence)
        if quietly:
            _log.debug("Step %d: %s", step.number, sentence)
        if self.on_step is not None:
            self.on_step(step)
        if limited and step.number >= MOST_STEPS:
            raise self._wandered(count(step.number, "step"))

    def _wandered(self, after: str) -> WriteError:
        did = " ".join(step.text for step in self.steps[-3:])
        return WriteError(
            f"The model wrote no note and was stopped after {after}; the last it did: {visible(did)}",
            remedy="Ask for less at once, or set another AGENT_MODEL.",
        )


def _read(given: Mapping[str, Any], tool: Tool) -> dict[str, str]:
    """The texts that a tool's schema demands.

    Raises:
        Refused: one is missing or none, or there is one too many.
    """
    known = tool.schema["properties"]
    if wrong := [name for name in given if name not in known]:
        raise Refused(
            f"{tool.name} has no argument {shown(str(wrong[0]))!r}.", remedy=f"Give {', '.join(known)}."
        )
    for name in tool.schema["required"]:
        if not isinstance(given.get(name), str) or not given[name].strip():
            raise Refused(f"{tool.name} needs {name!r}, a text.", remedy=f"Give {', '.join(known)}.")
    return {name: given[name] for name in tool.schema["required"]}
