"""Which language model the settings name, made without asking it anything.

Priority of the model's name: CHAT_MODEL (for the writing agent AGENT_MODEL), then the provider's own setting,
then a default of ours.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.errors import LanguageError

if TYPE_CHECKING:
    from engine.models.language.base import LanguageModel
    from engine.settings import Settings

OLLAMA_MODEL = "qwen3:4b-instruct"

UNSET = "No language model is set."
HOW = "Set LLM_PROVIDER to ollama, claude, openai or grok."


def open_language(settings: Settings, *, agent: bool = False) -> LanguageModel:
    """The language model, for answers or for the agent that writes. Free to make.

    Raises:
        LanguageError: none is set, or its key is missing.
    """
    named = (settings.agent_model if agent else None) or settings.chat_model
    if settings.llm_provider == "ollama":
        from engine.models.language.ollama import OllamaLanguage

        return OllamaLanguage(named or OLLAMA_MODEL, settings.llm_timeout, settings.ollama_url)
    if settings.llm_provider == "claude":
        from engine.models.language.claude import DEFAULT_MODEL, ClaudeLanguage

        key = _key(settings.anthropic_api_key, "ANTHROPIC_API_KEY", free=False)
        model = named or settings.anthropic_model or DEFAULT_MODEL
        return ClaudeLanguage(model, settings.llm_timeout, key=key, url=settings.anthropic_base_url)
    if settings.llm_provider in {"openai", "grok"}:
        return _openai(settings, named)
    raise LanguageError(UNSET, remedy=HOW)


def _openai(settings: Settings, named: str | None) -> LanguageModel:
    from engine.models.language import openai
    from engine.models.language.sdk import Place

    if settings.llm_provider == "grok":
        url = settings.xai_base_url
        model = named or settings.xai_model or openai.GROK_MODEL
        key = _key(settings.xai_api_key, "XAI_API_KEY", free=url is not None)
        place = Place("Grok", model, url or openai.GROK_URL, key, "XAI_API_KEY", "XAI_BASE_URL")
    else:
        url = settings.openai_base_url
        model = named or settings.openai_model or openai.DEFAULT_MODEL
        key = _key(settings.openai_api_key, "OPENAI_API_KEY", free=url is not None)
        place = Place("OpenAI", model, url or openai.URL, key, "OPENAI_API_KEY", "OPENAI_BASE_URL")
    return openai.OpenAILanguage(
        model, settings.llm_timeout, place, provider=settings.llm_provider or "openai"
    )


def _key(found: str | None, name: str, *, free: bool) -> str:
    if found or free:
        return found or ""
    raise LanguageError(f"{name} is not set.", remedy="Set it in the environment or in .env.")
