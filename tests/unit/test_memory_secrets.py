"""Secrets are masked whatever form they have, and nothing else is touched."""

from __future__ import annotations

import subprocess
import sys
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.memory.secrets import mask

# Put together here, so that no scanner takes this file for a leak.
LETTERS = "aB3dE5gH7jK9mN1pQ2sT4vW6yZ8bC0dF3gH5jL7n"
HEX = "0123456789abcdef" * 5
SECRETS = {
    "AWS access key": [f"AKIA{'ABCDEFGH12345678'}", f"ASIA{'ABCDEFGH12345678'}"],
    "GitHub token": [f"ghp_{LETTERS[:36]}", f"gho_{LETTERS[:36]}", f"github_pat_11ABC_{LETTERS}"],
    "GitLab token": [f"glpat-{LETTERS[:20]}"],
    "Slack token": [
        f"xoxb-{'123456789012'}-{'1234567890123'}-{LETTERS[:24]}",
        f"https://hooks.slack.com/services/T{'00000000'}/B{'00000000'}/{LETTERS[:24]}",
        f"xapp-1-{'A0123'}-{'123456'}-{HEX}",
    ],
    "Stripe key": [f"sk_live_{LETTERS[:24]}", f"rk_test_{LETTERS[:24]}"],
    "Google key": [f"AIza{LETTERS[:35]}"],
    "OpenAI key": [f"sk-{LETTERS}aB3dE5gH", f"sk-proj-{LETTERS}_{LETTERS[:20]}-{LETTERS}"],
    "API key": [f"sk-or-v1-{HEX[:64]}", f"sk-{HEX[:32]}"],
    "Anthropic key": [f"sk-ant-api03-{LETTERS}-{LETTERS}_AA"],
    "Azure storage key": [f"AccountKey={LETTERS}{LETTERS}aBcDef=="],
    "npm token": [f"npm_{LETTERS[:36]}"],
    "PyPI token": [f"pypi-AgEIcHlwaS5vcmc{LETTERS}{LETTERS}"],
    "SendGrid key": [f"SG.{LETTERS[:22]}.{LETTERS}aBc"],
    "Hugging Face token": [f"hf_{'abcDEFghiJKLmnoPQRstuVWXyzABCDefGH'}"],
    "JSON web token": [f"eyJ{LETTERS[:30]}.eyJ{LETTERS}.{LETTERS}-_x", f"eyJ{LETTERS[:30]}.eyJ{LETTERS}"],
    "Telegram token": [f"123456789:{LETTERS[:35]}"],
    "private key": [
        f"-----BEGIN {kind} KEY{block}-----\n{LETTERS}\n{LETTERS}=\n-----END {kind} KEY{block}-----"
        for kind, block in [
            *(("RSA PRIVATE", ""), ("PRIVATE", ""), ("EC PRIVATE", ""), ("OPENSSH PRIVATE", "")),
            *(("ENCRYPTED PRIVATE", ""), ("PGP PRIVATE", " BLOCK")),
        ]
    ],
}
EACH = [(kind, secret) for kind, secrets in SECRETS.items() for secret in secrets]
BEFORE = ["", "my key is ", "key=", '"', "(", "`", "\\n", "%3D", "\n", "用"]
AFTER = ["", " is my key", '"', ".", ", keep it", "\n", ")", "。"]

KEPT = [
    "commit 9fceb02d0ae598e95dc970b74767f19372d61af8, see 9fceb02",
    "id: 550e8400-e29b-41d4-a716-446655440000",
    "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
    "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==",
    "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n-----BEGIN PUBLIC KEY-----\nMIIB\n-----END PUBLIC KEY-----",
    '<div class="sk-estimator-doc-link sk-toggleable-content-label">task-management-for-everyone-in-the-team</div>',
    "password = get_password2(user)\ntoken: str\nsecret_key=hashlib.sha256(b'')\napi_key = settings.api_key2",
    "max_tokens=4096, tokenizer=meta-llama/Llama-3.1-8B, token: $TOKEN1234, password: <password1234>",
    "the password is important; tokens: 12,000; secretary: Anna",
    "https://example.com:8080/a@b and mailto:ann@example.com and git@github.com:ann/x.git",
    "Authorization: Bearer $TOKEN",
    f"iVBORAC{HEX[:32]} desk-{HEX[:32]} MAKIAABCDEFGH12345678",
    "tokens=12345678, the secret: Müller&Söhne",
    "[masked: AWS access key]",
]


@pytest.mark.parametrize(("kind", "secret"), EACH)
@pytest.mark.parametrize("before", BEFORE)
def test_a_secret_is_masked_wherever_it_stands_and_all_around_it_stays(kind, secret, before):
    for after in AFTER:
        masked = mask(f"{before}{secret}{after}")
        assert masked.text == f"{before}[masked: {kind}]{after}"
        assert dict(masked.kinds) == {kind: 1}
        assert masked.count == 1


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("https://ann:p@ss!w0rd@example.com/x?a@b", "https://ann:[masked: password]@example.com/x?a@b"),
        ("postgresql://ann:s%40cret@[::1]:5432/db", "postgresql://ann:[masked: password]@[::1]:5432/db"),
        (
            "curl -H 'Authorization: Bearer abcDEF123-_'",
            "curl -H 'Authorization: Bearer [masked: authorization]'",
        ),
        ('{"authorization": "Basic YWxhZGRpbjpv"}', '{"authorization": "Basic YWxhZGRpbjpv"}'),
        ('{"authorization": "Basic YW5uOjEyMw=="}', '{"authorization": "Basic [masked: authorization]"}'),
        ("export DB_PASSWORD='Tr0ub4dor&3'", "export DB_PASSWORD='[masked: password or key]'"),
        ('"api_key": "a1b2-c3d4-e5f6"', '"api_key": "[masked: password or key]"'),
        (f"AWS_SECRET_ACCESS_KEY={LETTERS}", "AWS_SECRET_ACCESS_KEY=[masked: password or key]"),
        (f"//registry.example/:_authToken={HEX[:36]}", "//registry.example/:_authToken=[masked: npm token]"),
    ],
)
def test_what_is_said_to_be_secret_is_masked_and_its_name_stays(text, shown):
    assert mask(text).text == shown


@pytest.mark.parametrize("text", KEPT)
def test_what_is_no_secret_stays(text):
    assert mask(text).text == text
    assert mask(text).count == 0


def test_a_private_key_without_an_end_is_masked_to_the_end_of_the_text():
    masked = mask(f"here:\n-----BEGIN RSA PRIVATE KEY-----\n{LETTERS}\nthe rest was cut")
    assert masked.text == "here:\n[masked: private key]"


def test_a_secret_that_shows_once_another_is_masked_is_masked_too():
    masked = mask(f"PuTTY-User-Key-File-2: x\nPrivate-MAC: ab{SECRETS['GitHub token'][0]}")
    assert masked.text == "[masked: private key][masked: GitHub token]"


def test_secrets_in_one_text_are_counted_by_kind():
    key, token = SECRETS["AWS access key"][0], SECRETS["GitHub token"][0]
    masked = mask(f"{key} {token}\n{key}, {SECRETS['private key'][0]}.")
    assert masked.text == (
        "[masked: AWS access key] [masked: GitHub token]\n[masked: AWS access key], [masked: private key]."
    )
    assert dict(masked.kinds) == {"AWS access key": 2, "GitHub token": 1, "private key": 1}
    assert masked.count == 4


pieces = st.sampled_from([*(secret for _, secret in EACH), *KEPT, *BEFORE, *AFTER, "://u:", "@", "password="])


@given(st.one_of(st.text(), st.lists(st.one_of(pieces, st.text(max_size=4)), max_size=6).map("".join)))
def test_what_is_masked_stays_as_it_is(text):
    once = mask(text)
    assert mask(once.text) == type(once)(once.text, {})
    assert (once.text == text) == (once.count == 0)


@pytest.mark.parametrize(
    "text",
    [
        *("x", "0", "a1", "_", "key" + 99 * " ", "://", "://a:", "password=", "token.", "aws ", "AC", "-us1"),
        *("eyJ", "eyJaaaaaaaaaaaaa.", "sk-", "xoxb-1-", "glagent-", "AKIA", "aaa1Q~", "-----BEGIN "),
        *("-----BEGIN PRIVATE KEY-----", "AKIAABCDEFGHIJKLMNOP ", "://a:b@c ", "token=aaaaaa11aa.aaa.!1 "),
    ],
)
def test_a_long_text_is_looked_through_in_moments(text):
    mask("")  # the detector is loaded once
    started = time.perf_counter()
    mask(text * (250_000 // len(text)))
    assert time.perf_counter() - started < 2


def test_the_detector_is_not_loaded_before_it_is_needed():
    code = "import sys, engine.memory.secrets as s; assert 'detect_secrets' not in sys.modules; s.mask('x')"
    subprocess.run([sys.executable, "-W", "error", "-c", code], check=True)
