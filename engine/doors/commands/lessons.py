"""`noctuary lessons`: the learned rules, by their numbers: listed, shown, worded anew, pinned, thrown out."""

from __future__ import annotations

import sys
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Literal

import click

from engine.doors import exits, output, parameters, remembering, session
from engine.memory.model import LessonFilter, LessonState
from engine.text.amounts import count

if TYPE_CHECKING:
    from collections.abc import Sequence

    from engine import Engine
    from engine.memory.model import AuditRow, Lesson, LessonDetail, SourceTurn

HUMAN = "human"
"""Who sits at the keyboard, in the audit."""

ORDERS = ("newest", "expiring", "unused", "reinforced")
APPLICATION = "noctuary lessons"


class Reference(click.ParamType[int]):
    """A lesson by its number: L12 or 12."""

    name = "lesson"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """The number."""
        found = value if isinstance(value, int) else remembering.lesson_id(str(value))
        if found is None:
            self.fail(f"'{value}' is no lesson: it is called L12, or 12.", param, ctx)
        return found


LESSON = click.argument("lesson", type=Reference(), metavar="L12")
SEVERAL = click.argument("several", type=Reference(), metavar="L12...", nargs=-1, required=True)


@click.group(invoke_without_command=True)
@click.option("--filter", "text", type=parameters.TEXT, metavar="TEXT", help="Only rules that contain this.")
@click.option("--older", type=click.FloatRange(0), metavar="DAYS", help="Only those learned that long ago.")
@click.option("--unused", is_flag=True, help="Only those that were never used.")
@click.option("--new", is_flag=True, help="Only those learned since the last visit to the console's pane.")
@click.option("--expired", is_flag=True, help="Those that have expired, instead of the living ones.")
@click.option(
    "--order", type=click.Choice(ORDERS), default="newest", show_default=True, help="What comes first."
)
@click.option(
    "--limit", type=click.IntRange(1, 10_000), default=200, show_default=True, help="How many at most."
)
@click.option("--core", type=parameters.TEXT, metavar="SLUG", help="Only those of this core.")
@click.option("--user", type=parameters.TEXT, metavar="NAME", help="Only those of this end user.")
@parameters.JSON
@click.pass_context
def lessons(
    ctx: click.Context,
    *,
    text: str | None,
    older: float | None,
    unused: bool,
    new: bool,
    expired: bool,
    order: Literal["newest", "expiring", "unused", "reinforced"],
    limit: int,
    core: str | None,
    user: str | None,
    as_json: bool,
) -> int:
    """List what was learned, of every core and end user, or change it."""
    if ctx.invoked_subcommand is not None:
        return exits.DONE
    where = LessonFilter(
        text=text or "",
        core=core,
        user=user,
        older_than_days=older,
        unused=unused,
        new=new,
        state=LessonState.EXPIRED if expired else LessonState.LIVING,
    )

    async def work(engine: Engine) -> int:
        found, total = await engine.memory.lessons.page(where, order=order, limit=limit)
        if as_json:
            output.dump({"lessons": [as_object(each) for each in found], "total": total})
            return exits.DONE if found else exits.FOUND_NOTHING
        return _print_list(found, total)

    return session.run(work, application=APPLICATION)


@lessons.command()
@LESSON
@parameters.JSON
def show(lesson: int, *, as_json: bool) -> int:
    """Show a lesson with the turns it came from and what was done to it."""
    as_json = parameters.json_wanted(as_json=as_json)

    async def work(engine: Engine) -> int:
        detail = await engine.memory.lessons.detail(lesson)
        if as_json:
            output.dump(_detail(detail))
        else:
            _print_detail(detail)
        return exits.DONE

    return session.run(work, application=APPLICATION)


@lessons.command()
@SEVERAL
@click.option("--reason", type=parameters.TEXT, help="Why, for the audit.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@parameters.JSON
def delete(several: tuple[int, ...], *, reason: str | None, yes: bool, as_json: bool) -> int:
    """Throw lessons out, by their numbers: their text is not shown. Their like is not learned again."""
    as_json = parameters.json_wanted(as_json=as_json)
    ids = list(dict.fromkeys(several))
    if not yes:
        _confirm(ids)

    async def work(engine: Engine) -> int:
        gone = await engine.memory.lessons.delete(ids, actor=HUMAN, reason=reason or "")
        return _tell_done(ids, gone, "deleted", "is not there, or was deleted before", as_json=as_json)

    return session.run(work, application=APPLICATION)


@lessons.command()
@SEVERAL
@parameters.JSON
def lift(several: tuple[int, ...], *, as_json: bool) -> int:
    """Take deletions back: the lessons live again, and their like may be learned."""
    as_json = parameters.json_wanted(as_json=as_json)
    ids = list(dict.fromkeys(several))

    async def work(engine: Engine) -> int:
        back = await engine.memory.lessons.lift(ids, actor=HUMAN)
        return _tell_done(ids, back, "lifted", "is not there, or is not deleted", as_json=as_json)

    return session.run(work, application=APPLICATION)


@lessons.command()
@LESSON
@click.argument("words", nargs=-1, required=True, metavar="TEXT")
@parameters.JSON
def edit(lesson: int, words: tuple[str, ...], *, as_json: bool) -> int:
    """Word a lesson differently; - reads the text from standard input. Its sources and history stay."""
    as_json = parameters.json_wanted(as_json=as_json)
    text = parameters.words_or_input(words)

    async def work(engine: Engine) -> int:
        changed = await engine.memory.lessons.edit(lesson, text, actor=HUMAN)
        if as_json:
            output.dump(as_object(changed))
        else:
            output.say(f"{changed.reference} now says: {changed.text}")
        return exits.DONE

    return session.run(work, application=APPLICATION)


@lessons.command()
@SEVERAL
@parameters.JSON
def pin(several: tuple[int, ...], *, as_json: bool) -> int:
    """Pin lessons: they go with every turn and do not expire."""
    return _pin(several, pinned=True, as_json=as_json)


@lessons.command()
@SEVERAL
@parameters.JSON
def unpin(several: tuple[int, ...], *, as_json: bool) -> int:
    """Let pinned lessons go: they expire again when they are not used."""
    return _pin(several, pinned=False, as_json=as_json)


@lessons.command()
@click.option("--text", "with_text", is_flag=True, help="Show what they said, too.")
@click.option(
    "--limit", type=click.IntRange(1, 10_000), default=200, show_default=True, help="How many at most."
)
@parameters.JSON
def tombstones(*, with_text: bool, limit: int, as_json: bool) -> int:
    """List what was thrown out, when, by whom and why; `noctuary lessons lift` takes it back."""
    as_json = parameters.json_wanted(as_json=as_json)
    where = LessonFilter(state=LessonState.DELETED)

    async def work(engine: Engine) -> int:
        found, total = await engine.memory.lessons.page(where, limit=limit)
        told = [_tombstone(each, with_text=with_text) for each in found]
        if as_json:
            output.dump({"tombstones": told, "total": total})
        elif told:
            output.table([[str(cell) for cell in row.values()] for row in output.plain(told)])
        else:
            output.note("Nothing was thrown out.")
        return exits.DONE if found else exits.FOUND_NOTHING

    return session.run(work, application=APPLICATION)


@lessons.command()
@click.argument("lesson", type=Reference(), metavar="[L12]", required=False)
@click.option(
    "--limit", type=click.IntRange(1, 10_000), default=50, show_default=True, help="How many at most."
)
@parameters.JSON
def audit(lesson: int | None, *, limit: int, as_json: bool) -> int:
    """Show what was done to lessons, or to one, by whom and when, newest first."""
    as_json = parameters.json_wanted(as_json=as_json)

    async def work(engine: Engine) -> int:
        rows = await engine.memory.lessons.audit(limit, lesson)
        if as_json:
            output.dump({"audit": rows})
        elif rows:
            output.table([_audit_cells(row) for row in rows])
        else:
            output.note("Nothing was done yet.")
        return exits.DONE if rows else exits.FOUND_NOTHING

    return session.run(work, application=APPLICATION)


def _pin(several: Sequence[int], *, pinned: bool, as_json: bool) -> int:
    as_json = parameters.json_wanted(as_json=as_json)
    ids = list(dict.fromkeys(several))

    async def work(engine: Engine) -> int:
        changed = await engine.memory.lessons.pin(ids, pinned, actor=HUMAN)
        done = "pinned" if pinned else "no longer pinned"
        return _tell_done(ids, changed, done, "is not there, or was so before", as_json=as_json)

    return session.run(work, application=APPLICATION)


def _confirm(ids: Sequence[int]) -> None:
    """Ask once, with the count.

    Raises:
        click.UsageError: nobody is there to be asked.
        click.Abort: the answer is no.
    """
    if sys.stdin is None or not sys.stdin.isatty():
        raise click.UsageError("Nobody is there to be asked: say --yes.", click.get_current_context())
    output.confirm(f"Delete {count(len(ids), 'lesson')}?")


def _tell_done(ids: Sequence[int], done: Sequence[int], what: str, why: str, *, as_json: bool) -> int:
    """Which of the lessons were changed. What they say is told to nobody."""
    left = [each for each in ids if each not in set(done)]
    if as_json:
        output.dump({"done": [f"L{each}" for each in done], "left": [f"L{each}" for each in left]})
    elif done:
        output.say(f"{', '.join(f'L{each}' for each in done)} {'is' if len(done) == 1 else 'are'} {what}.")
    for each in left:
        output.note(f"L{each} {why}.")
    return exits.FOUND_NOTHING if left else exits.DONE


def as_object(lesson: Lesson) -> dict[str, Any]:
    """A lesson for JSON, with what names it."""
    return {"reference": lesson.reference, **output.plain(lesson), "days_left": _days(lesson)}


def _detail(detail: LessonDetail) -> dict[str, Any]:
    return {"lesson": as_object(detail.lesson), "sources": detail.sources, "history": detail.history}


def _days(lesson: Lesson) -> float | None:
    left = lesson.days_left(datetime.now(UTC))
    return None if left is None else round(left, 1)


def _left(lesson: Lesson) -> str:
    days = _days(lesson)
    return "pinned" if days is None else f"{days:.0f} d left" if days > 0 else "expired"


def _whose(lesson: Lesson) -> str:
    return f"{lesson.core}/{lesson.user}" if lesson.user else lesson.core


def _print_list(found: Sequence[Lesson], total: int) -> int:
    if not found:
        output.note("No lesson.")
        return exits.FOUND_NOTHING
    output.table([_cells(each) for each in found])
    if total > len(found):
        output.note(f"{total - len(found):,} more; --limit shows them.")
    return exits.DONE


def _cells(lesson: Lesson) -> tuple[str, ...]:
    return (
        lesson.reference,
        "new" if lesson.new else "",
        _left(lesson),
        f"{lesson.uses:,} used",
        f"{lesson.reinforced:,} learned",
        count(lesson.sources, "source"),
        _whose(lesson),
        lesson.text,
    )


def _print_detail(detail: LessonDetail) -> None:
    lesson = detail.lesson
    output.say(f"{lesson.reference} ({lesson.state}): {lesson.text}")
    output.say(
        f"  of {_whose(lesson)}, learned {lesson.created_at.astimezone():%Y-%m-%d %H:%M}"
        f" by {lesson.created_by}, {_left(lesson)}, {lesson.uses:,} used, {lesson.reinforced:,} learned"
    )
    output.say(f"It came of {count(len(detail.sources), 'turn')}.")
    for turn in detail.sources:
        _print_source(turn)
    output.say("What was done to it:")
    output.table([("  ", *_audit_cells(row)) for row in detail.history])


def _print_source(turn: SourceTurn) -> None:
    who = turn.speaker or "the user"
    output.say(
        f"  {turn.at.astimezone():%Y-%m-%d %H:%M} {who} said{_mark(turn.input_recalled)} ({turn.kind}):"
    )
    output.say_text(output.indent(turn.input))
    if turn.response:
        output.say(f"  The answer was{_mark(turn.response_recalled)}:")
        output.say_text(output.indent(turn.response))


def _mark(recalled: bool) -> str:
    return ", from recalled text" if recalled else ""


def _tombstone(lesson: Lesson, *, with_text: bool) -> dict[str, Any]:
    at = lesson.deleted_at.astimezone() if lesson.deleted_at else None
    told = {
        "reference": lesson.reference,
        "deleted_at": at and at.isoformat(timespec="minutes"),
        "deleted_by": lesson.deleted_by,
        "core": lesson.core,
        "user": lesson.user,
        "reason": lesson.reason,
    }
    return told | ({"text": lesson.text} if with_text else {})


def _audit_cells(row: AuditRow) -> tuple[str, ...]:
    lesson = "" if row.lesson is None else f"L{row.lesson}"
    return (f"{row.at.astimezone():%Y-%m-%d %H:%M}", lesson, row.action, row.actor, row.reason)
