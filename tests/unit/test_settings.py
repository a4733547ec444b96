"""Settings: where values come from, what is refused and in which words, and what is never shown."""

from __future__ import annotations

import dataclasses
import os
import stat
import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.errors import SettingsError
from engine.settings import Paths, Settings, example, mask


class Home:
    """A fresh installation in a temporary folder."""

    def __init__(self, root: Path) -> None:
        self.cwd = root / "work"
        self.cwd.mkdir()
        self.config = root / "config" / "noctuary" / "config.toml"
        self.env = {
            f"XDG_{name}_HOME": str(root / name.lower()) for name in ("DATA", "CONFIG", "STATE", "CACHE")
        }

    def dotenv(self, text: str) -> None:
        (self.cwd / ".env").write_text(text, encoding="utf-8")

    def toml(self, text: str) -> None:
        self.config.parent.mkdir(parents=True, exist_ok=True)
        self.config.write_text(text, encoding="utf-8")

    def load(self, **env: str) -> Settings:
        return Settings.load(self.env | env, self.cwd)

    def refusal(self, **env: str) -> str:
        with pytest.raises(SettingsError) as caught:
            self.load(**env)
        return str(caught.value)


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path)


def test_nothing_given_means_the_defaults(home: Home) -> None:
    settings = home.load()
    assert settings.database_url is None
    assert settings.embeddings_provider == "bundled"
    assert settings.retrieval_default_k == 3
    assert settings.retrieval_max_distance is None
    assert settings.source("retrieval_default_k") == "default"


def test_environment_wins_over_dotenv_wins_over_config(home: Home) -> None:
    home.toml("retrieval_default_k = 7\npoll_interval = 9\nwatch = 'polling'\n")
    home.dotenv("RETRIEVAL_DEFAULT_K=6\nNOCTUARY_POLL_INTERVAL=8\n")
    settings = home.load(RETRIEVAL_DEFAULT_K="5")
    assert (settings.retrieval_default_k, settings.poll_interval, settings.watch) == (5, 8.0, "polling")
    assert settings.source("retrieval_default_k") == "environment (RETRIEVAL_DEFAULT_K)"
    assert settings.source("poll_interval") == f"{home.cwd / '.env'}:2 (NOCTUARY_POLL_INTERVAL)"
    assert settings.source("watch") == f"{home.config}:3"


def test_our_own_name_wins_over_a_shared_one_in_the_same_place(home: Home) -> None:
    home.dotenv("NOCTUARY_DATABASE_URL=postgresql://ours/db\nDATABASE_URL=postgresql://theirs/db\n")
    assert home.load().database_url == "postgresql://ours/db"
    settings = home.load(DATABASE_URL="postgresql://theirs/db", NOCTUARY_DATABASE_URL="embedded")
    assert settings.database_url is None


def test_an_empty_value_is_not_given(home: Home) -> None:
    home.toml("retrieval_default_k = 7\n")
    assert home.load(RETRIEVAL_DEFAULT_K="").retrieval_default_k == 7


def test_a_knowman_dotenv_is_known_whole(home: Home) -> None:
    home.dotenv(
        "DATABASE_URL=postgresql+psycopg://knowman:pw@localhost:5432/knowman\nCORPUS_PATH=./corpus\n"
        "OLLAMA_URL=http://localhost:11434\nRETRIEVAL_DEFAULT_K=4\nRETRIEVAL_MAX_DISTANCE=0.5\n"
        "LLM_PROVIDER=claude\nCHAT_MODEL=m\nAGENT_MODEL=m\nANTHROPIC_API_KEY=sk-secret\nANTHROPIC_MODEL=m\n"
        "OPENAI_API_KEY=k\nOPENAI_MODEL=m\nXAI_API_KEY=k\nXAI_MODEL=m\nPROMPT_VERSION=ask_v1\n"
        "API_TOKEN=t0ken\nRATE_LIMIT_PER_MINUTE=0\n"
    )
    settings = home.load()
    assert settings.database_url == "postgresql://knowman:pw@localhost:5432/knowman"
    assert settings.corpus_path == (home.cwd / "corpus",)
    assert settings.retrieval_max_distance == 0.5
    assert (settings.llm_provider, settings.chat_model, settings.agent_model) == ("claude", "m", "m")
    assert (settings.anthropic_api_key, settings.api_token) == ("sk-secret", "t0ken")
    assert (settings.prompt_version, settings.rate_limit_per_minute) == ("ask_v1", 0)
    assert settings.ignored == ()
    shown = " ".join(f"{row}" for row in settings.rows())
    assert "sk-secret" not in shown
    assert "t0ken" not in shown
    assert ":pw@" not in shown
    assert "sk-secret" not in repr(settings)


def test_a_secret_that_is_not_valid_is_not_shown(home: Home) -> None:
    home.dotenv("API_TOKEN='pass word'\n")
    message = home.refusal()
    assert "api_token is ***" in message
    assert "word" not in message.replace("pass", "")


def test_keys_of_accounts_are_pairs_and_never_shown(home: Home) -> None:
    assert not home.load().guarded
    home.dotenv("NOCTUARY_API_KEYS='acme=k1==, acme=k2,zoo=k3'\n")
    settings = home.load()
    assert settings.api_keys == (("acme", "k1=="), ("acme", "k2"), ("zoo", "k3"))
    assert settings.guarded
    assert settings.api_token is None
    assert "k3" not in f"{settings!r} {settings.rows()}"


@pytest.mark.parametrize("value", ["k1", "=k1", "acme=", "acme=k 1", "a b=k1", "acme=k1,zoo=k1", "acme=k1,,"])
def test_a_key_that_is_of_no_account_or_of_two_is_refused(home: Home, value: str) -> None:
    home.dotenv(f"NOCTUARY_API_KEYS='{value}'\n")
    assert "api_keys is ***" in home.refusal()


def test_an_unknown_provider_is_refused_with_what_is_valid(home: Home) -> None:
    home.dotenv("# knowman\n\nEMBEDDINGS_PROVIDER=cloud\n")
    message = home.refusal()
    assert "embeddings_provider is 'cloud'" in message
    assert f"{home.cwd / '.env'}:3" in message
    assert "bundled, ollama, sentence-transformers or multilingual" in message


def test_a_model_of_any_name_is_left_to_its_provider(home: Home) -> None:
    given = home.load(EMBEDDINGS_PROVIDER="Ollama", EMBEDDINGS_MODEL="qwen3-embedding:0.6b")
    assert (given.embeddings_provider, given.embeddings_model) == ("ollama", "qwen3-embedding:0.6b")


def test_an_unknown_name_of_ours_in_the_environment_is_an_error_with_the_nearest(home: Home) -> None:
    message = home.refusal(NOCTUARY_POLL_INTERVALL="3")
    assert "NOCTUARY_POLL_INTERVALL in the environment" in message
    assert "Did you mean NOCTUARY_POLL_INTERVAL?" in message


def test_an_unknown_key_of_the_settings_file_is_an_error_with_its_line(home: Home) -> None:
    home.toml("watch = 'auto'\n\n# a comment\nretrieval_defualt_k = 4\n")
    message = home.refusal()
    assert f"retrieval_defualt_k in {home.config}:4" in message
    assert "Did you mean retrieval_default_k?" in message


def test_a_dotenv_of_another_project_is_left_alone_and_listed(home: Home) -> None:
    home.dotenv("SECRET_KEY=abc\nTEST_DATABASE_URL=mysql://x\nLOG_LEVEL=trace\nthis is no assignment\n")
    settings = home.load()
    assert settings.log_level == "info"
    assert len(settings.ignored) == 4
    assert any("SECRET_KEY" in sentence for sentence in settings.ignored)
    assert any(sentence.startswith(f"{home.cwd / '.env'}:4") for sentence in settings.ignored)
    assert not any("abc" in sentence for sentence in settings.ignored)


@pytest.mark.parametrize(
    ("wrong", "meant"),
    [
        ("EMBEDDING_MODEL", "EMBEDDINGS_MODEL"),
        ("DATABASE_URI", "DATABASE_URL"),
        ("NOCTUARY_EDITER", "NOCTUARY_EDITOR"),
        ("database_url", "DATABASE_URL"),
    ],
)
def test_a_key_of_dotenv_that_resembles_one_of_ours_is_an_error(home: Home, wrong: str, meant: str) -> None:
    home.dotenv(f"{wrong}=x\n")
    message = home.refusal()
    assert f"{wrong} in {home.cwd / '.env'}:1" in message
    assert f"Did you mean {meant}?" in message


def test_a_dollar_in_dotenv_is_a_dollar(home: Home) -> None:
    home.dotenv("DATABASE_URL='postgresql://u:pa$HOME${HOME}@h/d'\nNOCTUARY_EDITOR=\"vim +$LINE\"\n")
    settings = home.load(HOME="/home/x")
    assert settings.database_url == "postgresql://u:pa$HOME${HOME}@h/d"
    assert settings.editor == "vim +$LINE"


def test_the_last_of_several_equal_names_in_dotenv_holds(home: Home) -> None:
    home.dotenv("RETRIEVAL_DEFAULT_K=4\nRETRIEVAL_DEFAULT_K=5\n")
    assert home.load().retrieval_default_k == 5


def test_a_folder_called_dotenv_is_not_a_settings_file(home: Home) -> None:
    (home.cwd / ".env").mkdir()
    assert home.load().ignored == ()


def test_a_dotenv_that_is_not_utf8_is_listed_and_does_not_stop_the_start(home: Home) -> None:
    (home.cwd / ".env").write_bytes(b"NAME=\xff\xfe\n")
    assert "cannot be read" in home.load().ignored[0]


def test_a_database_named_by_a_shared_name_is_pointed_out(home: Home) -> None:
    home.dotenv("DATABASE_URL=postgresql://app:pa55@db/shop\n")
    (caution,) = home.load().cautions
    assert f"{home.cwd / '.env'}:1" in caution
    assert "pa55" not in caution
    assert "NOCTUARY_DATABASE_URL=embedded" in caution
    assert home.load(NOCTUARY_DATABASE_URL="postgresql://mine/x").cautions == ()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("RETRIEVAL_DEFAULT_K", "0"),
        ("RETRIEVAL_DEFAULT_K", "three"),
        ("RETRIEVAL_DEFAULT_K", "2.5"),
        ("RETRIEVAL_MAX_DISTANCE", "nan"),
        ("RETRIEVAL_MAX_DISTANCE", "inf"),
        ("RETRIEVAL_MAX_DISTANCE", "-0.1"),
        ("DATABASE_URL", "mysql://u@h/d"),
        ("DATABASE_URL", "shop"),
        ("OLLAMA_URL", "localhost:11434"),
        ("NOCTUARY_WATCH", "sometimes"),
        ("NOCTUARY_POLL_INTERVAL", "0"),
        ("NOCTUARY_RECONCILE_INTERVAL", "1e9"),
        ("NOCTUARY_REDUCED_REPAINT", "maybe"),
        ("NOCTUARY_EDITOR", "vim 'unclosed"),
        ("NOCTUARY_LOG_LEVEL", "loud"),
    ],
)
def test_an_invalid_value_names_setting_value_source_and_what_is_expected(
    home: Home, name: str, value: str
) -> None:
    message = home.refusal(**{name: value})
    assert name.removeprefix("NOCTUARY_").lower() in message
    assert value in message
    assert f"environment ({name})" in message
    assert "Expected: " in message


@pytest.mark.parametrize(
    "line",
    ["retrieval_default_k = true", "poll_interval = 'soon'", "watch = 3", "keys = 'y'", "corpus_path = [1]"],
)
def test_a_value_of_the_wrong_type_in_the_settings_file_is_refused(home: Home, line: str) -> None:
    home.toml(line)
    assert f"{home.config}:1" in home.refusal()


def test_a_settings_file_that_is_not_toml_is_refused_with_its_line(home: Home) -> None:
    home.toml("watch = auto\n")
    message = home.refusal()
    assert str(home.config) in message
    assert "line 1" in message


def test_a_refused_address_does_not_show_its_password(home: Home) -> None:
    assert "hunter2" not in home.refusal(DATABASE_URL="mysql://root:hunter2@h/d")
    assert "hunter2" not in home.refusal(DATABASE_URL="mysql://root:hunter2 with space@h/d")


def test_folders_are_separated_expanded_and_made_absolute(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(home.cwd))
    settings = home.load(CORPUS_PATH=os.pathsep.join(["a", "~/b", "", "/c", "a"]))
    assert settings.corpus_path == (home.cwd / "a", home.cwd / "b", Path("/c"))


def test_a_home_folder_that_is_not_known_is_named(home: Home) -> None:
    assert "~nosuchuser/notes" in home.refusal(CORPUS_PATH="~nosuchuser/notes")


def test_folders_of_the_settings_file_start_from_its_own_folder(home: Home) -> None:
    home.toml("corpus_path = ['notes', '/c']\n")
    assert home.load().corpus_path == (home.config.parent / "notes", Path("/c"))


@pytest.mark.parametrize(
    ("line", "wrong", "near"),
    [
        ('list.cpoy = "y"', "list.cpoy", "list.copy"),
        ('"app.quitt" = "y"', "app.quitt", "app.quit"),
        ('copy = "y"', "copy", "list.copy"),
        ('"\u200b" = "y"', "\u200b", ""),
    ],
)
def test_keys_of_an_action_that_is_none_are_refused_with_the_place_and_the_nearest(
    home: Home, line: str, wrong: str, near: str
) -> None:
    home.toml(f"watch = 'auto'\n[keys]\n{line}\n")
    told = home.refusal()
    assert f"There is no action {wrong!r} to give keys to (in {home.config}:2)." in told
    assert f"Did you mean '{near}" in told


def test_keys_are_remapped_by_a_table(home: Home) -> None:
    home.toml('[keys]\n"list.copy" = ["y", "c"]\n"app.quit" = "ctrl+q"\njobs.retry = "t"\n')
    settings = home.load()
    assert dict(settings.keymap) == {"list.copy": "y,c", "app.quit": "ctrl+q", "jobs.retry": "t"}
    with pytest.raises(TypeError):
        settings.keys["x"] = "y"  # type: ignore[index]


def test_the_editor_falls_back_to_visual_then_editor(home: Home) -> None:
    assert home.load(EDITOR="nano", VISUAL="code --wait").editor_command() == ("code", "--wait")
    assert home.load(EDITOR="nano").source("editor") == "environment (EDITOR)"
    home.toml("editor = 'hx'\n")
    assert home.load(EDITOR="nano", VISUAL="vim").editor_command() == ("hx",)


def test_no_editor_at_all_is_said(home: Home, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SettingsError, match="No editor"):
        home.load().editor_command()


def test_settings_cannot_be_changed(home: Home) -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        home.load().watch = "events"  # type: ignore[misc]


def test_loading_makes_no_folder_and_first_use_makes_a_private_one(home: Home, tmp_path: Path) -> None:
    settings = home.load()
    assert not (tmp_path / "data").exists()
    assert settings.paths.data == tmp_path / "data" / "noctuary"
    for folder in (tmp_path / "data", tmp_path / "data" / "noctuary"):
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert not (tmp_path / "state").exists()


def test_a_folder_that_cannot_be_made_is_named(home: Home, tmp_path: Path) -> None:
    (tmp_path / "state").write_text("a file is in the way")
    with pytest.raises(SettingsError, match=str(tmp_path / "state" / "noctuary")):
        _ = home.load().paths.state


def test_a_relative_xdg_folder_is_refused(home: Home) -> None:
    assert "XDG_DATA_HOME is 'data'" in home.refusal(XDG_DATA_HOME="data")


def test_without_xdg_the_platform_decides(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("XDG_DATA_HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    for path in Paths.of({}).locations().values():
        assert path.is_relative_to(tmp_path)
        assert path.name == "noctuary"


def test_the_example_file_explains_every_setting_and_is_valid_when_uncommented(home: Home) -> None:
    text = example()
    for row in home.load().rows():
        assert row.name in text
        assert row.doc in text
    uncommented = "\n".join(
        line.removeprefix("# ") for line in text.splitlines() if " = " in line or line == "# [keys]"
    )
    table = tomllib.loads(uncommented)
    home.toml("\n".join(line for line in uncommented.splitlines() if not line.endswith('""')))
    assert set(table) == {row.name for row in home.load().rows()}
    assert {row.name for row in home.load().rows() if row.value} >= {"watch", "keys"}


@given(
    st.text(
        alphabet=st.characters(exclude_characters="\n@/:?#", exclude_categories=["Cs", "Zs", "Cc"]),
        min_size=1,
    )
)
def test_no_password_survives_masking(password: str) -> None:
    secret = f"<{password}>"
    assert secret not in mask(f"postgresql://user:{secret}@host:5432/name")
    assert mask(f"postgresql://user:{secret}@host:5432/name") == "postgresql://user:***@host:5432/name"
    quoted = secret.replace("\\", "\\\\").replace("'", "\\'")
    assert secret not in mask(f"host=h password='{quoted}' dbname=d")


def test_masking_leaves_an_address_without_password_as_it_is() -> None:
    assert mask("postgresql://user@host/name") == "postgresql://user@host/name"
    assert (
        mask("postgresql:///name?host=/run&password=pw&user=u")
        == "postgresql:///name?host=/run&password=***&user=u"
    )
