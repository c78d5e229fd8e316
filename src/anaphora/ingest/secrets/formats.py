"""What secrets look like that have a form of their own: one row for each form.

`PATTERNS` is the table: kind, pattern, the group that is the secret, and a check of what a pattern
cannot say (a checksum, a header that decodes). `SOURCES` names the page of each kind on which the
vendor, or a scanner that the vendor works with, describes the form.

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
from typing import Final

from anaphora.ingest.secrets.examples import is_example


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

    @property
    def source(self) -> str:
        """The page that describes the form."""
        return SOURCES[self.kind]


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
    _, colon, password = _base64(match.group(1).translate(_URL_SAFE)).partition(b":")
    return bool(colon) and not is_example(password.decode("utf-8", "replace"))


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


def _is_twilio(match: re.Match[str]) -> bool:
    """An article can have such a number too: what is said around it tells."""
    around = match.string[max(0, match.start() - 100) : match.end() + 100]
    return _TWILIO.search(around) is not None and _ARTICLE.search(around) is None


def _is_bearer(match: re.Match[str]) -> bool:
    return re.search(r"[0-9]", match.group(1)) is not None


_TWILIO = re.compile(r"twilio|(?<![a-z])(?:key|token|secret|sid|auth|account)", re.IGNORECASE)
_ARTICLE = re.compile(r"\b(?:sku|article|product|item|part|order)s?\b", re.IGNORECASE)
_URL_SAFE = str.maketrans("+/", "-_")
# An escape ends in a letter or digit that is not the secret's: "\n" and "\u003d" in JSON, "%3D" in
# a URL, "=3D" in a mail. So does an option that is joined to its value: "-kAIza…".
_ESCAPED = (
    r"(?<=\\[nrtbf])|(?<=%[0-9A-Fa-f][0-9A-Fa-f])|(?<=\\u[0-9A-Fa-f]{4})|(?<==3D)"
    r"|(?<=[ \t]-[A-Za-z])"
)
# What is no more than a few letters and a hash would be found in any name with hyphens, as in
# "cache-key-" and a hash: no word and "-" or "_" may stand before it. A form that has a prefix of
# its own, or letters of both cases and digits, is found there, too. A word may follow either.
_START = rf"(?:(?<![A-Za-z0-9])(?<![A-Za-z0-9][_-])(?<![A-Za-z0-9][_-][_-])|{_ESCAPED})"
_START_OF_WORD = rf"(?:(?<![A-Za-z0-9])|{_ESCAPED})"
_END = r"(?![A-Za-z0-9])"
_UUID = r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"
_QUOTED = r"[\"'`]?\]?[ \t]{0,3}(?:=>|:=|[=:]{1,3}|[ \t])[ \t]{0,3}[\"'`]?"
"""What stands between the name of a key and its value."""

PATTERNS: tuple[SecretPattern, ...] = (
    # AWS writes the last sixteen in base32; what looks like one otherwise is somebody's test key.
    _known(
        "aws-access-key",
        _START_OF_WORD + r"(?:(?:AKIA|ASIA)[0-9A-Z]{16}|(?:A3T[A-Z0-9]|ABIA|ACCA)[A-Z2-7]{16})"
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
    _known("github-token", _START_OF_WORD + r"gh[pousr]_[A-Za-z0-9_]{36,255}", "gh", dense=True),
    _known(
        "github-token",
        _START_OF_WORD + r"github_pat_[A-Za-z0-9]{22}_[A-Za-z0-9]{59}",
        "github_pat_",
        dense=True,
    ),
    _known(
        "gitlab-token",
        _START_OF_WORD + r"(?:(?:glpat|gldt|glft|glsoat|glrt|glimt)-[\w-]{20,60}|glptt-[\w-]{40}"
        r"|glcbt-(?:[0-9a-fA-F]{2}_)?[\w-]{20,50}|glagent-[\w-]{50,1024}|gloas-[\w-]{64}"
        r"|GR1348941[\w-]{20,50})" + _END,
        dense=True,
    ),
    _known(
        "slack-token", _START_OF_WORD + r"xox[abeoprs](?:\.xox[bp])?-(?:\d+-)+[A-Za-z0-9-]+", "xox"
    ),
    _known("slack-token", _START_OF_WORD + r"xapp-\d-[A-Z0-9]{6,}-\d{6,}-[a-f0-9]{20,}", "xapp-"),
    _known(
        "slack-webhook",
        r"(?i)hooks\.slack\.com/(?:services/T\w+/B\w+/\w+|(?:workflows|triggers)/\w+/\w+/[\w/]+)",
        "hooks.slack.com",
    ),
    _known(
        "stripe-key", _START_OF_WORD + r"[rs]k_(?:live|test)_[0-9a-zA-Z]{16,}", "k_", dense=True
    ),
    _known("stripe-key", _START_OF_WORD + r"whsec_[A-Za-z0-9+/]{32,}", "whsec_", dense=True),
    _known(
        "twilio-key", r"(?<![A-Za-z0-9])(?:AC|SK)[0-9a-f]{32}(?![A-Za-z0-9])", "", 0, _is_twilio
    ),
    _known("sendgrid-key", _START_OF_WORD + r"SG\.[\w-]{22}\.[\w-]{43}" + _END, "SG."),
    _known("mailgun-key", _START + r"key-[0-9a-f]{32}" + _END, "key-", dense=True),
    _known("mailgun-key", _START + r"[0-9a-f]{32}-[0-9a-f]{8}-[0-9a-f]{8}" + _END, dense=True),
    _known("mailchimp-key", _START + r"[0-9a-z]{32}-us[0-9]{1,2}" + _END, "-us"),
    _known("npm-token", _START_OF_WORD + r"npm_[A-Za-z0-9]{36}" + _END, "npm_"),
    _known(
        "npm-token", r":_authToken=[ \t]{0,3}([A-Fa-f0-9-]{36}|[\w+/=-]{20,200})", "_authToken", 1
    ),
    # The beginning is a macaroon that names pypi.org or test.pypi.org, in base64.
    _known("pypi-token", r"pypi-(?:AgEIcHlwaS5vcmc|AgENdGVzdC5weXBpLm9yZw)[\w-]{50,}", "pypi-"),
    _known("anthropic-key", _START_OF_WORD + r"sk-ant-[\w-]{20,}", "sk-ant-"),
    _known("openrouter-key", _START_OF_WORD + r"sk-or-v1-[0-9a-f]{64}", "sk-or-"),
    _known("openai-key", _START_OF_WORD + r"sk-(?!ant-|or-)[\w-]{20,}", "sk-", check=_is_openai),
    _known("google-key", _START_OF_WORD + r"AIza[\w-]{35}" + _END, "AIza"),
    _known("google-key", _START_OF_WORD + r"GOCSPX-[\w-]{28}" + _END, "GOCSPX-"),
    _known("google-key", _START_OF_WORD + r"ya29\.[\w-]{20,}", "ya29."),
    _known("azure-storage-key", r"AccountKey=([A-Za-z0-9+/=]{88})", "AccountKey=", 1),
    _known("azure-storage-key", r"SharedAccessKey=([A-Za-z0-9+/]{43}=)", "SharedAccessKey=", 1),
    _known("azure-storage-key", r"[?&]sig=([A-Za-z0-9+/%]{43,60}(?:%3[dD]|=))", "sig=", 1),
    _known("telegram-token", r"(?<![\w:-])\d{8,10}:[\w-]{35}" + _END, ":", dense=True),
    _known(
        "discord-token",
        _START_OF_WORD + r"([MNO][\w-]{23,27})\.[\w-]{6}\.[\w-]{27,38}" + _END,
        ".",
        0,
        _is_discord,
        dense=True,
    ),
    _known("discord-token", r"discord(?:app)?\.com/api/webhooks/(\d+/[\w-]{60,})", "/webhooks/", 1),
    _known("square-token", _START_OF_WORD + r"(?:sq0csp-[\w\\-]{43}|sq0atp-[\w-]{22})", "sq0"),
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
    _known("huggingface-token", _START_OF_WORD + r"hf_[A-Za-z]{34}" + _END, "hf_"),
    _known("digitalocean-token", _START_OF_WORD + r"do[opr]_v1_[0-9a-f]{64}" + _END, "_v1_"),
    _known("shopify-token", _START_OF_WORD + r"shp(?:at|ca|pa|ss)_[0-9a-fA-F]{32}" + _END, "shp"),
    _known("vault-token", _START_OF_WORD + r"hv[sbr]\.[\w-]{24,}", "hv"),
    # Our own.
    _known(
        "anaphora-token",
        _START_OF_WORD + r"anaphora_(?:[a-z]{3,12}_[0-9a-z]{4,64}_)?[0-9a-f]{64}(?![0-9A-Za-z])",
        "anaphora_",
        dense=True,
    ),
    _known(
        "anaphora-key",
        _START_OF_WORD + r"anaphora-sync-\d{1,3}:[\w-]{40,}=*+",
        "anaphora-sync-",
        dense=True,
    ),
    _known(
        "anaphora-key",
        r"\"anaphora\\?\": ?\\?\"master key\\?\"[^{}]{0,200}\{[^{}]{0,300}\}[^{}]{0,40}?"
        r"\"sealed\\?\": ?\\?\"([\w+/=]{40,200})",
        "master key",
        1,
    ),
    # Models and what they are served, searched and watched with.
    _known("groq-key", _START_OF_WORD + r"gsk_[A-Za-z0-9]{40,80}" + _END, "gsk_", dense=True),
    _known("xai-key", _START_OF_WORD + r"xai-[A-Za-z0-9]{60,120}" + _END, "xai-", dense=True),
    _known("deepseek-key", _START_OF_WORD + r"sk-[0-9a-f]{32}" + _END, "sk-", dense=True),
    _known(
        "perplexity-key", _START_OF_WORD + r"pplx-[A-Za-z0-9]{40,64}" + _END, "pplx-", dense=True
    ),
    _known("replicate-token", _START_OF_WORD + r"r8_[A-Za-z0-9]{37,40}" + _END, "r8_", dense=True),
    _known(
        "langsmith-key",
        _START_OF_WORD + r"lsv2_[a-z]{2}_[0-9a-f]{32}_[0-9a-f]{10}" + _END,
        "lsv2_",
        dense=True,
    ),
    _known("langsmith-key", _START_OF_WORD + r"ls__[0-9a-f]{32}" + _END, "ls__", dense=True),
    _known("langfuse-key", _START_OF_WORD + r"sk-lf-" + _UUID + _END, "sk-lf-", dense=True),
    _known(
        "tavily-key",
        _START_OF_WORD + r"tvly-(?:(?:dev|prod)-)?[A-Za-z0-9-]{20,64}" + _END,
        "tvly-",
        dense=True,
    ),
    _known("nvidia-key", _START_OF_WORD + r"nvapi-[\w-]{60,80}" + _END, "nvapi-", dense=True),
    _known("pinecone-key", _START_OF_WORD + r"pcsk_[\w-]{40,100}" + _END, "pcsk_", dense=True),
    _known("cerebras-key", _START_OF_WORD + r"csk-[a-z0-9]{40,64}" + _END, "csk-", dense=True),
    _known(
        "fireworks-key",
        _START_OF_WORD + r"fw_[A-Za-z0-9]{20,40}" + _END,
        "fw_",
        0,
        _is_mixed,
        dense=True,
    ),
    _known(
        "jina-key", _START_OF_WORD + r"jina_[0-9a-f]{32}[\w-]{20,40}" + _END, "jina_", dense=True
    ),
    _known("voyage-key", _START_OF_WORD + r"pa-[\w-]{43}" + _END, "pa-", 0, _is_mixed, dense=True),
    _known("elevenlabs-key", _START_OF_WORD + r"sk_[0-9a-f]{48}" + _END, "sk_", dense=True),
    _known("e2b-key", _START_OF_WORD + r"e2b_[0-9a-f]{40}" + _END, "e2b_", dense=True),
    _known("firecrawl-key", _START + r"fc-[0-9a-f]{32}" + _END, "fc-", dense=True),
    _known("google-key", _START_OF_WORD + r"AQ\.Ab[\w-]{40,80}" + _END, "AQ.Ab", dense=True),
    _known(
        "google-key", _START_OF_WORD + r"[14]//0[A-Za-z][\w-]{36,512}" + _END, "//0", dense=True
    ),
    _known("google-key", _START + r"[14]/0[A-Za-z][\w-]{36,512}" + _END, "/0", dense=True),
    # AWS session tokens and keys of Bedrock: a header, the same for all, then base64.
    _known(
        "aws-session-token",
        _START_OF_WORD + r"(?:IQoJb3JpZ2luX2Vj|Fwo(?:GZXIvYXdz|DYXdz)|FQoGZXIvYXdz)"
        r"[A-Za-z0-9+/]{60,}+=*+",
        dense=True,
    ),
    _known(
        "aws-bedrock-key",
        _START_OF_WORD + r"(?:ABSK[A-Za-z0-9+/]{100,}+|bedrock-api-key-[\w+/-]{40,}+)=*+",
        dense=True,
    ),
    # Where people work.
    _known(
        "notion-token",
        _START_OF_WORD + r"(?:ntn_[A-Za-z0-9]{40,50}|secret_[A-Za-z0-9]{43})" + _END,
        "t",
        dense=True,
    ),
    _known(
        "linear-key",
        _START_OF_WORD + r"lin_(?:api|oauth|wh)_[A-Za-z0-9]{32,64}" + _END,
        "lin_",
        dense=True,
    ),
    _known("figma-token", _START_OF_WORD + r"fig[dour]h?_[\w-]{36,64}" + _END, "fig", dense=True),
    _known(
        "airtable-token",
        _START_OF_WORD + r"pat[A-Za-z0-9]{14}\.[0-9a-f]{64}" + _END,
        "pat",
        dense=True,
    ),
    _known(
        "atlassian-token",
        _START_OF_WORD + r"AT(?:ATT|CTT|STT)3[\w=-]{60,400}(?![\w-])",
        "TT3",
        dense=True,
    ),
    _known(
        "bitbucket-token",
        _START_OF_WORD + r"ATBB[A-Za-z0-9_-]{28,40}=*+" + _END,
        "ATBB",
        dense=True,
    ),
    _known(
        "dropbox-token", _START_OF_WORD + r"sl\.(?:u\.)?[\w-]{100,2048}" + _END, "sl.", dense=True
    ),
    _known(
        "hubspot-token", _START_OF_WORD + r"pat-[a-z]{2,4}\d-" + _UUID + _END, "pat-", dense=True
    ),
    _known(
        "asana-token",
        _START_OF_WORD + r"[012]/\d{10,20}(?:/\d{10,20})?:[0-9a-f]{32}" + _END,
        ":",
        dense=True,
    ),
    _known("typeform-token", _START_OF_WORD + r"tfp_[\w.-]{40,80}", "tfp_", dense=True),
    _known("contentful-token", _START_OF_WORD + r"CFPAT-[\w-]{43}" + _END, "CFPAT-", dense=True),
    _known(
        "postman-key",
        _START_OF_WORD + r"PMAK-[0-9a-f]{24}-[0-9a-f]{34}" + _END,
        "PMAK-",
        dense=True,
    ),
    _known("postman-key", _START_OF_WORD + r"PMAT-[0-9A-Z]{26}" + _END, "PMAT-", dense=True),
    _known("1password-token", _START_OF_WORD + r"ops_eyJ[\w+/-]{100,}+=*+", "ops_eyJ", dense=True),
    _known(
        "1password-token",
        _START_OF_WORD
        + r"A3-[A-Z0-9]{6}-(?:[A-Z0-9]{11}|[A-Z0-9]{6}-[A-Z0-9]{5})(?:-[A-Z0-9]{5}){3}"
        + _END,
        "A3-",
        dense=True,
    ),
    # Where programs run, and what watches them.
    _known(
        "databricks-token",
        _START_OF_WORD + r"(?:dapi|dose|dkea)[0-9a-f]{32}(?:-\d)?" + _END,
        "d",
        dense=True,
    ),
    _known(
        "grafana-token",
        _START_OF_WORD + r"glsa_[A-Za-z0-9]{32}_[0-9A-Fa-f]{8}" + _END,
        "glsa_",
        dense=True,
    ),
    _known(
        "grafana-token", _START_OF_WORD + r"glc_[A-Za-z0-9+/]{32,400}=*+" + _END, "glc_", dense=True
    ),
    _known(
        "grafana-token",
        _START_OF_WORD + r"eyJrIjoi[A-Za-z0-9+/_-]{40,400}=*+" + _END,
        "eyJrIjoi",
        dense=True,
    ),
    _known(
        "doppler-token",
        _START_OF_WORD + r"dp\.[a-z]{2,8}\.(?:[\w-]{1,64}\.)?[A-Za-z0-9]{40,44}" + _END,
        "dp.",
        dense=True,
    ),
    _known(
        "planetscale-token",
        _START_OF_WORD + r"pscale_(?:tkn|pw|oauth)_[\w=.-]{32,64}",
        "pscale_",
        dense=True,
    ),
    _known(
        "supabase-key",
        _START_OF_WORD + r"sbp_(?:oauth_|v0_)?[0-9a-f]{40}" + _END,
        "sbp_",
        dense=True,
    ),
    _known(
        "supabase-key", _START_OF_WORD + r"sb_secret_[\w-]{20,64}" + _END, "sb_secret_", dense=True
    ),
    _known(
        "docker-token", _START_OF_WORD + r"dckr_[a-z]{3}_[\w-]{20,64}" + _END, "dckr_", dense=True
    ),
    _known(
        "terraform-token",
        _START_OF_WORD + r"[A-Za-z0-9]{14}\.atlasv1\.[\w=-]{60,70}",
        ".atlasv1.",
        dense=True,
    ),
    _known("fly-token", _START_OF_WORD + r"fo1_[\w-]{40,64}" + _END, "fo1_", dense=True),
    _known("fly-token", _START_OF_WORD + r"fm[12][a-z]?_[\w+/-]{60,}+=*+", "fm", dense=True),
    _known("heroku-key", _START_OF_WORD + r"HRKU-[\w-]{36,80}" + _END, "HRKU-", dense=True),
    _known(
        "netlify-token", _START_OF_WORD + r"nf[a-z]_[A-Za-z0-9]{36,40}" + _END, "nf", dense=True
    ),
    _known(
        "vercel-token",
        _START_OF_WORD + r"vc[a-z]_[A-Za-z0-9]{24,64}" + _END,
        "vc",
        0,
        _is_mixed,
        dense=True,
    ),
    _known(
        "render-key",
        _START_OF_WORD + r"rnd_[A-Za-z0-9]{28,40}" + _END,
        "rnd_",
        0,
        _is_mixed,
        dense=True,
    ),
    _known(
        "cloudflare-token",
        _START_OF_WORD + r"cf[a-z]{1,3}t_[A-Za-z0-9]{40,64}" + _END,
        "cf",
        dense=True,
    ),
    _known(
        "cloudflare-token",
        _START_OF_WORD + r"v1\.0-[0-9a-f]{24}-[0-9a-f]{146}" + _END,
        "v1.0-",
        dense=True,
    ),
    _known(
        "alibaba-key",
        _START_OF_WORD + r"LTAI[A-Za-z0-9]{16,24}" + _END,
        "LTAI",
        0,
        _is_mixed,
        dense=True,
    ),
    _known("pulumi-token", _START_OF_WORD + r"pul-[0-9a-f]{40}" + _END, "pul-", dense=True),
    _known(
        "tailscale-key",
        _START_OF_WORD + r"tskey-[a-z]{3,12}-[A-Za-z0-9]{6,40}(?:-[A-Za-z0-9]{16,80})?" + _END,
        "tskey-",
        dense=True,
    ),
    _known(
        "azure-ad-secret",
        _START_OF_WORD + r"[\w.~-]{3}\dQ~[\w.~-]{31,34}" + _END,
        "Q~",
    ),
    _known("newrelic-key", _START_OF_WORD + r"NRAK-[A-Z0-9]{27}" + _END, "NRAK-", dense=True),
    _known(
        "newrelic-key",
        _START_OF_WORD + r"NR(?:JS|II|IQ|RA|AA|BR)-[\w-]{19,45}" + _END,
        "NR",
        dense=True,
    ),
    _known(
        "newrelic-key",
        _START_OF_WORD + r"(?:eu01xx)?[0-9a-f]{30,36}(?:FFFF)?NRAL" + _END,
        "NRAL",
        dense=True,
    ),
    _known("sentry-token", _START_OF_WORD + r"sntrys_eyJ[\w+/=-]{60,600}", "sntrys_", dense=True),
    _known("sentry-token", _START_OF_WORD + r"sntry[a-z]_[0-9a-f]{64}" + _END, "sntry", dense=True),
    _known(
        "dynatrace-token",
        _START_OF_WORD + r"dt0[a-z]\d\d\.[A-Z2-7]{24}\.[A-Z2-7]{64}" + _END,
        "dt0",
        dense=True,
    ),
    _known("sonar-token", _START_OF_WORD + r"sq[pua]_[0-9a-f]{40}" + _END, "sq", dense=True),
    _known("posthog-key", _START_OF_WORD + r"phx_[A-Za-z0-9]{40,60}" + _END, "phx_", dense=True),
    _known(
        "sourcegraph-token",
        _START_OF_WORD + r"sgp_(?:[0-9a-f]{16}_|local_)?[0-9a-f]{40}" + _END,
        "sgp_",
        dense=True,
    ),
    _known("buildkite-token", _START_OF_WORD + r"bk[a-z]{2}_[0-9a-f]{40}" + _END, "bk", dense=True),
    _known(
        "circleci-token",
        _START_OF_WORD + r"CCI(?:PAT|PRJ)_[A-Za-z0-9]{22}_[0-9a-f]{40}" + _END,
        "CCIP",
        dense=True,
    ),
    _known("prefect-key", _START_OF_WORD + r"pn[ub]_[A-Za-z0-9]{36}" + _END, "pn", dense=True),
    _known(
        "harness-token",
        _START_OF_WORD + r"[ps]at\.[\w-]{22}\.[0-9a-f]{24}\.[A-Za-z0-9]{20}" + _END,
        "at.",
        dense=True,
    ),
    # Registries of packages, and keys to files.
    _known(
        "rubygems-key", _START_OF_WORD + r"rubygems_[0-9a-f]{48}" + _END, "rubygems_", dense=True
    ),
    _known(
        "crates-token",
        _START_OF_WORD + r"cio[A-Za-z0-9]{32}" + _END,
        "cio",
        0,
        _is_mixed,
        dense=True,
    ),
    _known("nuget-key", _START_OF_WORD + r"oy2[a-z0-9]{43}" + _END, "oy2", dense=True),
    _known(
        "clojars-token", _START_OF_WORD + r"CLOJARS_[0-9a-z]{60}" + _END, "CLOJARS_", dense=True
    ),
    _known(
        "age-key",
        r"(?i)"
        + _START_OF_WORD
        + r"AGE-(?:SECRET-KEY(?:-PQ)?|PLUGIN-[A-Z0-9-]{1,40}?)-1[0-9A-Z]{40,2048}(?![0-9A-Za-z])",
        "age-",
        dense=True,
    ),
    # Mail and money.
    _known(
        "brevo-key",
        _START_OF_WORD + r"x(?:keysib|smtpsib)-[0-9a-f]{64}-[A-Za-z0-9]{16}" + _END,
        "sib-",
        dense=True,
    ),
    _known(
        "resend-key",
        _START_OF_WORD + r"re_[A-Za-z0-9]{8}_[A-Za-z0-9]{24}" + _END,
        "re_",
        dense=True,
    ),
    _known(
        "plaid-token",
        _START_OF_WORD + r"access-(?:sandbox|development|production)-" + _UUID + _END,
        "access-",
        dense=True,
    ),
    _known(
        "shippo-token",
        _START_OF_WORD + r"shippo_(?:live|test)_[0-9a-f]{40}" + _END,
        "shippo_",
        dense=True,
    ),
    _known("easypost-key", _START_OF_WORD + r"EZ[AT]K[A-Za-z0-9]{54}" + _END, "EZ", dense=True),
    _known(
        "mapbox-token",
        _START_OF_WORD + r"sk\.eyJ1[\w-]{40,200}\.[\w-]{20,}" + _END,
        "sk.eyJ",
        dense=True,
    ),
    _known(
        "jwt",
        _START_OF_WORD + r"(eyJ[\w-]{5,}+=*+)\.[\w-]{2,}+=*+(?:\.[\w-]*+=*+){0,3}",
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

SOURCES: Final[dict[str, str]] = {
    "aws-access-key": "https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_identifiers.html",
    "aws-secret-key": "https://docs.aws.amazon.com/IAM/latest/UserGuide/id_credentials_access-keys.html",
    "aws-session-token": "https://docs.aws.amazon.com/STS/latest/APIReference/API_Credentials.html",
    "aws-bedrock-key": "https://docs.aws.amazon.com/bedrock/latest/userguide/api-keys.html",
    "github-token": "https://github.blog/engineering/behind-githubs-new-authentication-token-formats/",
    "gitlab-token": "https://docs.gitlab.com/security/tokens/",
    "slack-token": "https://docs.slack.dev/authentication/tokens",
    "slack-webhook": "https://docs.slack.dev/messaging/sending-messages-using-incoming-webhooks",
    "stripe-key": "https://docs.stripe.com/keys",
    "twilio-key": "https://www.twilio.com/docs/glossary/what-is-a-sid",
    "sendgrid-key": "https://www.twilio.com/docs/sendgrid/ui/account-and-settings/api-keys",
    "mailgun-key": "https://documentation.mailgun.com/docs/mailgun/user-manual/api-key-mgmt/",
    "mailchimp-key": "https://mailchimp.com/developer/marketing/guides/quick-start/",
    "npm-token": "https://github.blog/changelog/2021-09-23-npm-has-a-new-access-token-format/",
    "pypi-token": "https://pypi.org/help/#apitoken",
    "anthropic-key": "https://docs.claude.com/en/api/overview",
    "openrouter-key": "https://openrouter.ai/docs/api-reference/authentication",
    "openai-key": "https://platform.openai.com/docs/api-reference/authentication",
    "google-key": "https://cloud.google.com/docs/authentication/api-keys",
    "azure-storage-key": "https://learn.microsoft.com/azure/storage/common/storage-account-keys-manage",
    "telegram-token": "https://core.telegram.org/bots/api#authorizing-your-bot",
    "discord-token": "https://discord.com/developers/docs/reference#authentication",
    "square-token": "https://developer.squareup.com/docs/build-basics/access-tokens",
    "artifactory-token": "https://jfrog.com/help/r/jfrog-platform-administration-documentation/access-tokens",
    "cloudant-key": "https://cloud.ibm.com/docs/Cloudant",
    "ibm-cloud-key": "https://cloud.ibm.com/docs/account?topic=account-userapikey",
    "ibm-cos-key": "https://cloud.ibm.com/docs/cloud-object-storage?topic=cloud-object-storage-uhc-hmac-credentials-main",
    "softlayer-key": "https://sldn.softlayer.com/article/authenticating-softlayer-api/",
    "huggingface-token": "https://huggingface.co/docs/hub/security-tokens",
    "digitalocean-token": "https://docs.digitalocean.com/reference/api/create-personal-access-token/",
    "shopify-token": "https://shopify.dev/docs/apps/build/authentication-authorization/access-tokens",
    "vault-token": "https://developer.hashicorp.com/vault/docs/concepts/tokens",
    "jwt": "https://www.rfc-editor.org/rfc/rfc7519",
    "authorization-header": "https://www.rfc-editor.org/rfc/rfc6750",
    "anaphora-token": "src/anaphora/store/tokens.py",
    "anaphora-key": "docs/sync.md",
    "groq-key": "https://console.groq.com/docs/quickstart",
    "xai-key": "https://docs.x.ai/docs/tutorial",
    "deepseek-key": "https://api-docs.deepseek.com/",
    "perplexity-key": "https://docs.perplexity.ai/getting-started/quickstart",
    "replicate-token": "https://replicate.com/docs/topics/security/api-tokens",
    "langsmith-key": "https://docs.langchain.com/langsmith/create-account-api-key",
    "langfuse-key": "https://langfuse.com/faq/all/where-are-langfuse-api-keys",
    "tavily-key": "https://docs.tavily.com/documentation/quickstart",
    "nvidia-key": "https://docs.api.nvidia.com/nim/docs/api-quickstart",
    "pinecone-key": "https://docs.pinecone.io/guides/projects/manage-api-keys",
    "cerebras-key": "https://inference-docs.cerebras.ai/quickstart",
    "fireworks-key": "https://docs.fireworks.ai/getting-started/quickstart",
    "jina-key": "https://jina.ai/api-dashboard/",
    "voyage-key": "https://docs.voyageai.com/docs/api-key-and-installation",
    "elevenlabs-key": "https://elevenlabs.io/docs/api-reference/authentication",
    "e2b-key": "https://e2b.dev/docs/api-key",
    "firecrawl-key": "https://docs.firecrawl.dev/introduction",
    "notion-token": "https://developers.notion.com/reference/authentication",
    "linear-key": "https://linear.app/developers/graphql",
    "figma-token": "https://www.figma.com/developers/api#authentication",
    "airtable-token": "https://airtable.com/developers/web/guides/personal-access-tokens",
    "atlassian-token": "https://support.atlassian.com/atlassian-account/docs/manage-api-tokens-for-your-atlassian-account/",
    "bitbucket-token": "https://support.atlassian.com/bitbucket-cloud/docs/app-passwords/",
    "dropbox-token": "https://developers.dropbox.com/oauth-guide",
    "hubspot-token": "https://developers.hubspot.com/docs/guides/apps/private-apps/overview",
    "asana-token": "https://developers.asana.com/docs/personal-access-token",
    "typeform-token": "https://www.typeform.com/developers/get-started/personal-access-token/",
    "contentful-token": "https://www.contentful.com/help/token-management/personal-access-tokens/",
    "postman-key": "https://learning.postman.com/docs/developer/postman-api/authentication/",
    "1password-token": "https://developer.1password.com/docs/service-accounts/",
    "databricks-token": "https://docs.databricks.com/aws/en/dev-tools/auth/pat",
    "grafana-token": "https://grafana.com/docs/grafana/latest/administration/service-accounts/",
    "doppler-token": "https://docs.doppler.com/reference/auth-token-formats",
    "planetscale-token": "https://planetscale.com/docs/api/reference/service-tokens",
    "supabase-key": "https://supabase.com/docs/guides/api/api-keys",
    "docker-token": "https://docs.docker.com/security/access-tokens/",
    "terraform-token": "https://developer.hashicorp.com/terraform/cloud-docs/users-teams-organizations/api-tokens",
    "fly-token": "https://fly.io/docs/security/tokens/",
    "heroku-key": "https://devcenter.heroku.com/articles/authentication",
    "netlify-token": "https://docs.netlify.com/api/get-started/",
    "vercel-token": "https://vercel.com/docs/rest-api#authentication",
    "render-key": "https://render.com/docs/api",
    "cloudflare-token": "https://developers.cloudflare.com/fundamentals/api/get-started/create-token/",
    "alibaba-key": "https://www.alibabacloud.com/help/en/ram/user-guide/create-an-accesskey-pair",
    "pulumi-token": "https://www.pulumi.com/docs/pulumi-cloud/access-management/access-tokens/",
    "tailscale-key": "https://tailscale.com/kb/1085/auth-keys",
    "azure-ad-secret": "https://learn.microsoft.com/purview/sit-defn-azure-ad-client-secret",
    "newrelic-key": "https://docs.newrelic.com/docs/apis/intro-apis/new-relic-api-keys/",
    "sentry-token": "https://docs.sentry.io/account/auth-tokens/",
    "dynatrace-token": "https://docs.dynatrace.com/docs/dynatrace-api/basics/dynatrace-api-authentication",
    "sonar-token": "https://docs.sonarsource.com/sonarqube-server/latest/user-guide/managing-tokens/",
    "posthog-key": "https://posthog.com/docs/api",
    "sourcegraph-token": "https://sourcegraph.com/docs/cli/how-tos/creating-an-access-token",
    "buildkite-token": "https://buildkite.com/docs/platform/security/tokens",
    "circleci-token": "https://circleci.com/docs/managing-api-tokens/",
    "prefect-key": "https://docs.prefect.io/v3/how-to-guides/cloud/manage-users/api-keys",
    "harness-token": "https://developer.harness.io/docs/platform/automation/api/add-and-manage-api-keys",
    "rubygems-key": "https://guides.rubygems.org/api-key-scopes/",
    "crates-token": "https://doc.rust-lang.org/cargo/reference/publishing.html",
    "nuget-key": "https://learn.microsoft.com/nuget/nuget-org/scoped-api-keys",
    "clojars-token": "https://github.com/clojars/clojars-web/wiki/Deploy-Tokens",
    "age-key": "https://github.com/C2SP/C2SP/blob/main/age.md",
    "brevo-key": "https://developers.brevo.com/docs/getting-started",
    "resend-key": "https://resend.com/docs/dashboard/api-keys/introduction",
    "plaid-token": "https://plaid.com/docs/api/items/",
    "shippo-token": "https://docs.goshippo.com/docs/guides_general/authentication/",
    "easypost-key": "https://docs.easypost.com/docs/authentication",
    "mapbox-token": "https://docs.mapbox.com/help/getting-started/access-tokens/",
}
"""By kind: the page that describes the form; those under src/ and docs/ are our own."""
