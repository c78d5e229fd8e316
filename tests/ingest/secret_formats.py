"""How the secrets of services are made, written from what their makers say and not from our table.

Each row is a kind and the parts of a secret: a text stands for itself, a pair (alphabet, length)
for so many random characters of it.
"""

from __future__ import annotations

import random
import string

LOWER, UPPER, DIGITS = string.ascii_lowercase, string.ascii_uppercase, string.digits
HEX = "0123456789abcdef"
ALNUM = LOWER + UPPER + DIGITS
URLSAFE = ALNUM + "_-"
BASE64 = ALNUM + "+/"
BECH32 = "QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L"
BASE32 = UPPER + "234567"

Part = str | tuple[str, int]
UUID: tuple[Part, ...] = ((HEX, 8), "-", (HEX, 4), "-", (HEX, 4), "-", (HEX, 4), "-", (HEX, 12))

FORMATS: list[tuple[str, tuple[Part, ...]]] = [
    ("anaphora-token", ("anaphora_", (HEX, 64))),
    ("anaphora-token", ("anaphora_access_", (HEX, 16), "_", (HEX, 64))),
    ("anaphora-token", ("anaphora_refresh_", (HEX, 16), "_", (HEX, 64))),
    ("anaphora-key", ("anaphora-sync-1:eyJ", (URLSAFE, 300), "==")),
    ("groq-key", ("gsk_", (ALNUM, 52))),
    ("xai-key", ("xai-", (ALNUM, 80))),
    ("deepseek-key", ("sk-", (HEX, 32))),
    ("perplexity-key", ("pplx-", (ALNUM, 48))),
    ("replicate-token", ("r8_", (ALNUM, 37))),
    ("langsmith-key", ("lsv2_pt_", (HEX, 32), "_", (HEX, 10))),
    ("langsmith-key", ("lsv2_sk_", (HEX, 32), "_", (HEX, 10))),
    ("langfuse-key", ("sk-lf-", *UUID)),
    ("tavily-key", ("tvly-dev-", (ALNUM, 32))),
    ("tavily-key", ("tvly-", (ALNUM, 32))),
    ("nvidia-key", ("nvapi-", (URLSAFE, 64))),
    ("notion-token", ("ntn_", (ALNUM, 46))),
    ("notion-token", ("secret_", (ALNUM, 43))),
    ("linear-key", ("lin_api_", (ALNUM, 40))),
    ("linear-key", ("lin_oauth_", (HEX, 64))),
    ("figma-token", ("figd_", (URLSAFE, 40))),
    ("airtable-token", ("pat", (ALNUM, 14), ".", (HEX, 64))),
    ("atlassian-token", ("ATATT3xFfGF0", (URLSAFE, 172), "=", (UPPER + DIGITS, 8))),
    ("bitbucket-token", ("ATBB", (ALNUM, 32))),
    ("dropbox-token", ("sl.", (URLSAFE, 140))),
    ("dropbox-token", ("sl.u.", (URLSAFE, 1000))),
    ("hubspot-token", ("pat-na1-", *UUID)),
    ("hubspot-token", ("pat-eu1-", *UUID)),
    ("postman-key", ("PMAK-", (HEX, 24), "-", (HEX, 34))),
    ("1password-token", ("ops_eyJ", (ALNUM, 300))),
    ("databricks-token", ("dapi", (HEX, 32))),
    ("databricks-token", ("dapi", (HEX, 32), "-2")),
    ("grafana-token", ("glsa_", (ALNUM, 32), "_", (HEX, 8))),
    ("grafana-token", ("glc_eyJ", (ALNUM, 100), "==")),
    ("grafana-token", ("eyJrIjoi", (ALNUM, 80), "==")),
    ("doppler-token", ("dp.pt.", (ALNUM, 43))),
    ("doppler-token", ("dp.st.prd.", (ALNUM, 43))),
    ("planetscale-token", ("pscale_tkn_", (URLSAFE, 43))),
    ("planetscale-token", ("pscale_pw_", (URLSAFE, 43))),
    ("supabase-key", ("sbp_", (HEX, 40))),
    ("supabase-key", ("sb_secret_", (URLSAFE, 31))),
    ("docker-token", ("dckr_pat_", (URLSAFE, 27))),
    ("docker-token", ("dckr_oat_", (URLSAFE, 32))),
    ("terraform-token", ((ALNUM, 14), ".atlasv1.", (ALNUM, 67))),
    ("fly-token", ("fo1_", (URLSAFE, 43))),
    ("fly-token", ("fm2_lJPE", (BASE64, 400))),
    ("newrelic-key", ("NRAK-", (UPPER + DIGITS, 27))),
    ("newrelic-key", ("NRJS-", (HEX, 19))),
    ("newrelic-key", ((HEX, 36), "NRAL")),
    ("sentry-token", ("sntrys_eyJ", (ALNUM, 120), "=_", (ALNUM, 43))),
    ("sentry-token", ("sntryu_", (HEX, 64))),
    ("rubygems-key", ("rubygems_", (HEX, 48))),
    ("crates-token", ("cio", (ALNUM, 32))),
    ("nuget-key", ("oy2", (LOWER + DIGITS, 43))),
    ("age-key", ("AGE-SECRET-KEY-1", (BECH32, 58))),
    ("azure-ad-secret", ((ALNUM, 3), "8Q~", (ALNUM + "_.", 34))),
    ("tailscale-key", ("tskey-auth-k", (ALNUM, 11), "CNTRL-", (ALNUM, 32))),
    ("tailscale-key", ("tskey-api-k", (ALNUM, 11), "CNTRL-", (ALNUM, 32))),
    ("google-key", ("1//0g", (URLSAFE, 98), "x")),
    ("aws-session-token", ("IQoJb3JpZ2luX2VjE1", (BASE64, 700), "a==")),
    ("aws-session-token", ("FwoGZXIvYXdzE1", (BASE64, 300), "a=")),
    ("asana-token", ("2/1201234567890123/1201234567890456:", (HEX, 32))),
    ("pulumi-token", ("pul-", (HEX, 40))),
    ("netlify-token", ("nfp_", (ALNUM, 40))),
    ("sonar-token", ("sqp_", (HEX, 40))),
    ("dynatrace-token", ("dt0c01.", (BASE32, 24), ".", (BASE32, 64))),
    ("brevo-key", ("xkeysib-", (HEX, 64), "-", (ALNUM, 16))),
    ("easypost-key", ("EZAK", (ALNUM, 54))),
    ("shippo-token", ("shippo_live_", (HEX, 40))),
    ("plaid-token", ("access-production-", *UUID)),
    ("buildkite-token", ("bkua_", (HEX, 40))),
    ("circleci-token", ("CCIPAT_", (ALNUM, 22), "_", (HEX, 40))),
    ("contentful-token", ("CFPAT-", (URLSAFE, 42), "a")),
    ("sourcegraph-token", ("sgp_", (HEX, 40))),
    ("github-token", ("ghp_", (ALNUM, 36))),
    ("github-token", ("github_pat_", (ALNUM, 22), "_", (ALNUM, 59))),
    ("gitlab-token", ("glpat-", (ALNUM, 20))),
    ("npm-token", ("npm_", (ALNUM, 36))),
    ("openai-key", ("sk-proj-", (URLSAFE, 73), "T3BlbkFJ", (URLSAFE, 74))),
    ("anthropic-key", ("sk-ant-api03-", (URLSAFE, 93), "AA")),
    ("stripe-key", ("sk_live_", (ALNUM, 24))),
    ("huggingface-token", ("hf_", (LOWER + UPPER, 34))),
    ("digitalocean-token", ("dop_v1_", (HEX, 64))),
    ("google-key", ("AIza", (URLSAFE, 35))),
    ("aws-access-key", ("AKIA", (BASE32, 16))),
    ("cloudflare-token", ("cfk_", (ALNUM, 40), (HEX, 8))),
    ("cloudflare-token", ("cfut_", (ALNUM, 40), (HEX, 8))),
    ("gitlab-token", ("glpat-", (URLSAFE, 27), ".01.", (LOWER + DIGITS, 9))),
    ("slack-token", ("xoxc-", (DIGITS, 12), "-", (DIGITS, 12), "-", (HEX, 64))),
    ("slack-token", ("xoxd-", (ALNUM, 100), "%3D")),
    ("llamacloud-key", ("llx-", (ALNUM, 48))),
    ("logfire-token", ("pylf_v1_us_", (ALNUM, 44))),
    ("together-key", ("tgp_v1_", (URLSAFE, 43))),
    ("cursor-key", ("crsr_", (HEX, 64))),
    ("neon-key", ("napi_", (LOWER + DIGITS, 64))),
    ("honeycomb-key", ("hcaik_", (LOWER + DIGITS, 58))),
    ("adobe-secret", ("p8e-", (ALNUM, 32))),
    ("clickhouse-key", ("4b1d", (ALNUM, 38))),
    ("duffel-token", ("duffel_live_", (URLSAFE, 43))),
    ("openshift-token", ("sha256~", (URLSAFE, 43))),
    ("readme-key", ("rdme_", (LOWER + DIGITS, 70))),
    ("scalingo-token", ("tk-us-", (URLSAFE, 48))),
    ("settlemint-token", ("sm_pat_", (ALNUM, 16))),
    ("snyk-token", ("snyk_uat.", (HEX, 8), ".", (ALNUM, 60))),
    ("axiom-token", ("xaat-", *UUID)),
    ("deno-token", ("ddp_", (ALNUM, 36))),
    ("azure-key", ((ALNUM, 76), "AZDO", (ALNUM, 4))),
    ("azure-key", ((ALNUM, 42), "AzSeA", (ALNUM, 5))),
    ("wakatime-key", ("waka_", *UUID)),
    ("zuplo-key", ("zpka_", (HEX, 32), "_", (HEX, 8))),
    ("aws-mws-key", ("amzn.mws.", *UUID)),
    ("wallet-key", ("nsec1", ("023456789acdefghjklmnpqrstuvwxyz", 58))),
    ("prefixed-token", ("zephyr_pat_", (ALNUM, 40))),
    ("prefixed-token", ("quokka_live_", (HEX, 32))),
]


def made(parts: tuple[Part, ...], seed: int) -> str:
    """A secret of these parts; the same seed gives the same one. It ends in no mark."""
    source = random.Random(seed)

    def drawn(part: Part) -> str:
        if isinstance(part, str):
            return part
        alphabet, length = part
        text = "".join(source.choice(alphabet) for _ in range(length - 1))
        mark_free = [one for one in alphabet if one.isalnum()]
        # Capitals, small letters and digits are in every long draw but for bad luck.
        return text + source.choice(mark_free)

    return "".join(map(drawn, parts))
