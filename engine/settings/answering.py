"""The settings of what answers: language models, prompts, and the HTTP door."""

from __future__ import annotations

from dataclasses import dataclass

from . import parsing
from .spec import setting


@dataclass(frozen=True)
class Answering:
    """The part of `Settings` that only answers and doors need."""

    llm_provider: str | None = setting(
        None,
        parsing.choice("ollama", "claude", "openai", "grok"),
        "ollama, claude, openai or grok, or unset",
        "The language model's provider, for answers and the writing agent. Unset: none is ever called.",
        plain=True,
        unset="none",
    )
    chat_model: str | None = setting(
        None,
        parsing.text,
        "the name of a model that the provider has, or unset",
        "The model that writes answers. Unset: ANTHROPIC_MODEL, OPENAI_MODEL or XAI_MODEL, then the "
        "provider's own default.",
        plain=True,
        unset="the provider's own",
    )
    agent_model: str | None = setting(
        None,
        parsing.text,
        "the name of a model that calls tools, or unset",
        "The model of the writing agent; it must call tools. Unset: the one that writes answers.",
        plain=True,
        unset="the chat model",
    )
    anthropic_api_key: str | None = setting(
        None, parsing.secret, "a key", "The key for claude.", plain=True, secret=True, unset="none"
    )
    anthropic_model: str | None = setting(
        None,
        parsing.text,
        "the name of a model",
        "The model of claude, where CHAT_MODEL names none.",
        plain=True,
        unset="the provider's own",
    )
    anthropic_base_url: str | None = setting(
        None,
        parsing.http_url,
        "an address such as https://host",
        "Where claude is asked. Unset: at Anthropic.",
        plain=True,
        unset="Anthropic's",
    )
    openai_api_key: str | None = setting(
        None, parsing.secret, "a key", "The key for openai.", plain=True, secret=True, unset="none"
    )
    openai_model: str | None = setting(
        None,
        parsing.text,
        "the name of a model",
        "The model of openai, where CHAT_MODEL names none.",
        plain=True,
        unset="the provider's own",
    )
    openai_base_url: str | None = setting(
        None,
        parsing.http_url,
        "an address such as http://localhost:8080/v1",
        "Where openai is asked: any server that speaks its protocol. Unset: at OpenAI.",
        plain=True,
        unset="OpenAI's",
    )
    xai_api_key: str | None = setting(
        None, parsing.secret, "a key", "The key for grok.", plain=True, secret=True, unset="none"
    )
    xai_model: str | None = setting(
        None,
        parsing.text,
        "the name of a model",
        "The model of grok, where CHAT_MODEL names none.",
        plain=True,
        unset="the provider's own",
    )
    xai_base_url: str | None = setting(
        None,
        parsing.http_url,
        "an address such as https://api.x.ai/v1",
        "Where grok is asked. Unset: at xAI.",
        plain=True,
        unset="xAI's",
    )
    llm_timeout: float = setting(
        120.0,
        parsing.number(0.1, 3600),
        "seconds, from 0.1 to 3600",
        "Seconds a language model may be silent before it is given up.",
        plain=True,
    )
    llm_daily_token_limit: int = setting(
        0,
        parsing.integer(0, 1_000_000_000_000),
        "a whole number of tokens; 0 for none",
        "Tokens a day, read and written together, after which no language model is called. 0: no limit.",
        plain=True,
    )
    prompt_version: str = setting(
        "ask_v1",
        parsing.text,
        "the name of a file in prompts/ without its .txt",
        "The prompt that answers are written with.",
        plain=True,
    )
    api_token: str | None = setting(
        None,
        parsing.secret,
        "a token",
        "What `noctuary serve` wants to be shown. Unset: it is open to whoever reaches it.",
        plain=True,
        secret=True,
        unset="none",
    )
    api_keys: tuple[tuple[str, str], ...] = setting(
        (),
        parsing.account_keys,
        "account=key, or several separated by commas",
        "Keys of other accounts: each opens the memory of its account in `noctuary serve`, and nothing else. "
        "In config.toml a list may be given.",
        secret=True,
        unset="none",
    )
    rate_limit_per_minute: int = setting(
        0,
        parsing.integer(0, 1_000_000),
        "a whole number; 0 for none",
        "Requests a minute that `noctuary serve` answers each client. 0: no limit.",
        plain=True,
    )

    @property
    def guarded(self) -> bool:
        """Whether `noctuary serve` wants to be shown a key."""
        return self.api_token is not None or bool(self.api_keys)
