"""What secrets look like: those with a form of their own, and those told by the word before them.

`PATTERNS` is the table of forms: a pattern, the group that is the secret, and a check of what the
pattern cannot say (a checksum, a header that decodes). `assigned_secrets` finds values that are
assigned to a name such as password, secret, token or api_key and that read as a literal. No rule
measures randomness: a commit's hash is as random as a key.

A pattern never looks far ahead and then fails: what repeats is bounded or cannot begin again
inside its own match, so a text of any length takes linear time.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class SecretPattern:
    """A form: `pattern`, whose `group` is the secret, if `check` of the match agrees.

    `kind` is what the text says in its place: `[redacted:jwt]`. `hint` is a text without which
    nothing can match; it saves reading the text once more. So does `dense`: a match lies in one
    line and has `DENSE` letters, digits, "+", "/", "_" or "-" in a row. `caseless`: the pattern
    knows no case, and its hint is looked for in the text in lower case.
    """

    kind: str
    pattern: re.Pattern[str]
    hint: str = ""
    group: int = 0
    check: Callable[[re.Match[str]], bool] | None = None
    dense: bool = False
    caseless: bool = False


DENSE = 20
"""Characters in a row."""


def _known(
    kind: str,
    pattern: str,
    hint: str = "",
    group: int = 0,
    check: Callable[[re.Match[str]], bool] | None = None,
    *,
    dense: bool = False,
) -> SecretPattern:
    made = re.compile(pattern, re.ASCII)
    caseless = bool(made.flags & re.IGNORECASE)
    return SecretPattern(kind, made, hint, group, check, dense, caseless)


def _base64(text: str) -> bytes:
    try:
        return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
    except (binascii.Error, ValueError):
        return b""


def _is_jwt(match: re.Match[str]) -> bool:
    """RFC 7515 and 7516: the first part is a JSON object that names the algorithm."""
    try:
        header = json.loads(_base64(match.group(1)))
    except (ValueError, RecursionError):
        return False
    return isinstance(header, dict) and "alg" in header


def _is_basic(match: re.Match[str]) -> bool:
    """RFC 7617: the base64 of a user, a colon and a password."""
    return b":" in _base64(match.group(1).translate(_URL_SAFE))


def _is_discord(match: re.Match[str]) -> bool:
    """The first part is the base64 of the bot's number."""
    return _base64(match.group(1)).isdigit()


def _is_openai(match: re.Match[str]) -> bool:
    key = match.group()
    marked = "T3BlbkFJ" in key  # "OpenAI" in base64, in the middle of every newer key
    newer = key.startswith(("sk-proj-", "sk-svcacct-", "sk-admin-")) and len(key) >= 48
    return marked or newer or re.fullmatch(r"sk-[A-Za-z0-9]{48}", key) is not None


def _is_mixed(match: re.Match[str]) -> bool:
    """Small and capital letters and digits, as no word, hash or constant has them."""
    secret = match.group(match.lastindex or 0)
    return all(re.search(part, secret) for part in ("[a-z]", "[A-Z]", "[0-9]"))


def _is_aws_secret(match: re.Match[str]) -> bool:
    return re.search(r"(?i)key|pass|pwd|pw|token|secret", match.group(1)) is not None and (
        re.search(r"[A-Z/+]", match.group(2)) is not None
    )


def _is_bearer(match: re.Match[str]) -> bool:
    return re.search(r"[0-9]", match.group(1)) is not None


_URL_SAFE = str.maketrans("+/", "-_")
_START = r"(?<![A-Za-z0-9_-])"
_END = r"(?![A-Za-z0-9_-])"
_QUOTED = r"[\"'`]?\]?[ \t]{0,3}(?:=>|:=|[=:]{1,3}|[ \t])[ \t]{0,3}[\"'`]?"
"""What stands between the name of a key and its value."""

PATTERNS: tuple[SecretPattern, ...] = (
    # AWS writes the last sixteen in base32; what looks like one otherwise is somebody's test key.
    _known(
        "aws-access-key",
        r"(?<![A-Za-z0-9])(?:(?:AKIA|ASIA)[0-9A-Z]{16}|(?:A3T[A-Z0-9]|ABIA|ACCA)[A-Z2-7]{16})"
        r"(?![A-Za-z0-9])",
        dense=True,
    ),
    _known(
        "aws-secret-key",
        r"(?i)((?:\baws|secret_?access_?key)[\w .-]{0,40})[\"'`]?\]?[ \t:=>(,\"'`]{1,8}"
        r"([A-Za-z0-9/+]{40})(?![A-Za-z0-9/+=])",
        group=2,
        check=_is_aws_secret,
        dense=True,
    ),
    # Their last six are a checksum of the rest. It is not asked for: nothing else looks like this,
    # and a token with one letter mistyped still gives most of the real one away.
    _known("github-token", r"(?<![A-Za-z0-9])gh[pousr]_[A-Za-z0-9_]{36,255}", "gh", dense=True),
    _known(
        "github-token",
        r"(?<![A-Za-z0-9])github_pat_[A-Za-z0-9]{22}_[A-Za-z0-9]{59}",
        "github_pat_",
        dense=True,
    ),
    _known(
        "gitlab-token",
        _START + r"(?:(?:glpat|gldt|glft|glsoat|glrt|glimt)-[\w-]{20,60}|glptt-[\w-]{40}"
        r"|glcbt-(?:[0-9a-fA-F]{2}_)?[\w-]{20,50}|glagent-[\w-]{50,1024}|gloas-[\w-]{64}"
        r"|GR1348941[\w-]{20,50})(?!\w)",
        dense=True,
    ),
    _known("slack-token", _START + r"xox[abeoprs](?:\.xox[bp])?-(?:\d+-)+[A-Za-z0-9-]+", "xox"),
    _known("slack-token", _START + r"xapp-\d-[A-Z0-9]{6,}-\d{6,}-[a-f0-9]{20,}", "xapp-"),
    _known(
        "slack-webhook",
        r"(?i)hooks\.slack\.com/(?:services/T\w+/B\w+/\w+|(?:workflows|triggers)/\w+/\w+/[\w/]+)",
        "hooks.slack.com",
    ),
    _known("stripe-key", r"(?<![A-Za-z0-9])[rs]k_(?:live|test)_[0-9a-zA-Z]{16,}", "k_", dense=True),
    _known("stripe-key", r"(?<![A-Za-z0-9])whsec_[A-Za-z0-9+/]{32,}", "whsec_", dense=True),
    _known("twilio-key", r"(?<![A-Za-z0-9])(?:AC|SK)[0-9a-f]{32}(?![A-Za-z0-9])", dense=True),
    _known("sendgrid-key", _START + r"SG\.[\w-]{22}\.[\w-]{43}" + _END, "SG."),
    _known("mailgun-key", _START + r"key-[0-9a-f]{32}" + _END, "key-", dense=True),
    _known("mailgun-key", _START + r"[0-9a-f]{32}-[0-9a-f]{8}-[0-9a-f]{8}" + _END, dense=True),
    _known("mailchimp-key", _START + r"[0-9a-z]{32}-us[0-9]{1,2}" + _END, "-us"),
    _known("npm-token", r"(?<![A-Za-z0-9])npm_[A-Za-z0-9]{36}" + _END, "npm_"),
    _known(
        "npm-token", r":_authToken=[ \t]{0,3}([A-Fa-f0-9-]{36}|[\w+/=-]{20,200})", "_authToken", 1
    ),
    # The beginning is a macaroon that names pypi.org or test.pypi.org, in base64.
    _known("pypi-token", r"pypi-(?:AgEIcHlwaS5vcmc|AgENdGVzdC5weXBpLm9yZw)[\w-]{50,}", "pypi-"),
    _known("anthropic-key", _START + r"sk-ant-[\w-]{20,}", "sk-ant-"),
    _known("openrouter-key", _START + r"sk-or-v1-[0-9a-f]{64}", "sk-or-"),
    _known("openai-key", _START + r"sk-(?!ant-|or-)[\w-]{20,}", "sk-", check=_is_openai),
    _known("google-key", _START + r"AIza[\w-]{35}" + _END, "AIza"),
    _known("google-key", _START + r"GOCSPX-[\w-]{28}" + _END, "GOCSPX-"),
    _known("google-key", _START + r"ya29\.[\w-]{20,}", "ya29."),
    _known("azure-storage-key", r"AccountKey=([A-Za-z0-9+/=]{88})", "AccountKey=", 1),
    _known("azure-storage-key", r"SharedAccessKey=([A-Za-z0-9+/]{43}=)", "SharedAccessKey=", 1),
    _known("azure-storage-key", r"[?&]sig=([A-Za-z0-9+/%]{43,60}(?:%3[dD]|=))", "sig=", 1),
    _known("telegram-token", r"(?<![\w:-])\d{8,10}:[\w-]{35}" + _END, ":", dense=True),
    _known(
        "discord-token",
        _START + r"([MNO][\w-]{23,27})\.[\w-]{6}\.[\w-]{27,38}" + _END,
        ".",
        0,
        _is_discord,
        dense=True,
    ),
    _known("discord-token", r"discord(?:app)?\.com/api/webhooks/(\d+/[\w-]{60,})", "/webhooks/", 1),
    _known("square-token", _START + r"(?:sq0csp-[\w\\-]{43}|sq0atp-[\w-]{22})", "sq0"),
    _known(
        "artifactory-token",
        r"(?<![A-Za-z0-9+/_-])AKC[A-Za-z0-9]{40,}" + _END,
        "AKC",
        0,
        _is_mixed,
        dense=True,
    ),
    _known(
        "artifactory-token",
        r"(?<![A-Za-z0-9+/_-])AP[\dA-F][A-Za-z0-9]{20,80}(?![A-Za-z0-9+/_-])",
        "AP",
        0,
        _is_mixed,
        dense=True,
    ),
    _known(
        "cloudant-key",
        r"(?i)(?<!\w)(?:cloudant|clou|cl)[_-]?(?:api)?[_-]?(?:key|pwd|pw|password|pass|token)"
        + _QUOTED
        + r"([0-9a-f]{64}|[a-z]{24})(?![a-z0-9])",
        group=1,
        dense=True,
    ),
    _known(
        "ibm-cloud-key",
        r"(?i)(?<!\w)(?:(?:ibm|cloud|iam)[_-]?){0,3}(?:api)?[_-]?(?:key|pwd|password|pass|token)"
        + _QUOTED
        + r"([\w-]{44})(?![\w-])",
        group=1,
        check=_is_mixed,
        dense=True,
    ),
    _known(
        "ibm-cos-key",
        r"(?i)secret[-_]?(?:access)?[-_]?key" + _QUOTED + r"([a-f0-9]{48})(?![a-f0-9])",
        group=1,
        dense=True,
    ),
    _known(
        "softlayer-key",
        r"(?i)(?<!\w)(?:softlayer|sl)[_-]?(?:api)?[_-]?(?:key|pwd|password|pass|token)"
        + _QUOTED
        + r"([a-z0-9]{64})(?![a-z0-9])",
        group=1,
        dense=True,
    ),
    _known(
        "softlayer-key",
        r"(?i)api\.softlayer\.com/soap/v3(?:\.1)?/([a-z0-9]{64})",
        group=1,
        dense=True,
    ),
    _known("huggingface-token", _START + r"hf_[A-Za-z]{34}" + _END, "hf_"),
    _known("digitalocean-token", _START + r"do[opr]_v1_[0-9a-f]{64}" + _END, "_v1_"),
    _known("shopify-token", _START + r"shp(?:at|ca|pa|ss)_[0-9a-fA-F]{32}" + _END, "shp"),
    _known("vault-token", _START + r"hv[sbr]\.[\w-]{24,}", "hv"),
    _known(
        "jwt",
        _START + r"(eyJ[\w-]{5,}+=*+)\.[\w-]{2,}+=*+(?:\.[\w-]*+=*+){0,3}",
        "eyJ",
        0,
        _is_jwt,
    ),
    _known(
        "authorization-header",
        r"(?i)\bbearer[ \t]{1,3}([\w.~+/-]{20,}+=*+)",
        "bearer",
        group=1,
        check=_is_bearer,
    ),
    _known(
        "authorization-header",
        r"(?i)\bauthorization[\"']?[ \t]{0,3}:[ \t]{0,3}[\"']?basic[ \t]{1,3}([\w+/-]{8,}+=*+)",
        "authorization",
        group=1,
        check=_is_basic,
    ),
)


# Most lines of a program hold nothing that a secret could be, and patterns are slow: only the lines
# that may are looked through.

Finder = Callable[[int], int]
"""The first place from an offset on, -1 where there is none."""


class PickedLines:
    """Lines of a text in their order: `text` joins them by line feeds."""

    def __init__(self, whole: str, spans: list[tuple[int, int]]) -> None:
        self.text = "\n".join(whole[start:end] for start, end in spans)
        self._from = [start for start, _ in spans]
        self._at: list[int] = []
        at = 0
        for start, end in spans:
            self._at.append(at)
            at += end - start + 1

    def place(self, at: int) -> int:
        """Where a place of `text` is in the whole text."""
        line = bisect_right(self._at, at) - 1
        return self._from[line] + at - self._at[line]


def picked(text: str, find: Finder) -> PickedLines:
    """The lines of `text` in which `find` finds something."""
    spans: list[tuple[int, int]] = []
    at = 0
    while (found := find(at)) >= 0:
        end = text.find("\n", found)
        end = len(text) if end < 0 else end
        spans.append((text.rfind("\n", 0, found) + 1, end))
        at = end + 1
    return PickedLines(text, spans)


def matching(text: str, pattern: re.Pattern[str]) -> Finder:
    """Finds where `pattern` matches."""

    def find(at: int) -> int:
        found = pattern.search(text, at)
        return found.start() if found is not None else -1

    return find


def first_of(text: str, parts: Iterable[str]) -> Finder:
    """Finds the first of these texts, whichever it is."""
    coming = {part: text.find(part) for part in parts}

    def find(at: int) -> int:
        for part, place in coming.items():
            if 0 <= place < at:
                coming[part] = text.find(part, at)
        return min((place for place in coming.values() if place >= 0), default=-1)

    return find


_WORDS = r"passwords?|passwd|passphrase|passcode|passwort|contrase(?:ñ|n)a|mot[_ ]de[_ ]passe|pwd"
_NAMES = (
    rf"{_WORDS}|secret|token|credentials?|(?:db|database|key|user|admin|root|login)[_-]?pass(?![wpc])"
    r"|(?:api|auth|service|account|db|database|priv|private|client|access|secret|encryption|signing"
    r"|master|app|bot|deploy|license|storage)[_-]?key"
)
# No name is without one of these; looking for them is much faster than the patterns.
_PARTS = ("pass", "pwd", "secret", "token", "credential", "key", "contrase")
# Patterns are tried at every letter, so none begins with what repeats.
_ASSIGNED = re.compile(
    rf"(?P<name>{_NAMES})(?P<suffix>[\w-]{{0,30}})"
    r"(?:[\"'`]?\]?[ \t]{0,3}(?P<link>:=|=>|!==?|={1,3}|::?)[ \t]{0,3}"
    r"|(?:\.assign)?\([ \t]{0,2}(?=[\"'])|(?P<is>[ \t]{1,3}is:?[ \t]{1,3}))"
    r"(?P<value>@?\"[^\"\s]{6,400}\"|'[^'\s]{6,400}'|`[^`\s]{6,400}`|[^\s\"'`,;]{6,400})",
    re.IGNORECASE,
)
_FIELD = re.compile(rf"(?P<name>{_NAMES})(?P<suffix>[\w-]{{0,30}})\Z", re.IGNORECASE)
_COMPARED = re.compile(
    rf"(?P<value>\"[^\"\s]{{8,200}}\"|'[^'\s]{{8,200}}')[ \t]{{0,3}}[!=]={{1,2}}[ \t]{{0,3}}"
    rf"[\w.]{{0,40}}(?:{_NAMES})",
    re.IGNORECASE,
)
_BARE_KEY = re.compile(
    r"(?<![\w.-])key[\"']?[ \t]{0,3}[=:][ \t]{0,3}([\"'])(?P<value>[A-Za-z0-9+/]{32,398}={0,2})\1",
    re.IGNORECASE,
)
_BELOW = re.compile(r"=[ \t]{0,8}\r?\n[ \t]{1,16}(?P<value>\S{6,400})[ \t]{0,8}(?=\r?\n|\Z)")
_IS_PASSWORD = re.compile(_WORDS + r"|pass", re.IGNORECASE)
# password2, password_secure and passwordSecure name a secret; tokenizer and secretary do not.
_SUFFIX = re.compile(r"\d{0,3}|[_-]\w[\w-]*|[A-Z]\w*")
_ABOUT = re.compile(
    r"name|id|file|path|dir|url|uri|arn|ref|length|len|size|count|limit|min|max|type|kind|policy"
    r"|field|label|hint|format|version|expir|ttl|age|timeout|at$|date|time|usage|used|index|column"
    r"|placeholder|prompt|error|status|hash|reset|manager|regex|pattern|rotation",
    re.IGNORECASE,
)
_PLAIN_SUFFIXES = re.compile(
    r"[_-]?(?:value|secure|text|string|str|prod|dev|test|staging)\d*", re.I
)

_PLACEHOLDER = re.compile(
    r"\[redacted.*|(?:your|enter|insert|replace|change|choose|my|the|some|example|sample|dummy"
    r"|placeholder|todo|fixme)[_ -].*|.*(?:here|goes-here|_me)|<.*>|\{.*\}|\[.*\]|%.*%|\(.*\)|"
    r"\$.*|(.)\1*|x{3,}.*|\*{3,}.*|\.{3,}.*|@\w+",
    re.IGNORECASE | re.DOTALL,
)
_SCHEMA_WORDS = frozenset(
    """
    required optional disabled enabled encrypted incorrect password passwords username undefined
    function invalid_ forgotten redacted unchanged rejected accepted protected generated anonymous
    external internal authorization credentials bearer_token confirmed confirmation validation
    """.split()  # noqa: SIM905 - a quoted list cannot be read
)
_A_NAME = re.compile(
    r"[a-z]+(?:[_.-][a-z]+)*[_.-](?:password|passwd|token|secret|key|user|name|field|id|label|error"
    r"|hint|input|reset|page|form)s?|(?:password|passwd|token|secret|user|auth)(?:[_.-][a-z]+)+",
    re.IGNORECASE,
)
# What an unquoted value is in code and in ordinary writing.
_CODE = re.compile(
    r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*[(\[<].*|[A-Za-z_]\w*(?:(?:\.|->|::|\?\.)[A-Za-z_]\w*)+"
    r"|[a-z]+\d?(?:_[a-z0-9]+)+|\W*",
    re.DOTALL,
)
_ORDINARY = re.compile(
    r"v?\d+(?:[.:/-]\d+)*[a-z%]{0,3}"  # numbers, versions, dates, times, sizes
    r"|\d{4}-\d\d-\d\dT[\d:.]+(?:Z|[+-][\d:]+)?"
    r"|\d{1,3}-[A-Za-z]+(?:-[A-Za-z]+)*|[A-Za-z]+-\d{1,2}|\d+(?:st|nd|rd|th)"
    r"|[^@\s]+@[\w-]+(?:\.[\w-]+)+|.*://.*|(?:~|\.{1,2})?[/\\].*|[A-Za-z]:\\.*"
    r"|.*\.(?:pem|key|json|ya?ml|txt|md|py|js|ts|crt|env)",
    re.IGNORECASE | re.DOTALL,
)
_MARKS = re.compile(r"[!@#%^&*+?~$]")
_TRAILING = ".,;:!?)]}>*_"


def assigned_secrets(text: str, lowered: str) -> Iterator[tuple[int, int, str]]:
    """Give (start, end, kind) of every value that is assigned to the name of a secret.

    Never takes prose, code or a placeholder for one: "password: see the vault",
    `token = get_token()`, `api_key: ${API_KEY}` pass. Between the name and the value is `=`, `:`,
    `:=`, `=>`, `==`, `!=`, an opening parenthesis with a quote, or, for passwords, the word "is".
    A value in quotes is a literal of 8 characters or more without a space. A value without quotes
    also needs a digit and a letter (or a mark such as !), so that a word of prose never counts.
    After a word for a password 6 characters are enough if they have letters and digits: people
    choose short ones. Alone on the line below `password =`, further in, a value counts as on the
    same line; `key = "…"` counts where the literal is base64. `lowered` is the text in lower case.
    """
    # One letter, "İ", becomes two in lower case: then no place is where it is found, and every
    # line is looked through.
    same = len(lowered) == len(text)
    named = picked(text, first_of(lowered, _PARTS) if same else first_of(text, ("",)))
    for start, end, kind in (*_assigned(named.text), *_bare_keys(named.text)):
        yield named.place(start), named.place(end), kind
    yield from _on_the_next_line(text)


def _assigned(text: str) -> Iterator[tuple[int, int, str]]:
    """The same of lines that hold a part of such a name."""
    at = 0
    while match := _ASSIGNED.search(text, at):
        span = _value_span(text, match)
        if span is None:
            # The value can be the name of the next one: `password: secret: …`.
            at = match.end("name")
            continue
        yield (*span, _kind(match.group("name")))
        at = span[1]
    for match in _COMPARED.finditer(text):
        if _is_literal(match.group("value")[1:-1]):
            yield match.start("value") + 1, match.end("value") - 1, "secret"


def _bare_keys(text: str) -> Iterator[tuple[int, int, str]]:
    """`key = "…"`, where the literal is base64 of 24 bytes or more and no name or word."""
    for match in _BARE_KEY.finditer(text):
        value = match.group("value")
        classes = ("[a-z]", "[A-Z]", "[0-9].*[0-9].*[0-9]")
        if len(value) % 4 == 0 and all(re.search(one, value) for one in classes):
            yield (*match.span("value"), "secret")


def _on_the_next_line(text: str) -> Iterator[tuple[int, int, str]]:
    """`password =` and the value alone on the line below, further in: so ini files may have it."""
    for match in _BELOW.finditer(text):
        start = match.start()
        while start > max(0, match.start() - 3) and text[start - 1] in " \t":
            start -= 1
        head = text[max(0, start - 120) : start].rpartition("\n")[2]
        named = _FIELD.search(head)
        value = match.group("value")
        if named is None or not _names_a_secret(named) or value[-1] in "([{,;:\\":
            continue
        quoted = value[0] in "\"'" and value[-1] == value[0]
        inner = value[1:-1] if quoted else value
        literal = len(inner) >= 8 and _is_literal(inner)
        if literal and (quoted or _is_unquoted_literal(inner, digits=False)):
            start = match.start("value") + quoted
            yield start, start + len(inner), _kind(named.group("name"))


def is_secret_value(name: str, value: str) -> str | None:
    """The kind of secret that `value` is when a field `name` holds it, or None."""
    match = _FIELD.search(name[-120:])
    if match is None or not _names_a_secret(match) or not 6 <= len(value) <= 400:
        return None
    if any(character.isspace() for character in value):
        return None
    word = match.group("name")
    literal = _is_literal(value) if len(value) >= 8 else False
    short = _IS_PASSWORD.fullmatch(word) is not None and _is_short_password(value)
    return _kind(word) if literal or short else None


def _kind(name: str) -> str:
    return "password" if _IS_PASSWORD.search(name) else "secret"


def _value_span(text: str, match: re.Match[str]) -> tuple[int, int] | None:
    """Where the secret is that `match` found a name of, or None when it is none."""
    if not _names_a_secret(match) or _is_redaction(text, match.start()):
        return None
    start, end, quoted = _without_quotes(text, match)
    value = text[start:end]
    said = match.group("is") is not None
    password = _IS_PASSWORD.search(match.group("name")) is not None
    if said and not password:
        return None
    literal = len(value) >= 8 and _is_literal(value)
    if not quoted:
        literal = literal and _is_unquoted_literal(value, digits=password and not said)
    return (start, end) if literal or (password and _is_short_password(value)) else None


def _without_quotes(text: str, match: re.Match[str]) -> tuple[int, int, bool]:
    """Start and end of the value itself, and whether it was in quotes."""
    start, end = match.span("value")
    if end - start > 1 and text[start] in "\"'`@" and text[end - 1] in "\"'`":
        return start + (2 if text[start] == "@" else 1), end - 1, True
    if "?" in text[max(0, match.start() - 40) : match.start()] and "&" in text[start:end]:
        end = text.index("&", start, end)
    return start, start + len(text[start:end].rstrip(_TRAILING)), False


def _names_a_secret(match: re.Match[str]) -> bool:
    suffix = match.group("suffix")
    name = match.group("name").lower()
    # A call has neither link: in a parser's source every other call makes a token.
    call = "link" in match.groupdict() and not (match.group("link") or match.group("is"))
    if name == "passwords" or (name == "token" and call):
        return False
    if not suffix or _PLAIN_SUFFIXES.fullmatch(suffix):
        return True
    return _SUFFIX.fullmatch(suffix) is not None and _ABOUT.search(suffix) is None


def _is_redaction(text: str, start: int) -> bool:
    """Whether the name is in one of our own marks: `[redacted:aws-secret-key]`."""
    before = text[max(0, start - 40) : start]
    return "]" not in before[before.rfind("[redacted:") :] if "[redacted:" in before else False


def _is_literal(value: str) -> bool:
    if _PLACEHOLDER.fullmatch(value) or value.lower() in _SCHEMA_WORDS:
        return False
    return not (_A_NAME.fullmatch(value) or re.search(r"\{\w*\}|\$\{|\$\(|://", value))


def _is_unquoted_literal(value: str, digits: bool) -> bool:
    if digits and value.isdecimal():
        return True
    if _CODE.fullmatch(value) or _ORDINARY.fullmatch(value):
        return False
    letter = re.search(r"[^\W\d_]", value) is not None
    digit = re.search(r"\d", value) is not None
    return letter and (digit or _MARKS.search(value[:-1]) is not None)


def _is_short_password(value: str) -> bool:
    """Letters and digits together, as `hunter2` has them."""
    if len(value) < 6 or not (re.search(r"[^\W\d_]", value) and re.search(r"\d", value)):
        return False
    return (
        _is_literal(value) and _CODE.fullmatch(value) is None and _ORDINARY.fullmatch(value) is None
    )
