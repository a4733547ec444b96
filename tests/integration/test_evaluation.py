"""Eval: labelled questions through the search in use, runs that are kept, and questions made of searches."""

from __future__ import annotations

import asyncio
import json
import os
import threading
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from engine.errors import DatasetError, FolderError
from engine.notes import evaluation as module
from engine.notes import labelling
from engine.notes.evaluated import EvalRun, EvalStep
from engine.notes.evaluation import Evaluation
from engine.notes.labelled import Expect, read
from tests.hostile import PAYLOADS

if TYPE_CHECKING:
    from tests.integration.line import Line
    from tests.integration.vault import Vault

KNOWMAN = Path(__file__).parents[2].parent / "shared" / "data" / "knowman"


def questions(*rows: dict[str, Any]) -> str:
    return json.dumps(list(rows))


OWLS = {"id": "owls", "question": "owls hunt", "expect": "citation", "expect_path_contains": "owls.md"}
WRONG = {"id": "wrong", "question": "owls hunt", "expect": "citation", "expect_path_contains": "gone.md"}
NOTHING = {"id": "none", "question": "overdue invoice of the plumber", "expect": "negative"}
LARKS = OWLS | {"question": "owls hunt or larks sing at night", "expect_path_contains": "larks.md"}


@pytest.fixture
def evaluation(birds: Vault) -> Evaluation:
    return Evaluation(birds.database, birds.settings, birds.notes)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    found = tmp_path / "questions.json"
    found.write_text(questions(OWLS, WRONG, NOTHING))
    return found


async def test_a_run_says_what_was_right_and_is_kept(evaluation: Evaluation, file: Path) -> None:
    steps: list[EvalStep] = []
    run = await evaluation.run(file, on_step=steps.append)
    assert run.line == "groundedness: 66.67% (2/3), delta: +0.00%"
    assert (run.recall, run.failing, run.k) == (0.5, ("wrong",), 3)
    assert run.mrr == 0.5
    assert steps == [EvalStep(number, 3) for number in (1, 2, 3)]
    kept = await evaluation.last()
    assert kept is not None
    assert kept.answers == run.answers
    assert (kept.id, kept.groundedness, kept.dataset) == (run.id, run.groundedness, str(file))
    assert kept.answers[0].cited[0] == "owls.md:L1-L1"


async def test_the_delta_is_to_the_run_of_the_same_file_before(evaluation: Evaluation, file: Path) -> None:
    await evaluation.run(file)
    other = file.with_name("other.json")
    other.write_text(questions(OWLS))
    assert (await evaluation.run(other)).delta == 0
    file.write_text(questions(OWLS, NOTHING))
    run = await evaluation.run(file)
    assert run.line == "groundedness: 100.00% (2/2), delta: +33.33%"
    assert run.other_questions
    again = await evaluation.run(file)
    assert (again.delta, again.other_questions) == (0, False)
    assert [round(each.delta, 4) for each in await evaluation.history()] == [0, 0.3333, 0, 0]
    assert len(await evaluation.history(dataset=str(other))) == 1


async def test_each_question_has_its_own_k(evaluation: Evaluation, file: Path) -> None:
    file.write_text(questions(LARKS))
    before = await evaluation.run(file)
    (rank,) = [each.rank for each in before.answers]
    assert rank is not None
    assert rank > 1
    for k, right in ((rank, True), (rank - 1, False)):
        file.write_text(questions(LARKS | {"k": k}))
        assert (await evaluation.run(file)).correct == right


async def test_a_cancelled_run_keeps_nothing(evaluation: Evaluation, file: Path) -> None:
    begun = asyncio.Event()
    task = asyncio.create_task(evaluation.run(file, on_step=lambda _: begun.set()))
    await begun.wait()
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task
    assert await evaluation.history() == []
    assert await evaluation.last() is None


async def test_it_leaves_no_traces(birds: Vault, evaluation: Evaluation, file: Path) -> None:
    heard: list[object] = []

    def hear(result: object, *, typing: bool) -> None:
        heard.append(result)

    birds.notes.on_search = hear
    await evaluation.run(file)
    assert heard == []
    await birds.notes.search("owls")
    assert len(heard) == 1


async def test_the_oldest_runs_go(
    evaluation: Evaluation, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "KEPT", 2)
    for _ in range(4):
        await evaluation.run(file)
    assert len(await evaluation.history()) == 2
    assert (await evaluation.history())[-1].answers == ()


async def test_without_a_file_the_last_is_run_again_else_our_own(evaluation: Evaluation, file: Path) -> None:
    with pytest.raises(DatasetError, match="There are no labelled questions yet"):
        await evaluation.run()
    await evaluation.add("owls hunt", None)
    assert (await evaluation.run()).dataset == str(evaluation.own_file.resolve())
    await evaluation.run(file)
    assert (await evaluation.run()).dataset == str(file)
    file.unlink()
    assert (await evaluation.run()).dataset == str(evaluation.own_file.resolve())


async def test_nothing_indexed_is_no_score_of_nought(vault: Vault, file: Path) -> None:
    with pytest.raises(FolderError, match="The index holds no text"):
        await Evaluation(vault.database, vault.settings, vault.notes).run(file)


@pytest.mark.skipif(not KNOWMAN.is_dir(), reason=f"knowman's corpus is not here: {KNOWMAN} is missing")
async def test_knowmans_own_file_runs_unchanged(vault: Vault) -> None:
    for note in (KNOWMAN / "corpus").rglob("*.md"):
        vault.write(str(note.relative_to(KNOWMAN / "corpus")), note.read_text())
    await vault.index(embed=True)
    await vault.notes.embedders.refresh()
    (dataset,) = [path for path in KNOWMAN.glob("*.json") if "dataset" in path.name]
    run = await Evaluation(vault.database, vault.settings, vault.notes).run(dataset)
    assert run.line == "groundedness: 100.00% (25/25), delta: +0.00%"


# Questions made of searches


async def test_a_search_becomes_a_question_that_it_answers(birds: Vault, evaluation: Evaluation) -> None:
    (citation, *_) = (await birds.notes.search("owls hunt")).citations
    added, file = await evaluation.add("owls hunt", citation.reference, k=2)
    assert file == evaluation.own_file
    assert (added.id, added.k, added.expect) == ("owls-hunt", 2, Expect.CITATION)
    again, _ = await evaluation.add("Owls, hunt?", citation.reference)
    nothing, _ = await evaluation.add("overdue invoice of the plumber", None, identity="z")
    assert (again.id, nothing.id) == ("owls-hunt-2", "z")
    assert read(file) == (added, again, nothing)
    assert (await evaluation.run()).correct == 3
    assert json.loads(file.read_text())[0] == {
        "id": "owls-hunt",
        "question": "owls hunt",
        "expect": "citation",
        "expect_path_contains": "owls.md",
        "expect_lines": "owls.md:L1-L1",
        "k": 2,
    }


async def test_an_id_is_given_once(evaluation: Evaluation, file: Path) -> None:
    before = file.read_bytes()
    with pytest.raises(DatasetError, match="has a question 'owls' already"):
        await evaluation.add("x", None, path=file, identity="owls")
    assert file.read_bytes() == before


@pytest.mark.parametrize("text", ['{"a": 1}', "[", '[{"id": 1}]', "\0"])
async def test_a_file_that_is_none_is_left_as_it_is(evaluation: Evaluation, file: Path, text: str) -> None:
    file.write_text(text)
    with pytest.raises(DatasetError, match=r"questions\.json"):
        await evaluation.add("owls", None, path=file)
    assert file.read_text() == text
    assert list(file.parent.glob(".*json*")) == []


async def test_a_write_that_fails_leaves_the_old_file_and_nothing_beside_it(
    evaluation: Evaluation, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = file.read_bytes()

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(DatasetError, match="cannot be written: No space left on device"):
        await evaluation.add("zebra", None, path=file)
    assert file.read_bytes() == before
    assert list(file.parent.glob(".*json*")) == []


def test_two_at_once_lose_nothing_of_each_other(tmp_path: Path) -> None:
    file = tmp_path / "questions.json"
    threads = [
        threading.Thread(target=labelling.add, args=(file, f"question {number}", None, None, None))
        for number in range(16)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(read(file)) == 16


async def test_a_link_and_its_rights_stay(evaluation: Evaluation, file: Path) -> None:
    file.chmod(0o600)
    link = file.with_name("link.json")
    link.symlink_to(file)
    await evaluation.add("zebra crossing", None, path=link)
    assert link.is_symlink()
    assert file.stat().st_mode & 0o777 == 0o600
    assert len(read(file)) == 4


async def test_any_question_can_be_asked_and_kept(evaluation: Evaluation, tmp_path: Path) -> None:
    file = tmp_path / "hostile.json"
    payloads = [payload for payload in PAYLOADS.values() if payload.strip()]
    added = [(await evaluation.add(payload, None, path=file))[0] for payload in payloads]
    run = await evaluation.run(file)
    assert [(each.id, each.question) for each in run.answers] == [(each.id, each.text) for each in added]
    kept = await evaluation.last()
    assert kept is not None
    assert len(kept.answers) == len(payloads)


# The command


def test_the_command_prints_knowmans_line_and_what_failed(noctuary: Line, tmp_path: Path) -> None:
    noctuary.index()
    file = tmp_path / "questions.json"
    right = {"id": "plan", "question": "lantern", "expect": "citation", "expect_path_contains": "plan"}
    file.write_text(questions(right))
    run = noctuary("eval", str(file))
    assert (run.status, run.out.splitlines()[0]) == (0, "groundedness: 100.00% (1/1), delta: +0.00%")
    wrong = {"id": "w\x1b", "question": "heron", "expect": "citation", "expect_lines": "gone.md:L1-L2"}
    file.write_text(questions(right, wrong))
    run = noctuary("eval")
    first, second, *rest = run.out.splitlines()
    assert (run.status, first) == (1, "groundedness: 50.00% (1/2), delta: -50.00%")
    assert second.startswith("recall@k: 50.00%, MRR: 0.5000, by all-MiniLM-L6-v2-int8 in ")
    assert rest[0] == "failed w␛: heron"
    assert rest[1].startswith("    expected gone.md:L1-L2, cited ")
    assert run.err == "The file was another when it was run before.\n"
    found = noctuary("eval", "--json").json
    assert (found["groundedness"], found["failing"], found["correct"]) == (0.5, ["w\x1b"], 1)
    assert len(noctuary("eval", "history").out.splitlines()) == 3
    assert len(noctuary("eval", "--json", "history").json["runs"]) == 3
    assert len(noctuary("eval", "history", "--limit", "1", "--json").json["runs"]) == 1


def test_the_command_makes_a_question_of_a_search(noctuary: Line, tmp_path: Path) -> None:
    noctuary.index()
    file = tmp_path / "mine.json"
    made = noctuary("eval", "add", "buy a lantern", str(file))
    assert made.out == f"{file}: buy-a-lantern, answered by work/plan.md:L1-L3.\n"
    assert noctuary("eval", "add", "zebra", str(file), "--negative").status == 0
    assert noctuary("eval", "add", "heron", str(file), "--expect", "log.md:L1-L3").status == 0
    refused = noctuary("eval", "add", "heron", str(file), "--expect", "log.md:9")
    assert (refused.status, refused.out) == (2, "")
    assert "Write it as 'notes/owls.md:L3-L9'" in refused.err
    assert "Nothing is found for 'zebra'" in noctuary("eval", "add", "zebra", str(file)).err
    assert "exclude each other" in noctuary("eval", "add", "x", "--negative", "--expect", "a:L1-L1").err
    assert [question.id for question in read(file)] == ["buy-a-lantern", "zebra", "heron"]
    assert noctuary("eval", str(file)).out.startswith("groundedness: 100.00% (3/3)")


def test_without_questions_the_command_says_how_to_make_some(noctuary: Line) -> None:
    noctuary.index()
    said = noctuary("eval")
    assert (said.status, said.out) == (2, "")
    assert 'noctuary eval add "QUESTION"' in said.err
    assert noctuary("eval", "history").err == "No run yet.\n"


def test_a_runs_line_is_knowmans() -> None:
    values = dict.fromkeys(EvalRun.__dataclass_fields__)
    run = EvalRun(**values | {"correct": 23, "total": 25, "delta": -0.08, "answers": ()})
    assert run.line == "groundedness: 92.00% (23/25), delta: -8.00%"
