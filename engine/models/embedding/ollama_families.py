"""What the families of embedding models want said before a text, and which of them read any language.

Ollama hands a text to the model as it is: the words a model was trained to see before a question or a
passage are the caller's to add. Without them the vectors are made all the same, and are worse. They are
part of what `model_id` stands for: a change here wants another id.
"""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Family:
    """The words before a question and before a passage, and whether the model reads any language."""

    query: str = ""
    passage: str = ""
    multilingual: bool = False


_SEARCHING = "Represent this sentence for searching relevant passages: "
_INSTRUCT = (
    "Instruct: Given a web search query, retrieve relevant passages that answer the query\nQuery:{space}"
)

_FAMILIES: tuple[tuple[str, Family], ...] = (
    # ollama.com/library/nomic-embed-text-v2-moe, "Best practices"
    ("nomic-embed-text-v2", Family("search_query: ", "search_document: ", multilingual=True)),
    # huggingface.co/nomic-ai/nomic-embed-text-v1.5-GGUF, "Usage"
    ("nomic-embed", Family("search_query: ", "search_document: ")),
    # mixedbread.ai/docs/embeddings/mxbai-embed-large-v1, "Using a Prompt"
    ("mxbai-embed-large", Family(_SEARCHING)),
    # huggingface.co/Snowflake/snowflake-arctic-embed-l-v2.0: the prompt named "query"
    ("arctic-embed(2|.*v2)", Family("query: ", multilingual=True)),
    # huggingface.co/Snowflake/snowflake-arctic-embed-l, "Using Sentence Transformers"
    ("arctic-embed", Family(_SEARCHING)),
    # ai.google.dev/gemma/docs/embeddinggemma/model_card, "Prompt instructions"; version 2 has the same
    ("embeddinggemma", Family("task: search result | query: ", "title: none | text: ", multilingual=True)),
    # github.com/QwenLM/Qwen3-Embedding, get_detailed_instruct: no space before the question
    ("qwen3-embedding", Family(_INSTRUCT.format(space=""), multilingual=True)),
    # huggingface.co/intfloat/multilingual-e5-large-instruct, "Usage": a space before the question
    ("multilingual-e5.*instruct", Family(_INSTRUCT.format(space=" "), multilingual=True)),
    # huggingface.co/intfloat/multilingual-e5-small, "FAQ" 1
    ("multilingual-e5", Family("query: ", "passage: ", multilingual=True)),
    (r"\be5-", Family("query: ", "passage: ")),
    # huggingface.co/BAAI/bge-m3, "FAQ": no instruction any more
    ("bge-m3", Family(multilingual=True)),
    # huggingface.co/BAAI/bge-large-en-v1.5, "Usage"
    ("bge-(small|base|large)", Family(_SEARCHING)),
    ("paraphrase-multilingual", Family(multilingual=True)),
    # ollama.com/library/granite-embedding: 30m is English, 278m reads twelve languages
    ("granite-embedding.*(278m|multilingual)", Family(multilingual=True)),
)
"""The first pattern found in a name decides, so that a version stands before its family."""


def family(model: str) -> Family:
    """The family of a model as Ollama names it (`owner/name:tag`); the plain one when it is not known."""
    name = model.lower().rpartition("/")[2]
    return next((found for pattern, found in _FAMILIES if re.search(pattern, name)), Family())


def is_known(model: str) -> bool:
    """Whether a model is one of the embedding families by its name, whatever the server says of it."""
    return family(model) != Family() or "embed" in model.lower() or "minilm" in model.lower()
