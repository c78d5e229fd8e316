"""What secrets look like that have a form of their own: one row for each form.

`PATTERNS` is the table: kind, pattern, the group that is the secret, and a check of what a pattern
cannot say (a checksum, a header that decodes). `sources.SOURCES` names the page of each kind on
which the vendor, or a scanner that vendors work with, describes the form.
"""

from __future__ import annotations

from anaphora.ingest.secrets.more_formats import MORE_PATTERNS
from anaphora.ingest.secrets.shapes import (
    END,
    QUOTED,
    START,
    START_OF_WORD,
    UUID,
    SecretPattern,
    is_aws_secret,
    is_basic,
    is_bearer,
    is_discord,
    is_jwt,
    is_mixed,
    is_openai,
    is_twilio,
    known,
)
from anaphora.ingest.secrets.sources import SOURCES

__all__ = ["PATTERNS", "SOURCES"]

PATTERNS: tuple[SecretPattern, ...] = (
    # AWS writes the last sixteen in base32; a similar key in other characters is a test key.
    *(
        known("aws-access-key", START_OF_WORD + mark + rest + END, mark, dense=True)
        for marks, rest in (
            (("AKIA", "ASIA"), "[0-9A-Z]{16}"),
            (("ABIA", "ACCA"), "[A-Z2-7]{16}"),
            (("A3T",), "[A-Z0-9][A-Z2-7]{16}"),
        )
        for mark in marks
    ),
    known(
        "aws-secret-key",
        r"(?i)((?:\baws|secret_?access_?key)[\w .-]{0,40})[\"'`]?\]?[ \t:=>(,\"'`]{1,8}"
        r"([A-Za-z0-9/+]{40})(?![A-Za-z0-9/+=])",
        group=2,
        check=is_aws_secret,
        dense=True,
    ),
    # Their last six are a checksum of the rest. It is not asked for: nothing else looks like this,
    # and a token with one letter mistyped still gives most of the real one away.
    known("github-token", START_OF_WORD + r"gh[pousr]_[A-Za-z0-9_]{36,255}", "gh", dense=True),
    known(
        "github-token",
        START_OF_WORD + r"github_pat_[A-Za-z0-9]{22}_[A-Za-z0-9]{59}",
        "github_pat_",
        dense=True,
    ),
    known(
        "gitlab-token",
        START_OF_WORD
        + r"(?:(?:glpat|gldt|glft|glsoat|glrt|glimt)-[\w-]{20,120}(?:\.\w{2}\.\w{7,12})?"
        r"|glptt-[\w-]{40}"
        r"|glcbt-(?:[0-9a-fA-F]{2}_)?[\w-]{20,50}|glagent-[\w-]{50,1024}|gloas-[\w-]{64}"
        r"|GR1348941[\w-]{20,50})" + END,
        dense=True,
    ),
    known(
        "slack-token", START_OF_WORD + r"xox[abeoprs](?:\.xox[bp])?-(?:\d+-)+[A-Za-z0-9-]+", "xox"
    ),
    known("slack-token", START_OF_WORD + r"xox[cd]-[\w%+/=-]{20,}", "xox", dense=True),
    known("slack-token", START_OF_WORD + r"xapp-\d-[A-Z0-9]{6,}-\d{6,}-[a-f0-9]{20,}", "xapp-"),
    known(
        "slack-webhook",
        r"(?i)hooks\.slack\.com/(?:services/T\w+/B\w+/\w+|(?:workflows|triggers)/\w+/\w+/[\w/]+)",
        "hooks.slack.com",
    ),
    known("stripe-key", START_OF_WORD + r"[rs]k_(?:live|test)_[0-9a-zA-Z]{16,}", "k_", dense=True),
    known("stripe-key", START_OF_WORD + r"whsec_[A-Za-z0-9+/]{32,}", "whsec_", dense=True),
    known("twilio-key", r"(?<![A-Za-z0-9])(?:AC|SK)[0-9a-f]{32}(?![A-Za-z0-9])", "", 0, is_twilio),
    known("sendgrid-key", START_OF_WORD + r"SG\.[\w-]{22}\.[\w-]{43}" + END, "SG."),
    known("mailgun-key", START + r"key-[0-9a-f]{32}" + END, "key-", dense=True),
    known("mailgun-key", START + r"[0-9a-f]{32}-[0-9a-f]{8}-[0-9a-f]{8}" + END, dense=True),
    known("mailchimp-key", START + r"[0-9a-z]{32}-us[0-9]{1,2}" + END, "-us", dense=True),
    known("npm-token", START_OF_WORD + r"npm_[A-Za-z0-9]{36}" + END, "npm_"),
    known(
        "npm-token", r":_authToken=[ \t]{0,3}([A-Fa-f0-9-]{36}|[\w+/=-]{20,200})", "_authToken", 1
    ),
    # The beginning is a macaroon that names pypi.org or test.pypi.org, in base64.
    known("pypi-token", r"pypi-(?:AgEIcHlwaS5vcmc|AgENdGVzdC5weXBpLm9yZw)[\w-]{50,}", "pypi-"),
    known("anthropic-key", START_OF_WORD + r"sk-ant-[\w-]{20,}", "sk-ant-"),
    known("openrouter-key", START_OF_WORD + r"sk-or-v1-[0-9a-f]{64}", "sk-or-"),
    known("openai-key", START_OF_WORD + r"sk-(?!ant-|or-)[\w-]{20,}", "sk-", check=is_openai),
    known("google-key", START_OF_WORD + r"AIza[\w-]{35}" + END, "AIza"),
    known("google-key", START_OF_WORD + r"GOCSPX-[\w-]{28}" + END, "GOCSPX-"),
    known("google-key", START_OF_WORD + r"ya29\.[\w-]{20,}", "ya29."),
    known("azure-storage-key", r"AccountKey=([A-Za-z0-9+/=]{88})", "AccountKey=", 1),
    known("azure-storage-key", r"SharedAccessKey=([A-Za-z0-9+/]{43}=)", "SharedAccessKey=", 1),
    known("azure-storage-key", r"[?&]sig=([A-Za-z0-9+/%]{43,60}(?:%3[dD]|=))", "sig=", 1),
    known("telegram-token", r"(?<![\w:-])\d{8,10}:[\w-]{35}" + END, ":", dense=True),
    known(
        "discord-token",
        START_OF_WORD + r"([MNO][\w-]{23,27})\.[\w-]{6}\.[\w-]{27,38}" + END,
        ".",
        0,
        is_discord,
        dense=True,
    ),
    known("discord-token", r"discord(?:app)?\.com/api/webhooks/(\d+/[\w-]{60,})", "/webhooks/", 1),
    known("square-token", START_OF_WORD + r"(?:sq0csp-[\w\\-]{43}|sq0atp-[\w-]{22})", "sq0"),
    known(
        "artifactory-token",
        r"(?<![A-Za-z0-9+/_-])AKC[A-Za-z0-9]{40,}" + END,
        "AKC",
        0,
        is_mixed,
        dense=True,
    ),
    known(
        "artifactory-token",
        r"(?<![A-Za-z0-9+/_-])AP[\dA-F][A-Za-z0-9]{20,80}(?![A-Za-z0-9+/_-])",
        "AP",
        0,
        is_mixed,
        dense=True,
    ),
    known(
        "cloudant-key",
        r"(?i)(?<!\w)(?:cloudant|clou|cl)[_-]?(?:api)?[_-]?(?:key|pwd|pw|password|pass|token)"
        + QUOTED
        + r"([0-9a-f]{64}|[a-z]{24})(?![a-z0-9])",
        group=1,
        dense=True,
    ),
    known(
        "ibm-cloud-key",
        r"(?i)(?<!\w)(?:(?:ibm|cloud|iam)[_-]?){0,3}(?:api)?[_-]?(?:key|pwd|password|pass|token)"
        + QUOTED
        + r"([\w-]{44})(?![\w-])",
        group=1,
        check=is_mixed,
        dense=True,
    ),
    known(
        "ibm-cos-key",
        r"(?i)secret[-_]?(?:access)?[-_]?key" + QUOTED + r"([a-f0-9]{48})(?![a-f0-9])",
        group=1,
        dense=True,
    ),
    known(
        "softlayer-key",
        r"(?i)(?<!\w)(?:softlayer|sl)[_-]?(?:api)?[_-]?(?:key|pwd|password|pass|token)"
        + QUOTED
        + r"([a-z0-9]{64})(?![a-z0-9])",
        group=1,
        dense=True,
    ),
    known(
        "softlayer-key",
        r"(?i)api\.softlayer\.com/soap/v3(?:\.1)?/([a-z0-9]{64})",
        group=1,
        dense=True,
    ),
    known("huggingface-token", START_OF_WORD + r"hf_[A-Za-z]{34}" + END, "hf_"),
    known("digitalocean-token", START_OF_WORD + r"do[opr]_v1_[0-9a-f]{64}" + END, "_v1_"),
    known("shopify-token", START_OF_WORD + r"shp(?:at|ca|pa|ss)_[0-9a-fA-F]{32}" + END, "shp"),
    known("vault-token", START_OF_WORD + r"hv[sbr]\.[\w-]{24,}", "hv"),
    # Our own.
    known(
        "anaphora-token",
        START_OF_WORD + r"anaphora_(?:[a-z]{3,12}_[0-9a-z]{4,64}_)?[0-9a-f]{64}(?![0-9A-Za-z])",
        "anaphora_",
        dense=True,
    ),
    known(
        "anaphora-key",
        START_OF_WORD + r"anaphora-sync-\d{1,3}:[\w-]{40,}=*+",
        "anaphora-sync-",
        dense=True,
    ),
    known(
        "anaphora-key",
        r"\"anaphora\\?\": ?\\?\"master key\\?\"[^{}]{0,200}\{[^{}]{0,300}\}[^{}]{0,40}?"
        r"\"sealed\\?\": ?\\?\"([\w+/=]{40,200})",
        "master key",
        1,
    ),
    # Models and what they are served, searched and watched with.
    known("groq-key", START_OF_WORD + r"gsk_[A-Za-z0-9]{40,80}" + END, "gsk_", dense=True),
    known("xai-key", START_OF_WORD + r"xai-[A-Za-z0-9]{60,120}" + END, "xai-", dense=True),
    known("deepseek-key", START_OF_WORD + r"sk-[0-9a-f]{32}" + END, "sk-", dense=True),
    known("perplexity-key", START_OF_WORD + r"pplx-[A-Za-z0-9]{40,64}" + END, "pplx-", dense=True),
    known("replicate-token", START_OF_WORD + r"r8_[A-Za-z0-9]{37,40}" + END, "r8_", dense=True),
    known(
        "langsmith-key",
        START_OF_WORD + r"lsv2_[a-z]{2}_[0-9a-f]{32}_[0-9a-f]{10}" + END,
        "lsv2_",
        dense=True,
    ),
    known("langsmith-key", START_OF_WORD + r"ls__[0-9a-f]{32}" + END, "ls__", dense=True),
    known("langfuse-key", START_OF_WORD + r"sk-lf-" + UUID + END, "sk-lf-", dense=True),
    known(
        "tavily-key",
        START_OF_WORD + r"tvly-(?:(?:dev|prod)-)?[A-Za-z0-9-]{20,64}" + END,
        "tvly-",
        dense=True,
    ),
    known("nvidia-key", START_OF_WORD + r"nvapi-[\w-]{60,80}" + END, "nvapi-", dense=True),
    known("pinecone-key", START_OF_WORD + r"pcsk_[\w-]{40,100}" + END, "pcsk_", dense=True),
    known("cerebras-key", START_OF_WORD + r"csk-[a-z0-9]{40,64}" + END, "csk-", dense=True),
    known(
        "fireworks-key",
        START_OF_WORD + r"fw_[A-Za-z0-9]{20,40}" + END,
        "fw_",
        0,
        is_mixed,
        dense=True,
    ),
    known("jina-key", START_OF_WORD + r"jina_[0-9a-f]{32}[\w-]{20,40}" + END, "jina_", dense=True),
    known("voyage-key", START_OF_WORD + r"pa-[\w-]{43}" + END, "pa-", 0, is_mixed, dense=True),
    known("elevenlabs-key", START_OF_WORD + r"sk_[0-9a-f]{48}" + END, "sk_", dense=True),
    known("e2b-key", START_OF_WORD + r"e2b_[0-9a-f]{40}" + END, "e2b_", dense=True),
    known("firecrawl-key", START + r"fc-[0-9a-f]{32}" + END, "fc-", dense=True),
    known("google-key", START_OF_WORD + r"AQ\.Ab[\w-]{40,80}" + END, "AQ.Ab", dense=True),
    known("google-key", START_OF_WORD + r"[14]//0[A-Za-z][\w-]{36,512}" + END, "//0", dense=True),
    known("google-key", START + r"[14]/0[A-Za-z][\w-]{36,512}" + END, "/0", dense=True),
    # AWS session tokens and keys of Bedrock: a header, the same for all, then base64.
    *(
        known(
            "aws-session-token",
            START_OF_WORD + mark + r"[A-Za-z0-9+/]{60,}+=*+",
            mark,
            dense=True,
        )
        for mark in ("IQoJb3JpZ2luX2Vj", "FwoGZXIvYXdz", "FwoDYXdz", "FQoGZXIvYXdz")
    ),
    known("aws-bedrock-key", START_OF_WORD + r"ABSK[A-Za-z0-9+/]{100,}+=*+", "ABSK", dense=True),
    known(
        "aws-bedrock-key",
        START_OF_WORD + r"bedrock-api-key-[\w+/-]{40,}+=*+",
        "bedrock-api-key-",
        dense=True,
    ),
    # Where people work.
    known("notion-token", START_OF_WORD + r"ntn_[A-Za-z0-9]{40,50}" + END, "ntn_", dense=True),
    known("notion-token", START_OF_WORD + r"secret_[A-Za-z0-9]{43}" + END, "secret_", dense=True),
    known(
        "linear-key",
        START_OF_WORD + r"lin_(?:api|oauth|wh)_[A-Za-z0-9]{32,64}" + END,
        "lin_",
        dense=True,
    ),
    known("figma-token", START_OF_WORD + r"fig[dour]h?_[\w-]{36,64}" + END, "fig", dense=True),
    known(
        "airtable-token",
        START_OF_WORD + r"pat[A-Za-z0-9]{14}\.[0-9a-f]{64}" + END,
        "pat",
        dense=True,
    ),
    known(
        "atlassian-token",
        START_OF_WORD + r"AT(?:ATT|CTT|STT)3[\w=-]{60,400}(?![\w-])",
        "TT3",
        dense=True,
    ),
    known(
        "bitbucket-token",
        START_OF_WORD + r"ATBB[A-Za-z0-9_-]{28,40}=*+" + END,
        "ATBB",
        dense=True,
    ),
    known("dropbox-token", START_OF_WORD + r"sl\.(?:u\.)?[\w-]{100,2048}" + END, "sl.", dense=True),
    known("hubspot-token", START_OF_WORD + r"pat-[a-z]{2,4}\d-" + UUID + END, "pat-", dense=True),
    known(
        "asana-token",
        START_OF_WORD + r"[012]/\d{10,20}(?:/\d{10,20})?:[0-9a-f]{32}" + END,
        ":",
        dense=True,
    ),
    known("typeform-token", START_OF_WORD + r"tfp_[\w.-]{40,80}", "tfp_", dense=True),
    known("contentful-token", START_OF_WORD + r"CFPAT-[\w-]{43}" + END, "CFPAT-", dense=True),
    known(
        "postman-key",
        START_OF_WORD + r"PMAK-[0-9a-f]{24}-[0-9a-f]{34}" + END,
        "PMAK-",
        dense=True,
    ),
    known("postman-key", START_OF_WORD + r"PMAT-[0-9A-Z]{26}" + END, "PMAT-", dense=True),
    known("1password-token", START_OF_WORD + r"ops_eyJ[\w+/-]{100,}+=*+", "ops_eyJ", dense=True),
    known(
        "1password-token",
        START_OF_WORD
        + r"A3-[A-Z0-9]{6}-(?:[A-Z0-9]{11}|[A-Z0-9]{6}-[A-Z0-9]{5})(?:-[A-Z0-9]{5}){3}"
        + END,
        "A3-",
        dense=True,
    ),
    # Where programs run, and what watches them.
    known(
        "databricks-token",
        START_OF_WORD + r"(?:dapi|dose|dkea)[0-9a-f]{32}(?:-\d)?" + END,
        "d",
        dense=True,
    ),
    known(
        "grafana-token",
        START_OF_WORD + r"glsa_[A-Za-z0-9]{32}_[0-9A-Fa-f]{8}" + END,
        "glsa_",
        dense=True,
    ),
    known(
        "grafana-token", START_OF_WORD + r"glc_[A-Za-z0-9+/]{32,400}=*+" + END, "glc_", dense=True
    ),
    known(
        "grafana-token",
        START_OF_WORD + r"eyJrIjoi[A-Za-z0-9+/_-]{40,400}=*+" + END,
        "eyJrIjoi",
        dense=True,
    ),
    known(
        "doppler-token",
        START_OF_WORD + r"dp\.[a-z]{2,8}\.(?:[\w-]{1,64}\.)?[A-Za-z0-9]{40,44}" + END,
        "dp.",
        dense=True,
    ),
    known(
        "planetscale-token",
        START_OF_WORD + r"pscale_(?:tkn|pw|oauth)_[\w=.-]{32,64}",
        "pscale_",
        dense=True,
    ),
    known(
        "supabase-key",
        START_OF_WORD + r"sbp_(?:oauth_|v0_)?[0-9a-f]{40}" + END,
        "sbp_",
        dense=True,
    ),
    known(
        "supabase-key", START_OF_WORD + r"sb_secret_[\w-]{20,64}" + END, "sb_secret_", dense=True
    ),
    known("docker-token", START_OF_WORD + r"dckr_[a-z]{3}_[\w-]{20,64}" + END, "dckr_", dense=True),
    known(
        "terraform-token",
        START_OF_WORD + r"[A-Za-z0-9]{14}\.atlasv1\.[\w=-]{60,70}",
        ".atlasv1.",
        dense=True,
    ),
    known("fly-token", START_OF_WORD + r"fo1_[\w-]{40,64}" + END, "fo1_", dense=True),
    known("fly-token", START_OF_WORD + r"fm[12][a-z]?_[\w+/-]{60,}+=*+", "fm", dense=True),
    known("heroku-key", START_OF_WORD + r"HRKU-[\w-]{36,80}" + END, "HRKU-", dense=True),
    known("netlify-token", START_OF_WORD + r"nf[a-z]_[A-Za-z0-9]{36,40}" + END, "nf", dense=True),
    known(
        "vercel-token",
        START_OF_WORD + r"vc[a-z]_[A-Za-z0-9]{24,64}" + END,
        "vc",
        0,
        is_mixed,
        dense=True,
    ),
    known(
        "render-key",
        START_OF_WORD + r"rnd_[A-Za-z0-9]{28,40}" + END,
        "rnd_",
        0,
        is_mixed,
        dense=True,
    ),
    known(
        "cloudflare-token",
        START_OF_WORD + r"cf(?:k|[a-z]{1,2}t)_[A-Za-z0-9]{40,64}" + END,
        "cf",
        dense=True,
    ),
    known(
        "cloudflare-token",
        START_OF_WORD + r"v1\.0-[0-9a-f]{24}-[0-9a-f]{146}" + END,
        "v1.0-",
        dense=True,
    ),
    known(
        "alibaba-key",
        START_OF_WORD + r"LTAI[A-Za-z0-9]{16,24}" + END,
        "LTAI",
        0,
        is_mixed,
        dense=True,
    ),
    known("pulumi-token", START_OF_WORD + r"pul-[0-9a-f]{40}" + END, "pul-", dense=True),
    known(
        "tailscale-key",
        START_OF_WORD + r"tskey-[a-z]{3,12}-[A-Za-z0-9]{6,40}(?:-[A-Za-z0-9]{16,80})?" + END,
        "tskey-",
        dense=True,
    ),
    known(
        "azure-ad-secret",
        START_OF_WORD + r"[\w.~-]{3}\dQ~[\w.~-]{31,34}" + END,
        "Q~",
    ),
    known("newrelic-key", START_OF_WORD + r"NRAK-[A-Z0-9]{27}" + END, "NRAK-", dense=True),
    known(
        "newrelic-key",
        START_OF_WORD + r"NR(?:JS|II|IQ|RA|AA|BR)-[\w-]{19,45}" + END,
        "NR",
        dense=True,
    ),
    known(
        "newrelic-key",
        START_OF_WORD + r"(?:eu01xx)?[0-9a-f]{30,36}(?:FFFF)?NRAL" + END,
        "NRAL",
        dense=True,
    ),
    known("sentry-token", START_OF_WORD + r"sntrys_eyJ[\w+/=-]{60,600}", "sntrys_", dense=True),
    known("sentry-token", START_OF_WORD + r"sntry[a-z]_[0-9a-f]{64}" + END, "sntry", dense=True),
    known(
        "dynatrace-token",
        START_OF_WORD + r"dt0[a-z]\d\d\.[A-Z2-7]{24}\.[A-Z2-7]{64}" + END,
        "dt0",
        dense=True,
    ),
    known("sonar-token", START_OF_WORD + r"sq[pua]_[0-9a-f]{40}" + END, "sq", dense=True),
    known("posthog-key", START_OF_WORD + r"phx_[A-Za-z0-9]{40,60}" + END, "phx_", dense=True),
    known(
        "sourcegraph-token",
        START_OF_WORD + r"sgp_(?:[0-9a-f]{16}_|local_)?[0-9a-f]{40}" + END,
        "sgp_",
        dense=True,
    ),
    known("buildkite-token", START_OF_WORD + r"bk[a-z]{2}_[0-9a-f]{40}" + END, "bk", dense=True),
    known(
        "circleci-token",
        START_OF_WORD + r"CCI(?:PAT|PRJ)_[A-Za-z0-9]{22}_[0-9a-f]{40}" + END,
        "CCIP",
        dense=True,
    ),
    known("prefect-key", START_OF_WORD + r"pn[ub]_[A-Za-z0-9]{36}" + END, "pn", dense=True),
    known(
        "harness-token",
        START_OF_WORD + r"[ps]at\.[\w-]{22}\.[0-9a-f]{24}\.[A-Za-z0-9]{20}" + END,
        "at.",
        dense=True,
    ),
    # Registries of packages, and keys to files.
    known("rubygems-key", START_OF_WORD + r"rubygems_[0-9a-f]{48}" + END, "rubygems_", dense=True),
    known(
        "crates-token",
        START_OF_WORD + r"cio[A-Za-z0-9]{32}" + END,
        "cio",
        0,
        is_mixed,
        dense=True,
    ),
    known("nuget-key", START_OF_WORD + r"oy2[a-z0-9]{43}" + END, "oy2", dense=True),
    known("clojars-token", START_OF_WORD + r"CLOJARS_[0-9a-z]{60}" + END, "CLOJARS_", dense=True),
    *(
        known(
            "age-key",
            rf"(?i){START_OF_WORD}{mark}{rest}-1[0-9A-Z]{{40,2048}}{END}",
            mark,
            dense=True,
        )
        for mark, rest in (("age-secret-key", "(?:-PQ)?"), ("age-plugin-", "[A-Z0-9-]{1,40}?"))
    ),
    # Mail and money.
    known(
        "brevo-key",
        START_OF_WORD + r"x(?:keysib|smtpsib)-[0-9a-f]{64}-[A-Za-z0-9]{16}" + END,
        "sib-",
        dense=True,
    ),
    known(
        "resend-key",
        START_OF_WORD + r"re_[A-Za-z0-9]{8}_[A-Za-z0-9]{24}" + END,
        "re_",
        dense=True,
    ),
    known(
        "plaid-token",
        START_OF_WORD + r"access-(?:sandbox|development|production)-" + UUID + END,
        "access-",
        dense=True,
    ),
    known(
        "shippo-token",
        START_OF_WORD + r"shippo_(?:live|test)_[0-9a-f]{40}" + END,
        "shippo_",
        dense=True,
    ),
    known("easypost-key", START_OF_WORD + r"EZ[AT]K[A-Za-z0-9]{54}" + END, "EZ", dense=True),
    known(
        "mapbox-token",
        START_OF_WORD + r"sk\.eyJ1[\w-]{40,200}\.[\w-]{20,}" + END,
        "sk.eyJ",
        dense=True,
    ),
    known(
        "jwt",
        START_OF_WORD + r"(eyJ[\w-]{5,}+=*+)\.[\w-]{2,}+=*+(?:\.[\w-]*+=*+){0,3}",
        "eyJ",
        0,
        is_jwt,
    ),
    known(
        "authorization-header",
        r"(?i)\bbearer[ \t]{1,3}([\w.~+/-]{20,}+=*+)",
        "bearer",
        group=1,
        check=is_bearer,
    ),
    known(
        "authorization-header",
        r"(?i)\bauthorization[\"']?[ \t]{0,3}:[ \t]{0,3}[\"']?(?:token|api-?key|key|bot|ssws"
        r"|app|oauth"
        r"|zoho-oauthtoken|splunk|geniekey)[ \t]{1,3}(?:token=)?[\"']?([\w.~+/-]{20,}+=*+)",
        "authorization",
        group=1,
        check=is_bearer,
    ),
    known(
        "authorization-header",
        r"(?i)\bauthorization[\"']?[ \t]{0,3}:[ \t]{0,3}[\"']?basic[ \t]{1,3}([\w+/-]{8,}+=*+)",
        "authorization",
        group=1,
        check=is_basic,
    ),
    *MORE_PATTERNS,
)
