"""Text to vectors: one interface, and the model that comes with the installation behind it."""

from __future__ import annotations

from engine.models.embedding.base import Embedder, open_embedder

__all__ = ["Embedder", "open_embedder"]
