"""Secrets are taken out by kind. Every sample is made up and joined here from pieces, so that no
scanner takes this file for a leak."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anaphora.errors import InvalidInput
from anaphora.ingest.secrets.redacting import MAX_DEPTH, redact, redact_value

HEX = "0123456789abcdef"
LETTERS = "abcdefghijklmnopqrstuvwxyz"
MIXED = "Ab1Cd2Ef3Gh4Ij5Kl6Mn7Op8Qr9St0Uv1Wx2Yz3Ab4Cd5Ef6Gh7Ij8Kl9Mn0Op1Qr2St3Uv4Wx5Yz6Ab7Cd8Ef9"


def encoded(value: object) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")


JWT = f"{encoded({'alg': 'HS256', 'typ': 'JWT'})}.{encoded({'sub': '1'})}.{MIXED[:43]}"
BOT = base64.b64encode(b"123456789012345678").decode().rstrip("=")
PEM = "-----BEGIN RSA " + "PRIVATE KEY-----\n" + (MIXED[:64] + "\n") * 4 + "-----END RSA "
PEM += "PRIVATE KEY-----"
PUTTY = "PuTTY-User-Key-" + f"File-2: ssh-rsa\nPrivate-Lines: 1\n{MIXED}\nPrivate-MAC: {HEX * 2}"
# (name of the detect-secrets plugin or "", kind, the secret, the text around it)
SAMPLES: list[tuple[str, str, str, str]] = [
    ("ArtifactoryDetector", "artifactory-token", "AKC" + "p" + MIXED[:69], "artifactory: {}"),
    ("ArtifactoryDetector", "artifactory-token", "AP" + "B" + MIXED[:30], "artifactory: {}"),
    ("AWSKeyDetector", "aws-access-key", "AKIA" + "ABCDEFGH234567IJ", "the key {} is Ann's"),
    ("AWSKeyDetector", "aws-secret-key", MIXED[:38] + "/+", "aws_secret_access_key = '{}'"),
    ("AzureStorageKeyDetector", "azure-storage-key", MIXED[:86] + "==", "AccountKey={};Suffix=x"),
    ("BasicAuthDetector", "basic-auth", "s3same", "clone https://ann:{}@example.org/repo"),
    ("CloudantDetector", "cloudant-key", HEX * 4, "cloudant_password = '{}'"),
    ("DiscordBotTokenDetector", "discord-token", f"{BOT}.Gabc1D.{MIXED[:27]}", "bot {}"),
    ("GitHubTokenDetector", "github-token", "ghp" + "_" + MIXED[:36], "use {} to push"),
    ("GitLabTokenDetector", "gitlab-token", "glpat" + "-" + MIXED[:20], "use {} to push"),
    ("IbmCloudIamDetector", "ibm-cloud-key", MIXED[:44], "ibm_cloud_api_key: {}"),
    ("IbmCosHmacDetector", "ibm-cos-key", HEX * 3, "cos_hmac_secret_access_key = {}"),
    ("JwtTokenDetector", "jwt", JWT, "cookie {}; path=/"),
    ("KeywordDetector", "password", "correcthorse9", 'password = "{}"'),
    ("KeywordDetector", "secret", "zq81-mmxp-0042", 'api_key: "{}"'),
    ("KeywordDetector", "secret", "zq81-mmxp-0042", 'if ("{}" == my_secret) {{'),
    ("", "secret", MIXED[:60], '# Settings\n\nkey="{}"\n'),
    ("", "password", "zq81-mmxp-0042", "[db]\npassword =\n    {}\n[more]"),
    ("", "secret", "zq81mmxp0042", "[db]\r\napi_key=\r\n\t'{}'"),
    ("MailchimpDetector", "mailchimp-key", HEX * 2 + "-us12", "mailchimp {}"),
    ("NpmDetector", "npm-token", "npm" + "_" + MIXED[:36], "//registry.npmjs.org/:_authToken={}"),
    ("OpenAIDetector", "openai-key", "sk-" + MIXED[:20] + "T3Blbk" + "FJ" + MIXED[:20], "key {}"),
    ("PrivateKeyDetector", "private-key", PEM, "here it is:\n{}\nthanks"),
    ("PrivateKeyDetector", "private-key", PUTTY, "here it is:\n{}\nthanks"),
    ("PypiTokenDetector", "pypi-token", "pypi-" + "AgEIcHlwaS5vcmc" + MIXED[:80], "upload with {}"),
    ("SendGridDetector", "sendgrid-key", f"SG.{MIXED[:22]}.{MIXED[:43]}", "mail by {}"),
    ("SlackDetector", "slack-token", "xox" + "b-1234567890-1234567890-" + MIXED[:24], "slack {}"),
    ("SlackDetector", "slack-webhook", "hooks.slack." + "com/services/T0AB/B0CD/" + MIXED[:24],
     "post to https://{}"),
    ("SoftlayerDetector", "softlayer-key", HEX * 4, "softlayer_api_key = '{}'"),
    ("SquareOAuthDetector", "square-token", "sq0" + "csp-" + MIXED[:43], "square {}"),
    ("StripeDetector", "stripe-key", "sk" + "_live_" + MIXED[:24], "stripe {}"),
    ("TelegramBotTokenDetector", "telegram-token", "110201543:" + "AA" + MIXED[:33], "telegram {}"),
    ("TwilioKeyDetector", "twilio-key", "SK" + HEX * 2, "twilio {}"),
    ("", "anthropic-key", "sk-" + "ant-api03-" + MIXED[:80], "claude {}"),
    ("", "authorization-header", MIXED[:40], "Authorization: Bearer {}"),
    (
        "", "authorization-header", base64.b64encode(b"ann:s3same").decode(),
        "Authorization: Basic {}",
    ),
    ("", "azure-storage-key", MIXED[:43] + "=", "Endpoint=sb://x/;SharedAccessKey={}"),
    ("", "card-number", "4111 1111 1111 1111", "my Visa is {}, till 09/29"),
    ("", "card-number", "5555-5555-5555-4444", "card {}"),
    ("", "card-number", "3782 822463 10005", "amex {}."),
    ("", "card-number", "6011111111111117", "card {}"),
    ("", "card-number", "30569309025904", "diners {}"),
    ("", "digitalocean-token", "dop" + "_v1_" + HEX * 4, "token is {}"),
    ("", "github-token", "github" + "_pat_" + MIXED[:22] + "_" + MIXED[:59], "use {} to push"),
    ("", "google-key", "AIza" + MIXED[:35], "maps key {}"),
    ("", "google-key", "GOCSPX" + "-" + MIXED[:28], "client {}"),
    ("", "huggingface-token", "hf" + "_" + (LETTERS * 2)[:34], "login {}"),
    ("", "mailgun-key", "key-" + HEX * 2, "mailgun {}"),
    ("", "openai-key", "sk-" + "proj-" + MIXED[:80], "key {}"),
    ("", "openrouter-key", "sk-" + "or-v1-" + HEX * 4, "key {}"),
    ("", "password", "hunter2", "the password is {}"),
    ("", "password", "Sunflower2024", "My wifi password is {}!"),
    ("", "password", "tr0ub4dor&3", "Password: {}"),
    ("", "password", "12345678", "password={}"),
    ("", "password", "abc12345", "https://example.org/?user=a&password={}&page=2"),
    ("", "password", "tr0ub4dor", "db_password: '{}'"),
    ("", "private-key", PEM.replace("\n", "\\n"), '{{"private_key": "{}"}}'),
    ("", "secret", MIXED[:20], "client_secret={}"),
    ("", "secret", MIXED[:20], "export GH_TOKEN={}"),
    ("", "shopify-token", "shp" + "at_" + HEX * 2, "shop {}"),
    ("", "square-token", "sq0" + "atp-" + MIXED[:22], "square {}"),
    ("", "us-ssn", "123-45-6789", "SSN {}"),
    ("", "us-ssn", "123 45 6789", "her social security number is {}"),
    ("", "stripe-key", "rk" + "_test_" + MIXED[:24], "stripe {}"),
    ("", "vault-token", "hvs" + "." + MIXED[:30], "vault {}"),
]  # fmt: skip


@pytest.mark.parametrize(("plugin", "kind", "secret", "around"), SAMPLES)
def test_a_secret_is_replaced_by_its_kind(plugin: str, kind: str, secret: str, around: str) -> None:
    """The secret is gone, its kind stands in its place, and the words around it stay."""
    redacted = redact(around.format(secret))
    assert redacted.kinds == (kind,)
    assert redacted.text == around.format(f"[redacted:{kind}]")
    assert redact(redacted.text).kinds == ()


def test_what_detect_secrets_knows_is_known() -> None:
    """Each kind of detect-secrets has a sample here that it and we find (entropy and IPs aside)."""
    plugins = pytest.importorskip("detect_secrets.core.plugins.util")
    known = dict(plugins.get_mapping_from_secret_type_to_class())
    names = {kind.__name__: kind for kind in known.values()}
    left_out = {"Base64HighEntropyString", "HexHighEntropyString", "IPPublicDetector"}
    assert set(names) - left_out == {plugin for plugin, *_ in SAMPLES if plugin}
    for plugin, kind, secret, around in SAMPLES:
        if not plugin:
            continue
        text = around.format(secret)
        assert any(list(names[plugin]().analyze_string(line)) for line in text.split("\n")), plugin
        assert redact(text).kinds == (kind,)


def test_several_secrets_are_listed_in_order() -> None:
    """Each secret in a text is taken out, and `kinds` has one entry for each, in order."""
    text = f"{SAMPLES[2][2]} then {JWT} then {PEM} and {JWT}"
    redacted = redact(text)
    assert redacted.kinds == ("aws-access-key", "jwt", "private-key", "jwt")
    assert JWT[:20] not in redacted.text


def test_a_key_without_its_end_goes_too() -> None:
    """A private key that was cut off is taken out as far as it goes; a mention of one stays."""
    cut = PEM[: PEM.index("-----END")]
    assert MIXED[:16] not in redact(cut + "\nthat is all I have").text
    mention = "Files that begin with -----BEGIN PRIVATE " + "KEY----- are keys."
    assert redact(mention).text == mention


def test_payloads_keep_their_shape() -> None:
    """Texts inside mappings and lists are cleaned, keys that name secrets count, the rest stays."""
    value = {
        "password": "hunter22",
        "nested": [{"note": f"use {JWT}"}, ("a", 1, None, True, 2.5)],
        "card": 4111111111111111,
        "password_hint": "first pet 1",
        "secret_id": "a1b2c3d4e5",
        "tokens": 4096,
        "token": "csrf",
    }
    redacted = redact_value(value)
    assert redacted.value == {
        "password": "[redacted:password]",
        "nested": [{"note": "use [redacted:jwt]"}, ("a", 1, None, True, 2.5)],
        "card": "[redacted:card-number]",
        "password_hint": "first pet 1",
        "secret_id": "a1b2c3d4e5",
        "tokens": 4096,
        "token": "csrf",
    }
    assert redacted.kinds == ("password", "jwt", "card-number")
    assert value["password"] == "hunter22"
    assert redact_value("plain").value == "plain"


def test_endless_payloads_are_refused() -> None:
    """What is nested deeper than the limit, or in itself, is an error and no overrun."""
    deep: Any = "x"
    for _ in range(MAX_DEPTH):
        deep = [deep]
    assert redact_value(deep).kinds == ()
    with pytest.raises(InvalidInput):
        redact_value([deep])
    endless: list[Any] = []
    endless.append(endless)
    with pytest.raises(InvalidInput):
        redact_value(endless)


PIECES = st.one_of(
    st.sampled_from([around.format(secret) for _, _, secret, around in SAMPLES]),
    st.sampled_from([secret for _, _, secret, _ in SAMPLES]),
    st.sampled_from(["password", " = ", ": ", '"', "'", " ", "\n", "://", "@", "[", "]", "key"]),
    st.text(max_size=12),
)


@settings(max_examples=300, deadline=None)
@given(st.lists(PIECES, max_size=6).map("".join))
def test_twice_is_once(text: str) -> None:
    """A text that was cleaned has nothing left to clean."""
    once = redact(text)
    assert redact(once.text).text == once.text
    assert (once.text == text) == (once.kinds == ())


@settings(max_examples=200, deadline=None)
@given(st.lists(st.one_of(PIECES, st.sampled_from(["\u0130", "\n", "i\u0307"])), max_size=8))
def test_letters_that_grow_in_lower_case_end(pieces: list[str]) -> None:
    """A text with a letter of two characters in lower case is read to its end, and cleaned."""
    text = "\u0130\n" + "".join(pieces) + "\npassword = 'correcthorse9'"
    once = redact(text)
    # A piece may be the same word, free of any name.
    assert "correcthorse9" not in once.text.rpartition("\n")[2]
    assert redact(once.text).text == once.text


UNITS = [
    "x", "1", "1 ", "4111 ", "a1", "-", "eyJ", "eyJabcde.", "password ", "password=", "secret_key",
    "aws ", "://a:b", ":", "bearer ", "xoxb-1-", "sk-", "\"aaaaaaaa\"=", "PuTTY-User-Key-File-2",
    "-----BEGIN PRIVATE " + "KEY-----", "-----BEGIN PRIVATE " + "KEY-----\nabcdefghijklmnopqrst",
    "secret=a.a.a.a.a.a", "key_", "ibm_cloud_", "APA1", "\u00e9", "token=a_", "password='",
    "\u0130", "\u0130\n",
]  # fmt: skip


@pytest.mark.parametrize("unit", UNITS)
def test_no_text_takes_long(unit: str) -> None:
    """A text of 200,000 characters of any one shape is read within the time-out."""
    assert len(redact(unit * (200_000 // len(unit))).text) > 0
