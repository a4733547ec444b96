"""How far apart a model puts what belongs together and what does not, measured on a few everyday notes.

A cosine distance means something else in every model: what all-MiniLM holds for an answer at .6 is
farther than anything multilingual-e5 ever measures. So a model without a measured limit of its own is
asked for the vectors of these pairs, and its limit is laid between the two kinds.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from engine.models.embedding.base import Embedder, Vectors

PAIRS = (
    ("when do I water the tomatoes", "Tomatoes: a deep soak every second evening, never on the leaves."),
    (
        "what is the wifi password of the cabin",
        "Cabin network: Tannenhaus, key is pinned behind the fuse box.",
    ),
    (
        "why was the March release late",
        "The launch slipped two weeks because the payment tests kept failing.",
    ),
    (
        "how long does the sourdough rest",
        "Leave the dough covered overnight, about ten hours, before shaping.",
    ),
    (
        "who repairs our boiler",
        "Heating broke again. Called Mr Lindqvist, the plumber; he comes on Thursday.",
    ),
    (
        "what did the doctor say about my knee",
        "Meniscus is worn, not torn. Physiotherapy twice a week, no jogging.",
    ),
    (
        "how do I restore a backup",
        "Stop the service, then load last night's dump with pg_restore and start again.",
    ),
    ("which books did Ana recommend", "Ana says I should read Solaris and The Dispossessed next."),
    ("what does the car insurance cost", "Policy for the Skoda renewed: 412 euros a year, due in November."),
    ("how can I fall asleep faster", "No screens after ten, a cool room and counting breaths helped most."),
    (
        "what was decided about remote work",
        "Team agreed: home office Monday and Friday, everyone in on Wednesday.",
    ),
    (
        "how is the cat fed while we travel",
        "Neighbour feeds Miso: half a tin morning and evening, fresh water.",
    ),
    (
        "which visa do we need for Vietnam",
        "Hanoi trip: apply for the e-visa online three weeks ahead, 25 dollars.",
    ),
    ("how do I tune a ukulele", "Strings from top to bottom: G, C, E, A. The first is the high one."),
    ("what makes the build slow", "Profiling showed that linking takes four of the six minutes in CI."),
    (
        "what present would grandmother like",
        "Oma mentioned that her old radio is broken and that she misses concerts.",
    ),
    (
        "how much did we save last year",
        "Summary 2023: put aside 6,300, mostly by cooking at home and selling the van.",
    ),
    ("where is the spare key", "The second door key hangs in the shed, on the nail left of the ladder."),
    ("why do bees leave the hive", "A colony swarms when it gets crowded and a new queen is about to hatch."),
    (
        "how do I answer a rude email",
        "Wait an hour, thank them for the point, state the facts, offer a call.",
    ),
    (
        "which paint goes on the fence",
        "For the garden boards take the linseed oil one, two thin coats in dry weather.",
    ),
    (
        "what are the symptoms of burnout",
        "Warning signs: tired after rest, cynical about work, forgetting small things.",
    ),
    (
        "how does the heat pump work",
        "It takes warmth from the outside air and compresses it to heat the water.",
    ),
    (
        "what to pack for the ski tour",
        "Bring skins, avalanche beacon, shovel, probe, a thermos and dry gloves.",
    ),
)
"""Questions as they are typed, each with the note that answers it in other words. Written for this file."""

QUESTIONS = tuple(question for question, _ in PAIRS)
PASSAGES = tuple(passage for _, passage in PAIRS)

FAR_ANSWERS = 0.90
"""The quantile of the true pairs that counts as the far end of answers: one odd pair does not move it."""

NEAR_STRANGERS = 0.50
"""The quantile of each question's nearest stranger that counts as the near end of strangers. In a real
index there are more strangers, so that one of them comes nearer than most here."""


async def calibrated(embedder: Embedder) -> float:
    """The cosine distance beyond which a passage is no evidence to this model (see `limit`).

    Costs 48 short embeddings.

    Raises:
        ModelError: The model fails.
    """
    passages = await embedder.passages(PASSAGES)
    questions = await asyncio.gather(*(embedder.query(question) for question in QUESTIONS))
    return limit(np.vstack(questions), passages)


def limit(questions: Vectors, passages: Vectors) -> float:
    """Midway between the far end of the answers and the near end of the strangers, from 0 to 2.

    Both hold one row of length 1 a pair, in the order of `PAIRS`. For the bundled model it gives .79
    where .78 was measured on real questions; for multilingual-e5-small .20, which keeps all of knowman's
    answers (within .144) and all but one of its questions without any out (.174, then .186 to .257: two).
    """
    distances = 1 - questions @ passages.T
    answers = np.diagonal(distances)
    strangers = np.where(np.eye(len(distances), dtype=bool), np.inf, distances).min(axis=1)
    ends = np.quantile(answers, FAR_ANSWERS), np.quantile(strangers, NEAR_STRANGERS)
    return round(float(np.clip(np.mean(ends), 0, 2)), 3)
