"""Secrets in texts: each format is found, in any surroundings, and nothing else is."""

from __future__ import annotations

import base64
import importlib.util
import json
import string
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anaphora import Memory
from anaphora.errors import InvalidInput
from anaphora.ingest.secrets.masking import mask
from anaphora.ingest.secrets.redacting import MAX_DEPTH, redact, redact_value

HEX = "0123456789abcdef"
LETTERS = "abcdefghijklmnopqrstuvwxyz"
UUID = "3f2504e0-4f89-41d3-9a0c-0305e82c3301"
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


_spec = importlib.util.spec_from_file_location(
    "secret_formats", Path(__file__).with_name("secret_formats.py")
)
assert _spec is not None
assert _spec.loader is not None
_formats = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(_formats)
FORMATS = _formats.FORMATS
IDS = [f"{kind}-{number}" for number, (kind, _) in enumerate(FORMATS)]

AROUND = {
    "sentence": "Use {} to sign in.",
    "bare": "{}",
    "german": "Der Schlüssel lautet {}, bitte nicht weitergeben.",
    "japanese": "トークンは{}です。",
    "russian": "Ключ: «{}».",
    "code": "client = Client('{}', timeout=3)",
    "url": "https://api.example.org/v1/items?x=1&access={}&page=2",
    "escaped url": "https://api.example.org/login?next=%2Fa%3Fk%3D{}",
    "json": '{{"first": 1, "value": "{}"}}',
    "json in json": '{{"log": "line one\\n{}\\nline two"}}',
    "table": "| name | value |\n|---|---|\n| prod | {} |",
    "yaml": "service:\n  value: {}\n  port: 80",
    "env": "export VALUE={}\nPORT=80",
    "shell": 'curl -H "X-Thing: {}" https://example.org | jq .',
    "markdown": "Call it with `{}` (see **below**).",
    "html": "<input value={}><b>x</b>",
    "bold": "the **{}**, as before",
    "underlined": "the __{}__",
    "emphasised": "the _{}_ key",
    "struck": "~~{}~~",
    "json escapes": '{{"query": "a\\u003d{}\\u0026b"}}',
    "mail": "a=3D{}",
    "joined option": "tool -k{} run",
    "removed line": "-{}",
    "user of a url": "https://{}@example.org/a.git",
    "chinese": "密钥：{}，请勿外传",
    "arabic": "المفتاح هو {}، احفظه",
    "french": "la clé est « {} » aujourd’hui",
}


@pytest.mark.promise("secrets.formats")
@pytest.mark.parametrize(("kind", "parts"), FORMATS, ids=IDS)
def test_a_secret_is_found_wherever_it_stands(kind: str, parts: tuple[object, ...]) -> None:
    """Three of each format, in sentences, code, URLs, JSON, tables, commands: all are gone."""
    for seed in range(3):
        secret = _formats.made(parts, seed)
        for place, around in AROUND.items():
            redacted = redact(around.format(secret))
            core = secret.rstrip("=")
            assert core not in redacted.text, (place, secret)
            assert core[-16:] not in redacted.text, (place, secret)
        assert kind in redact(f"Use {secret} to sign in.").kinds


ONLY_A_HASH = {"firecrawl-key", "mailchimp-key", "mailgun-key", "prefixed-token"}
"""A hyphenated name may hold what looks like these: `cache-key-` and a hash."""


@pytest.mark.promise("secrets.formats")
@pytest.mark.parametrize(("kind", "parts"), FORMATS, ids=IDS)
def test_a_secret_in_a_file_name_is_found(kind: str, parts: tuple[object, ...]) -> None:
    """A word and a hyphen or an underscore in front hide no secret that has a prefix."""
    if kind in ONLY_A_HASH:
        pytest.skip("what looks like this is part of ordinary names")
    names = (
        *("heron-{}.txt", "heron_{}.txt", "backup-of-{}/a.md", "FOO_{}_END", "foo-{}-bar"),
        *("{}_old.pem", "{}-v2.json", "~/{}_backup/x"),
    )
    for seed, name in enumerate(names):
        secret = _formats.made(parts, seed)
        redacted = redact(name.format(secret))
        assert secret.rstrip("=") not in redacted.text, secret
        assert secret.rstrip("=")[-16:] not in redacted.text, secret


@pytest.mark.promise("secrets.formats")
@pytest.mark.parametrize(("kind", "parts"), FORMATS, ids=IDS)
@pytest.mark.parametrize("unseen", ["\u200b", "\u2060", "\u00ad", "\ufeff"])
def test_what_is_not_seen_hides_no_secret(
    kind: str, parts: tuple[object, ...], unseen: str
) -> None:
    """Split in two or between all letters, it is the same secret to a reader."""
    secret = _formats.made(parts, 7)
    half = len(secret) // 2
    for hidden in (f"{secret[:half]}{unseen}{secret[half:]}", unseen.join(secret)):
        seen = redact(f"Use {hidden} now.").text.replace(unseen, "")
        assert secret[-12:] not in seen
        # The name in front of a random part is none of it.
        said = seen.removeprefix("Use ").removeprefix("zephyr_pat_").removeprefix("quokka_live_")
        assert said.startswith("[redacted:")
        assert seen.rstrip("=. now").endswith("]")


def test_every_kind_has_a_source() -> None:
    """No row of the table is without the page that it was taken from."""
    from anaphora.ingest.secrets.forms import DATA, FORMS

    sources = {form.kind: form.source for form in reversed(FORMS) if form.source}
    assert {form.kind for form in FORMS} == set(sources)
    pages = {DATA["pages"].get(source, source) for source in sources.values()}
    assert all(page.startswith(("https://", "src/", "docs/")) for page in pages)


@pytest.mark.promise("secrets.formats")
@pytest.mark.parametrize("quote", ['"', "'", ""])
@pytest.mark.parametrize("length", [390, 401, 1200, 60_000])
def test_a_value_of_any_length_goes_whole(quote: str, length: int) -> None:
    """The token of a session is as long as it likes."""
    value = ("Ab1/" * length)[:length]
    redacted = redact(f"AWS_SESSION_TOKEN={quote}{value}{quote} and more")
    assert redacted.text == f"AWS_SESSION_TOKEN={quote}[redacted:secret]{quote} and more"
    assert redact_value({"session_token": value}).value == {"session_token": "[redacted:secret]"}


SAID = [
    ("Das Passwort ist {}", "hunter2"),
    ("Das Passwort für den Router lautet {}.", "Sommer2024"),
    ("Le mot de passe du serveur est {}", "soleil77"),
    ("La contraseña del wifi es {}.", "gatito99"),
    ("A senha do banco é {}", "abacaxi42"),
    ("La password di rete è {}", "girasole8"),
    ("Het wachtwoord is {}", "zomer2024"),
    ("Hasło to {}", "kotek123"),
    ("Пароль от сервера: {}", "zima2024"),
    ("Wi-Fiのパスワードは{}です", "sakura2024"),
    ("密码是{}。", "abc12345"),
    ("비밀번호는 {} 입니다", "namsan99"),
    ("the password for the staging box is {}", "hunter2"),
    ("curl -u ann:{} https://example.org", "s3same77"),
    ("curl -sS --user 'ann:{}' https://example.org", "correct horse"),
    ("sshpass -p '{}' ssh ann@example.org", "tr0ub4dor"),
    ("sshpass -p{} ssh ann@example.org", "tr0ub4dor"),
    ("mysql -h db -uroot -p{} shop", "s3cr3tpw"),
    ("mysqldump --user=root -p'{}' shop", "geheim!x"),
    ("redis-cli -h cache -a {} ping", "r3d1spw9"),
    ("docker login -u ann -p {} registry.example.org", "d0ckerpw"),
    ("mongosh --host db -u ann -p {} shop", "m0ngopw9"),
    ("machine example.org login ann password {}", "n3trcpw9"),
    ("machine example.org\n  login ann\n  password {}", "n3trcpw9"),
    ("deploy --api-key {} --dry-run", "zq81mmxp"),
    ("PGPASSWORD={} psql -h db", "pgpw4711"),
]


@pytest.mark.promise("secrets.formats")
@pytest.mark.parametrize(("around", "secret"), SAID)
def test_a_password_in_words_or_a_command_is_found(around: str, secret: str) -> None:
    """In the sentences of every language with rules, and as commands are given it."""
    redacted = redact(around.format(secret))
    assert redacted.text in {
        around.format("[redacted:password]"),
        around.format("[redacted:secret]"),
    }


# A sentence a line; where something is to go, it stands again behind a tab.
SENTENCES = Path(__file__).with_name("said_secrets.txt").read_text("utf-8").splitlines()


@pytest.mark.promise("secrets.said")
@pytest.mark.parametrize("line", SENTENCES)
def test_what_a_sentence_says_of_a_secret(line: str) -> None:
    """The value that a secret is given goes, what describes it stays, in five languages."""
    sentence, _, secret = line.partition("\t")
    redacted = redact(sentence)
    if not secret:
        assert redacted.text == sentence
        return
    assert secret not in redacted.text
    assert redacted.kinds
    assert redact(redacted.text).kinds == ()


PLACES = [
    ("https://api.telegram.org/bot110201543:{}/getMe", "AAH" + MIXED[:32]),
    (
        "https://acme.webhook.office.com/webhookb2/{}",
        f"{UUID}@{UUID}/IncomingWebhook/{HEX * 2}/{UUID}",
    ),
    ("https://outlook.office.com/webhook/{}", f"{UUID}@{UUID}/IncomingWebhook/{HEX * 2}/{UUID}"),
    ("https://prod-1.logic.azure.com/workflows/a?sv=1.0&sig={}", MIXED[:43]),
    ("https://hooks.zapier.com/hooks/catch/{}/", "1234567/abc12de"),
    ("https://maker.ifttt.com/trigger/rain/with/key/{}", MIXED[:22]),
    ("https://hook.eu1.make.com/{}", LETTERS + "012345"),
    ("https://b.s3.amazonaws.com/k?X-Amz-Date=1&X-Amz-Signature={}", HEX * 4),
    ("the key is sk_car_{}", MIXED[:20]),
    ("fal: {}", f"{UUID}:{HEX * 2}"),
]


@pytest.mark.promise("secrets.formats")
@pytest.mark.parametrize(("around", "secret"), PLACES)
def test_a_secret_is_known_by_its_place(around: str, secret: str) -> None:
    """In addresses of bots, webhooks and signed requests."""
    assert secret[-16:] not in redact(around.format(secret)).text


ASSIGNED = [
    "password: {}",
    'password = "{}"',
    "DB_PASSWORD={}",
    '{{"password": "{}"}}',
    '{{\\"password\\": \\"{}\\"}}',
    "postgres://ann:{}@db.example.org:5432/shop",
    "mongodb+srv://ann:{}@cluster0.example.net/shop",
    "jdbc:mysql://db/shop?user=ann&password={}",
    "Server=db;Database=shop;User Id=ann;Password={};Encrypt=true",
    "host=db user=ann password={} dbname=shop",
    "the password is {}.",
    "| password | {} |",
    "**Password:** `{}`",
    "Password: **{}**",
    "- password: '{}'",
    "<password>{}</password>",
]
PHRASES = ["hunter2-horse", "my-dog-rex-2019", "the-Blue-boat-77", "tr0ub4dor&3", "Ki5te_nr_4x"]


@pytest.mark.promise("secrets.formats")
@pytest.mark.parametrize("around", ASSIGNED)
@pytest.mark.parametrize("phrase", PHRASES)
def test_a_password_that_somebody_thought_of_is_found(around: str, phrase: str) -> None:
    """In settings, connection strings, tables, markup and sentences."""
    assert phrase not in redact(around.format(phrase)).text


ORDINARY = [
    "const token = req.headers.authorization?.split(' ')[1];",
    "const token = req.headers['x-token'] as string;",
    'if (token == "interface") return;',
    'case token === "whitespace2":',
    "auto const &token = *remainingTokens;",
    'const [, token = ""] = /^#token=(\\w+)$/.exec(location.hash) ?? [];',
    'fetch(url, {credentials: "same-origin"})',
    '<assemblyIdentity publicKeyToken="b77a5c561934e089" name="x"/>',
    "System.Core, Version=4.0.0.0, Culture=neutral, PublicKeyToken=b77a5c561934e089",
    'nextPageToken: "CAUQAA12"',
    '{"lifetime": 2592000000000000}',
    "const MAX = 4539578763621486;",
    "ids = [4539578763621486, 4539578763621487]",
    '<path d="M 1 2 Q 2700 2681 2553 2681 L 3 4"/>',
    "SKU SK0123456789abcdef0123456789abcdef is out of stock.",
    "commit 5f352379324c22463451387a0aec5d2f5f352379",
    "id 3f2504e0-4f89-11d3-9a0c-0305e82c3301",
    "restore-key cache-key-5f352379324c22463451387a0aec5d2f",
    "objects-1/0af352379324c22463451387a0aec5d2f5f352379",
    "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
    '"integrity": "sha512-' + "aB3/" * 21 + '=="',
    "![x](data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAUAAAAFCAYAAACNbyblAAAAHElEQVQI12P4)",
    "proxy = 'http://username:password@localhost:8030'",
    "http://user:pass%20pass@complex.url.com/",
    "Authorization: Basic dXNlcm5hbWU6cGFzc3dvcmQ=",
    "curl -u user:password https://example.org",
    "curl -u $USER:$PASS https://example.org",
    "mysql -u root -p shop",
    "mysql -P 3306 -u root",
    "login --password-stdin < file",
    "The password is hashed with sha256 and the hash is base64 encoded.",
    "Das Passwort ist falsch.",
    "Le mot de passe est obligatoire.",
    "密码是必填项",
    "docker run -p 8080:80 nginx",
    "sk-learn and sk-image are libraries; xai-org is a name",
    "gsk_ is what keys of Groq begin with",
    # Code and minified code.
    "async transform(e,t){let n=this,{password:r,strength:a,resolveReady:o,ready:s}=n;r?(await 1)",
    "er={color:!0,date:!0,password:!0,range:!0,search:!0,week:!0};function tr(e){}",
    "{mode:l,end:i.end,endToken:a&&a.join?a[a.length-1]:a}}function c(e,t){}",
    "result.push(value.slice(tokenStartI,i+1)),tokenStartI=i+1}}return result",
    "my $Token = qr/[\\x21\\x23-\\x27\\x2A]/;",
    "token_number = self.tokens_taken+len(self.tokens)",
    "    oauth2client.client.OAuth2Credentials: _convert_oauth2_credentials,",
    'SECRET = "%(secret)s";',
    '"output_token": "Jobs[-1].JobId",',
    '"input_token": "ExclusiveStartShardId",',
    "const password = await read.password('Password:', 3)",
    "const USE_CREDENTIALS = 'use-credentials'",
    'ALLOW_CREDENTIALS = "Access-Control-Allow-Credentials"',
    'ExpiresOn = apikey("ExpiresOn")',
    "_CREDENTIALS_KEY = 'google_oauth2_credentials'",
    'BASIC_AUTH_SECRETLESS = "dXNlcm5hbWU6"',
    "tracker(name, encryption_key_sha256=encryption_key_sha256)",
    "('-----BEGIN RSA PRIVATE " + "KEY-----', '-----END RSA PRIVATE " + "KEY-----')",
    'key="-----BEGIN PRIVATE ' + "KEY-----\\nXXXX\\nXXXX\\n-----END PRIVATE " + 'KEY-----"',
    'key: "MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAE1Olb3zMAFFxXKHiIkQO5cJ3Yhl5i6UPpIhuteBJbuHcA5Uog"',
    # Settings, resources, ids.
    "#password_encryption = scram-sha-256\t# scram-sha-256 or md5",
    '"encryptionKey": "arn:aws:kms:us-west-2:123456789012:alias/aws/s3",',
    "arn:aws:secretsmanager:region:account-number:secret:myselfmanagedADtestsecret-123456",
    "create source --sasl-password='projects/123/secrets/my-secret/versions/1'",
    '"PasswordParam": "/medialive/examplecorp1",',
    '"CustomerMasterKeySpec": "RSA_4096",',
    '"AWS::IAM::AccessKey": "72c2d9dd90025459",',
    '"NextLockToken": "12ebc73e-fa68-417d-a9b8-2bdd761a4fa5"',
    "list-builds --next-token 4AEA6u7J1234 --lock-token ed207e9c-82e9-4a77-aadd-81e6173ab7eb",
    "      OS_CREDENTIAL_DUMPING_ETC_PASSWORD_AND_ETC_SHADOW: T1003.008",
    "passphrase: &#x3C;string>]}</code>",
    "default login anonymous password user@site",
    "84AF 527D 5282 5281 5290 5293",
    "X-Goog-Credential=fake_service_account%2F19000101%2Fus",
    # What manuals write.
    'auth = Auth(username="user", password="mysecretpassword")',
    "self.user.set_password('testpassword')",
    "SECRET_KEY = 'mysecretkey'",
    "//example.org/a/:_authToken=MYTOKEN1",
    "https://REDACTED:REDACTED@www.example.com/ and https://abc:xyz@example.com",
    '"href": "http://&a:foo(b%5Dc@d:2/", "password": "%60%7B%7D",',
    "login ghp_" + "x" * 36,
    "client_secret='Qh...wwI'",
    "def test_HTTP_200_OK_GET_WITH_MIXED_PARAMS(self):",
    "def test_send_unicode_with_SMTPUTF8_via_low_level_API(self):",
    "a.py,sha256=yk33_vLBPGLfX1voZ57NUudlzul8cwfwv40XWJA83Hs,12",
    "a.py,sha256=_o0-IH0MxldiuSqyUE1YSpgA7cTE5gMfS8Fnk76Yn7Y,283",
    "toolu_01AbCdEfGh23IjKlMn45OpQr and session_01UnLnhsH25Nnv7LHhekUfPd",
    "decd711 apply   #2238000000000059       -> 59",
    "const xxh_u8* kSecretPtr = XXH3_kSecret;",
    "private_key: PKCS7PrivateKeyTypes,",
    """token='{"title":', log_probability=-1.5""",
    "cache_key = 5f352379324c22463451387a0aec5d2f",
    "restore-keys: linux-node-5f352379324c22463451387a0aec5d2f",
    'keyring.get_password("demo-service", "tarek")',
    'keyring.set_password("demo-service", "tarek", "example")',
    "private_key: Ed25519PrivateKey | Ed448PrivateKey",
    "The login and password portion is not allowed.",
    "--private-key='/home/user/me/my_key.pfx'",
    'NOPASSWORD = "no-password-required"',
    "Credential=mock_access_key/20220524/us-east-1/cognito-idp/aws4_request, Signed=a",
    '_DEFAULT_TOKEN = "_sa_default"',
    "Next page token: eav1OzQB0OM8rLdGXOEsyQWSG",
    "the password field specification is <code>password1</code>.</p>",
    "PWD: '/Users/maciej',",
    '"credentials": "boolean?",',
    """login_body = 'username=test&password=password&from_page=/'""",
    '"subject_token": "subject_token_0",',
    'CHALLENGE_PASSWORD: "challengePassword",',
]


@pytest.mark.promise("secrets.ordinary")
@pytest.mark.parametrize("text", ORDINARY)
def test_what_only_looks_like_one_is_left(text: str) -> None:
    """Code, numbers, hashes, pictures and examples of manuals hold no secret."""
    assert redact(text).kinds == ()


@pytest.mark.promise("secrets.ordinary")
def test_the_source_of_this_project_is_left(request: pytest.FixtureRequest) -> None:
    """200 kB and more of our own programs and pages: but for known examples nothing is taken."""
    root = Path(request.config.rootpath)
    size, finds = 0, list[str]()
    for pattern in ("src/anaphora/store/**/*.py", "src/anaphora/surfaces/**/*.js", "docs/**/*.md"):
        for path in sorted(root.glob(pattern)):
            text = path.read_text("utf-8")
            size += len(text)
            finds += [path.name] * len(redact(text).kinds)
    assert size > 800_000
    # One page shows how a password is redacted.
    assert finds == ["tutorial.md"]


FORMAT_UNITS = [
    *("curl -u a:", "curl ", "mysql -p", "htpasswd -b a b ", "docker a login ", "--password "),
    *("login a password b", "Das Passwort ", "パスワードは", "密码是 ", "\u200b", "a\u200b"),
    *("gsk_", "fm1_", "1//0", "a1Q~", "IQoJb3JpZ2luX2Vj", 'token="', "token=a", "AGE-PLUGIN-A-"),
    *("anaphora_aa_", "dp.pt.a.", "1/1234567890/", "sk.eyJ1a.", 'master key"', "pat-na1-"),
]


@pytest.mark.parametrize("unit", FORMAT_UNITS)
def test_no_text_of_one_shape_takes_long(unit: str) -> None:
    """200,000 characters of any one shape are read within the time-out."""
    assert redact(unit * (200_000 // len(unit))).text


# Texts without a secret, one a line, written for this test.
LINES = [
    line
    for line in Path(__file__).with_name("ordinary_texts.txt").read_text("utf-8").split("\n")
    if line
]


def test_there_are_enough_ordinary_texts() -> None:
    """At least 150 distinct texts are held to pass."""
    assert len(set(LINES)) >= 150


@pytest.mark.promise("secrets.ordinary")
@pytest.mark.parametrize("line", LINES)
def test_ordinary_text_passes(line: str) -> None:
    """Numbers, ids, hashes, prose and code around the word password are left alone."""
    assert redact(line).kinds == ()
    assert redact(line).text == line
    assert redact_value({"note": [line]}).value == {"note": [line]}


def test_ordinary_texts_pass_together() -> None:
    """Standing after one another they form no secret either."""
    for joint in ("\n", " "):
        assert redact(joint.join(LINES)).kinds == ()


@pytest.mark.parametrize(
    "text",
    [
        "const password =\n    generatePassword(16)",
        "const token =\n  process.env.API_TOKEN_2;",
        "password =\n\nuser = ann99",
        "secret:\n    secretKeyRef1:\n        name: db",
        "token =\n    tokens[0],\n",
    ],
)
def test_what_stands_below_a_name_may_be_code(text: str) -> None:
    """Calls, names, blank lines and nested keys below the name of a secret are no secret."""
    assert redact(text).kinds == ()


@given(st.lists(st.text(string.ascii_letters + " ,.'?!-", max_size=30), max_size=20))
def test_words_pass(parts: list[str]) -> None:
    """Letters and the marks of ordinary sentences are never a secret."""
    text = " ".join(parts)
    assert redact(text).text == text


def test_real_conversations_pass(shared_data: Path) -> None:
    """None of the turns of real conversations loses anything: none has a secret."""
    turns = 0
    for file in sorted((shared_data / "conversations" / "realtalk").glob("*.json")):
        for name, session in json.loads(file.read_text()).items():
            if not name.startswith("session_") or not isinstance(session, list):
                continue
            for turn in session:
                turns += 1
                assert redact(turn["clean_text"]).kinds == (), turn
    assert turns > 8_000


@pytest.mark.promise("secrets.masked")
def test_what_holds_no_secret_is_left_as_it_is(tmp_path: Path) -> None:
    """The same value comes back where nothing is masked."""
    with Memory.open(tmp_path / "home", embedder="hashing", warm=False) as memory:
        memory.remember("The ferry leaves at nine.")
        hits = memory.search("when does the ferry leave?").hits
    assert hits
    assert all(mask(hit) is hit for hit in hits)
