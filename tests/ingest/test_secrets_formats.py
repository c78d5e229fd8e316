"""Secrets of every known service are found wherever they stand; what only looks so is left."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from anaphora.ingest.secrets.redacting import redact, redact_value

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
    from anaphora.ingest.secrets.formats import PATTERNS, SOURCES

    assert {known.kind for known in PATTERNS} == set(SOURCES)
    assert all(known.source.startswith(("https://", "src/", "docs/")) for known in PATTERNS)


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


UNITS = [
    *("curl -u a:", "curl ", "mysql -p", "htpasswd -b a b ", "docker a login ", "--password "),
    *("login a password b", "Das Passwort ", "パスワードは", "密码是 ", "\u200b", "a\u200b"),
    *("gsk_", "fm1_", "1//0", "a1Q~", "IQoJb3JpZ2luX2Vj", 'token="', "token=a", "AGE-PLUGIN-A-"),
    *("anaphora_aa_", "dp.pt.a.", "1/1234567890/", "sk.eyJ1a.", 'master key"', "pat-na1-"),
]


@pytest.mark.parametrize("unit", UNITS)
def test_no_text_of_one_shape_takes_long(unit: str) -> None:
    """200,000 characters of any one shape are read within the time-out."""
    assert redact(unit * (200_000 // len(unit))).text
