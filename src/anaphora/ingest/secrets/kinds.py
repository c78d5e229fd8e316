"""The kinds of secrets that are known, each by a pattern and, where it has one, by its structure.

In: nothing. Out: `SecretKind`, and `KNOWN`, the table of what has a form of its own: a pattern, the
group that is the secret, and a check of what the pattern cannot say (a checksum, a header that
decodes). Secrets without a form of their own (`password = …`) are `secret_words`. No rule here
measures randomness: a commit's hash is as random as a key.

A pattern never looks far ahead and then fails: what repeats is bounded or cannot begin again
inside its own match, so a text of any length takes linear time.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum


class SecretKind(StrEnum):
    """What was removed; the value is how the text says so: `[redacted:jwt]`."""

    ANTHROPIC = "anthropic-key"
    ARTIFACTORY = "artifactory-token"
    AUTHORIZATION = "authorization-header"
    AWS_ACCESS_KEY = "aws-access-key"
    AWS_SECRET_KEY = "aws-secret-key"  # noqa: S105 - a name, no secret
    AZURE_STORAGE = "azure-storage-key"
    BASIC_AUTH = "basic-auth"
    CARD = "card-number"
    CLOUDANT = "cloudant-key"
    DIGITALOCEAN = "digitalocean-token"
    DISCORD = "discord-token"
    GITHUB = "github-token"
    GITLAB = "gitlab-token"
    GOOGLE = "google-key"
    HUGGING_FACE = "huggingface-token"
    IBM_CLOUD = "ibm-cloud-key"
    IBM_COS = "ibm-cos-key"
    JWT = "jwt"
    MAILCHIMP = "mailchimp-key"
    MAILGUN = "mailgun-key"
    NPM = "npm-token"
    OPENAI = "openai-key"
    OPENROUTER = "openrouter-key"
    PASSWORD = "password"  # noqa: S105 - a name, no secret
    PRIVATE_KEY = "private-key"
    PYPI = "pypi-token"
    SECRET = "secret"  # noqa: S105 - a name, no secret
    SENDGRID = "sendgrid-key"
    SHOPIFY = "shopify-token"
    SLACK = "slack-token"
    SLACK_WEBHOOK = "slack-webhook"
    SOFTLAYER = "softlayer-key"
    SQUARE = "square-token"
    SSN = "us-ssn"
    STRIPE = "stripe-key"
    TELEGRAM = "telegram-token"
    TWILIO = "twilio-key"
    VAULT = "vault-token"


@dataclass(frozen=True, slots=True)
class Known:
    """A form: `pattern`, whose `group` is the secret, if `check` of the match agrees.

    `hint` is a text without which nothing can match; it saves reading the text once more. So does
    `dense`: a match lies in one line and has `DENSE` letters, digits, "+", "/", "_" or "-" in a
    row.
    """

    kind: SecretKind
    pattern: re.Pattern[str]
    hint: str = ""
    group: int = 0
    check: Callable[[re.Match[str]], bool] | None = None
    dense: bool = False


DENSE = 20
"""Characters in a row."""


def _known(
    kind: SecretKind,
    pattern: str,
    hint: str = "",
    group: int = 0,
    check: Callable[[re.Match[str]], bool] | None = None,
    *,
    dense: bool = False,
) -> Known:
    return Known(kind, re.compile(pattern, re.ASCII), hint, group, check, dense)


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

_K = SecretKind
KNOWN: tuple[Known, ...] = (
    # AWS writes the last sixteen in base32; what looks like one otherwise is somebody's test key.
    _known(
        _K.AWS_ACCESS_KEY,
        r"(?<![A-Za-z0-9])(?:(?:AKIA|ASIA)[0-9A-Z]{16}|(?:A3T[A-Z0-9]|ABIA|ACCA)[A-Z2-7]{16})"
        r"(?![A-Za-z0-9])",
        dense=True,
    ),
    _known(
        _K.AWS_SECRET_KEY,
        r"(?i)((?:\baws|secret_?access_?key)[\w .-]{0,40})[\"'`]?\]?[ \t:=>(,\"'`]{1,8}"
        r"([A-Za-z0-9/+]{40})(?![A-Za-z0-9/+=])",
        group=2,
        check=_is_aws_secret,
        dense=True,
    ),
    # Their last six are a checksum of the rest. It is not asked for: nothing else looks like this,
    # and a token with one letter mistyped still gives most of the real one away.
    _known(_K.GITHUB, r"(?<![A-Za-z0-9])gh[pousr]_[A-Za-z0-9_]{36,255}", "gh", dense=True),
    _known(
        _K.GITHUB,
        r"(?<![A-Za-z0-9])github_pat_[A-Za-z0-9]{22}_[A-Za-z0-9]{59}",
        "github_pat_",
        dense=True,
    ),
    _known(
        _K.GITLAB,
        _START + r"(?:(?:glpat|gldt|glft|glsoat|glrt|glimt)-[\w-]{20,60}|glptt-[\w-]{40}"
        r"|glcbt-(?:[0-9a-fA-F]{2}_)?[\w-]{20,50}|glagent-[\w-]{50,1024}|gloas-[\w-]{64}"
        r"|GR1348941[\w-]{20,50})(?!\w)",
        dense=True,
    ),
    _known(_K.SLACK, _START + r"xox[abeoprs](?:\.xox[bp])?-(?:\d+-)+[A-Za-z0-9-]+", "xox"),
    _known(_K.SLACK, _START + r"xapp-\d-[A-Z0-9]{6,}-\d{6,}-[a-f0-9]{20,}", "xapp-"),
    _known(
        _K.SLACK_WEBHOOK,
        r"(?i)hooks\.slack\.com/(?:services/T\w+/B\w+/\w+|(?:workflows|triggers)/\w+/\w+/[\w/]+)",
    ),
    _known(_K.STRIPE, r"(?<![A-Za-z0-9])[rs]k_(?:live|test)_[0-9a-zA-Z]{16,}", "k_", dense=True),
    _known(_K.STRIPE, r"(?<![A-Za-z0-9])whsec_[A-Za-z0-9+/]{32,}", "whsec_", dense=True),
    _known(_K.TWILIO, r"(?<![A-Za-z0-9])(?:AC|SK)[0-9a-f]{32}(?![A-Za-z0-9])", dense=True),
    _known(_K.SENDGRID, _START + r"SG\.[\w-]{22}\.[\w-]{43}" + _END, "SG."),
    _known(_K.MAILGUN, _START + r"key-[0-9a-f]{32}" + _END, "key-", dense=True),
    _known(_K.MAILGUN, _START + r"[0-9a-f]{32}-[0-9a-f]{8}-[0-9a-f]{8}" + _END, dense=True),
    _known(_K.MAILCHIMP, _START + r"[0-9a-z]{32}-us[0-9]{1,2}" + _END, "-us"),
    _known(_K.NPM, r"(?<![A-Za-z0-9])npm_[A-Za-z0-9]{36}" + _END, "npm_"),
    _known(_K.NPM, r":_authToken=[ \t]{0,3}([A-Fa-f0-9-]{36}|[\w+/=-]{20,200})", "_authToken", 1),
    # The beginning is a macaroon that names pypi.org or test.pypi.org, in base64.
    _known(_K.PYPI, r"pypi-(?:AgEIcHlwaS5vcmc|AgENdGVzdC5weXBpLm9yZw)[\w-]{50,}", "pypi-"),
    _known(_K.ANTHROPIC, _START + r"sk-ant-[\w-]{20,}", "sk-ant-"),
    _known(_K.OPENROUTER, _START + r"sk-or-v1-[0-9a-f]{64}", "sk-or-"),
    _known(_K.OPENAI, _START + r"sk-(?!ant-|or-)[\w-]{20,}", "sk-", check=_is_openai),
    _known(_K.GOOGLE, _START + r"AIza[\w-]{35}" + _END, "AIza"),
    _known(_K.GOOGLE, _START + r"GOCSPX-[\w-]{28}" + _END, "GOCSPX-"),
    _known(_K.GOOGLE, _START + r"ya29\.[\w-]{20,}", "ya29."),
    _known(_K.AZURE_STORAGE, r"AccountKey=([A-Za-z0-9+/=]{88})", "AccountKey=", 1),
    _known(_K.AZURE_STORAGE, r"SharedAccessKey=([A-Za-z0-9+/]{43}=)", "SharedAccessKey=", 1),
    _known(_K.AZURE_STORAGE, r"[?&]sig=([A-Za-z0-9+/%]{43,60}(?:%3[dD]|=))", "sig=", 1),
    _known(_K.TELEGRAM, r"(?<![\w:-])\d{8,10}:[\w-]{35}" + _END, ":", dense=True),
    _known(
        _K.DISCORD,
        _START + r"([MNO][\w-]{23,27})\.[\w-]{6}\.[\w-]{27,38}" + _END,
        ".",
        0,
        _is_discord,
        dense=True,
    ),
    _known(_K.DISCORD, r"discord(?:app)?\.com/api/webhooks/(\d+/[\w-]{60,})", "/webhooks/", 1),
    _known(_K.SQUARE, _START + r"(?:sq0csp-[\w\\-]{43}|sq0atp-[\w-]{22})", "sq0"),
    _known(
        _K.ARTIFACTORY,
        r"(?<![A-Za-z0-9+/_-])AKC[A-Za-z0-9]{40,}" + _END,
        "AKC",
        0,
        _is_mixed,
        dense=True,
    ),
    _known(
        _K.ARTIFACTORY,
        r"(?<![A-Za-z0-9+/_-])AP[\dA-F][A-Za-z0-9]{20,80}(?![A-Za-z0-9+/_-])",
        "AP",
        0,
        _is_mixed,
        dense=True,
    ),
    _known(
        _K.CLOUDANT,
        r"(?i)(?<!\w)(?:cloudant|clou|cl)[_-]?(?:api)?[_-]?(?:key|pwd|pw|password|pass|token)"
        + _QUOTED
        + r"([0-9a-f]{64}|[a-z]{24})(?![a-z0-9])",
        group=1,
        dense=True,
    ),
    _known(
        _K.IBM_CLOUD,
        r"(?i)(?<!\w)(?:(?:ibm|cloud|iam)[_-]?){0,3}(?:api)?[_-]?(?:key|pwd|password|pass|token)"
        + _QUOTED
        + r"([\w-]{44})(?![\w-])",
        group=1,
        check=_is_mixed,
        dense=True,
    ),
    _known(
        _K.IBM_COS,
        r"(?i)secret[-_]?(?:access)?[-_]?key" + _QUOTED + r"([a-f0-9]{48})(?![a-f0-9])",
        group=1,
        dense=True,
    ),
    _known(
        _K.SOFTLAYER,
        r"(?i)(?<!\w)(?:softlayer|sl)[_-]?(?:api)?[_-]?(?:key|pwd|password|pass|token)"
        + _QUOTED
        + r"([a-z0-9]{64})(?![a-z0-9])",
        group=1,
        dense=True,
    ),
    _known(
        _K.SOFTLAYER, r"(?i)api\.softlayer\.com/soap/v3(?:\.1)?/([a-z0-9]{64})", group=1, dense=True
    ),
    _known(_K.HUGGING_FACE, _START + r"hf_[A-Za-z]{34}" + _END, "hf_"),
    _known(_K.DIGITALOCEAN, _START + r"do[opr]_v1_[0-9a-f]{64}" + _END, "_v1_"),
    _known(_K.SHOPIFY, _START + r"shp(?:at|ca|pa|ss)_[0-9a-fA-F]{32}" + _END, "shp"),
    _known(_K.VAULT, _START + r"hv[sbr]\.[\w-]{24,}", "hv"),
    _known(
        _K.JWT,
        _START + r"(eyJ[\w-]{5,}+=*+)\.[\w-]{2,}+=*+(?:\.[\w-]*+=*+){0,3}",
        "eyJ",
        0,
        _is_jwt,
    ),
    _known(
        _K.AUTHORIZATION,
        r"(?i)\bbearer[ \t]{1,3}([\w.~+/-]{20,}+=*+)",
        group=1,
        check=_is_bearer,
    ),
    _known(
        _K.AUTHORIZATION,
        r"(?i)\bauthorization[\"']?[ \t]{0,3}:[ \t]{0,3}[\"']?basic[ \t]{1,3}([\w+/-]{8,}+=*+)",
        group=1,
        check=_is_basic,
    ),
)
