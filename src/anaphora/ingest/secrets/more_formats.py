"""More rows of the table of formats: less common services, and keys of the large clouds."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from anaphora.ingest.secrets.shapes import (
    END,
    START,
    START_OF_WORD,
    UUID,
    SecretPattern,
    has_digits,
    has_prefix,
    is_mixed,
    is_random,
)
from anaphora.ingest.secrets.shapes import known as _known

__all__ = ["MORE_PATTERNS"]


def _prefixed(
    kind: str,
    body: str,
    hint: str,
    check: Callable[[re.Match[str]], bool] | None = None,
    *,
    dense: bool = True,
) -> SecretPattern:
    return _known(kind, START_OF_WORD + body + END, hint, 0, check, dense=dense)


MORE_PATTERNS: Final[tuple[SecretPattern, ...]] = (
    # Models and what they are served, searched and watched with.
    _prefixed("llamacloud-key", r"llx-[A-Za-z0-9]{40,60}", "llx-"),
    _prefixed("logfire-token", r"pylf_v\d_[a-z]{2,8}_[A-Za-z0-9]{30,60}", "pylf_v"),
    _prefixed("together-key", r"tgp_v1_[\w-]{40,50}", "tgp_v1_"),
    _prefixed("browserbase-key", r"bb_(?:live|test)_[\w-]{20,64}", "bb_"),
    _prefixed("apify-token", r"apify_(?:api|proxy)_[A-Za-z0-9]{30,50}", "apify_"),
    _prefixed("cursor-key", r"crsr_[0-9a-f]{64}", "crsr_"),
    _prefixed("cursor-key", r"key_[0-9a-f]{64}", "key_"),
    _prefixed("wandb-key", r"wandb_v1_[\w-]{40,120}", "wandb_v1_"),
    _prefixed("anyscale-key", r"esecret_[A-Za-z0-9]{20,64}", "esecret_"),
    _prefixed("anyscale-key", r"aph0_[A-Za-z0-9+/_-]{20,120}", "aph0_"),
    _prefixed("runpod-key", r"rpa_[A-Za-z0-9]{40,60}", "rpa_"),
    _prefixed("mem0-key", r"m0-[A-Za-z0-9]{36,48}", "m0-", is_mixed),
    _prefixed("helicone-key", r"[sp]k-helicone-[a-z0-9-]{24,64}", "-helicone-"),
    _prefixed("braintrust-key", r"bt-st-[A-Za-z0-9]{40,64}", "bt-st-"),
    _prefixed("brave-key", r"BSA[\w-]{27,29}", "BSA", is_mixed),
    # Other makers use the prefix that began with Stripe's and OpenAI's keys.
    _prefixed("openai-key", r"sess-[A-Za-z0-9]{40}", "sess-"),
    _prefixed("secret-key", r"sk-(?:[a-z]{2,12}-)?[A-Za-z0-9]{24,64}", "sk-", is_mixed),
    _prefixed("secret-key", r"sk-(?=[a-z]*(?:\d[a-z]*){4})[a-z0-9]{40,64}", "sk-"),
    # The large clouds.
    _prefixed("aws-mws-key", r"amzn\.mws\." + UUID, "amzn.mws."),
    _prefixed("aws-appsync-key", r"da2-[a-z0-9]{26}", "da2-"),
    _prefixed("google-key", r"GOOG1?[A-Z0-9]{20,64}", "GOOG", has_digits),
    _prefixed("google-key", r"AAAA[\w-]{7}:APA91b[\w-]{100,180}", ":APA91b"),
    # Microsoft marks its keys in the middle, and ends them in a checksum.
    _prefixed("azure-key", r"[A-Za-z0-9]{76}AZDO[A-Za-z0-9]{4}", "AZDO"),
    _prefixed("azure-key", r"[A-Za-z0-9]{40,60}JQQJ9[9D][A-Za-z0-9]{20,30}", "JQQJ9"),
    _known("azure-key", r"[\w-]{44}AzFu[\w-]{5}[AQgw]==", "AzFu", dense=True),
    _prefixed("azure-key", r"[A-Za-z0-9]{42}AzSe[A-D][A-Za-z0-9]{5}", "AzSe"),
    *(
        _known(
            "azure-key", rf"[A-Za-z0-9+/]{{76}}{re.escape(mark)}[\w+/]{{5,6}}==", mark, dense=True
        )
        for mark in ("ACDb", "+ASt", "+ABa", "+AMC")
    ),
    _known("azure-key", r"[A-Za-z0-9+/]{42}\+ACR[A-D][A-Za-z0-9+/]{5}" + END, "+ACR", dense=True),
    *(
        _known("azure-key", rf"[\w+/]{{33}}{re.escape(mark)}[A-P][\w+/]{{5}}=", mark, dense=True)
        for mark in ("AIoT", "+ASb", "+AEh", "+ARm", "AzCa")
    ),
    _known("azure-storage-key", r"[?&]sig=([\w%-]{40,90})", "sig=", 1, dense=True),
    _known(
        "teams-webhook",
        r"webhook\.office\.com/webhookb2/([0-9a-f-]{36}@[0-9a-f-]{36}/IncomingWebhook/\w{32}/"
        r"[0-9a-f-]{36}(?:/[\w-]{1,80})?)",
        "IncomingWebhook",
        1,
    ),
    _prefixed("yandex-key", r"AQVN[\w-]{35,38}", "AQVN"),
    _prefixed("yandex-key", r"t1\.[\w-]{20,400}={0,2}\.[\w-]{86}={0,2}", "t1."),
    _prefixed("scaleway-key", r"SCW[A-Z0-9]{17}", "SCW", has_digits),
    _prefixed("exoscale-key", r"EXO[0-9a-f]{24}", "EXO"),
    _prefixed("upcloud-token", r"ucat_[A-Z0-9]{26}", "ucat_"),
    _prefixed("aiven-token", r"AVNS_[\w-]{16,40}", "AVNS_"),
    _prefixed("openshift-token", r"sha256~[\w-]{43}", "sha256~"),
    _prefixed("scalingo-token", r"tk-us-[\w-]{48}", "tk-us-"),
    # Databases.
    _prefixed("neon-key", r"napi_[a-z0-9]{40,80}", "napi_"),
    _prefixed("neon-key", r"npg_[A-Za-z0-9]{10,24}", "npg_", is_mixed, dense=False),
    _prefixed("mongodb-key", r"mdb_sa_sk_[\w-]{32,64}", "mdb_sa_"),
    _prefixed("clickhouse-key", r"4b1d[A-Za-z0-9]{38}", "4b1d", is_mixed),
    _prefixed("elastic-key", r"essu_[A-Za-z0-9+/_-]{40,200}", "essu_"),
    _prefixed("convex-key", r"(?:prod|dev|preview|project):[\w:-]{3,60}\|[\w+/=]{40,400}", "|"),
    _prefixed("dbt-token", r"dbt[cu]_[\w-]{40,80}", "dbt"),
    # What is built, deployed and watched.
    _prefixed("honeycomb-key", r"hc[a-z]{3}_[0-9a-z]{50,64}", "hc"),
    _prefixed("axiom-token", r"xa[aip]t-" + UUID, "xa"),
    _prefixed("rootly-token", r"rootly_[0-9a-f]{64}", "rootly_"),
    _prefixed("snyk-token", r"snyk_[a-z]{3}\.[0-9a-f]{8}\.[\w-]{20,200}", "snyk_"),
    _prefixed("socket-token", r"sktsec_[\w-]{32,80}", "sktsec_"),
    _prefixed("infracost-key", r"ico-[A-Za-z0-9]{32}", "ico-", is_mixed),
    *(_prefixed("launchdarkly-key", mark + UUID, mark) for mark in ("sdk-", "api-", "mob-")),
    _prefixed("octopus-key", r"API-[A-Z0-9]{26}", "API-", has_digits),
    _prefixed(
        "jetbrains-token", r"perm[:-][\w+/=-]{8,100}\.[\w+/=-]{4,100}\.[\w+/=-]{20,100}", "perm"
    ),
    _prefixed("deno-token", r"dd[opw]_[A-Za-z0-9]{36}", "dd"),
    _prefixed("valtown-token", r"vtwn_[A-Za-z0-9]{27}", "vtwn_"),
    _prefixed("zuplo-key", r"zpka_[0-9a-f]{32}_[0-9a-f]{8}", "zpka_"),
    _prefixed("trigger-key", r"tr_(?:dev|prod|stg|preview|pat)_[A-Za-z0-9]{20,64}", "tr_"),
    _prefixed("inngest-key", r"signkey-[a-z]{3,10}-[0-9a-f]{32,64}", "signkey-"),
    _prefixed("infisical-token", r"st\.[0-9a-f]{24}\.[0-9a-f]{32}\.[0-9a-f]{32}", "st."),
    _prefixed(
        "bitwarden-token", r"0\." + UUID + r"\.[A-Za-z0-9]{30}:[A-Za-z0-9+/]{22}={0,2}", "0."
    ),
    _prefixed("unkey-key", r"unkey_[A-Za-z0-9]{20,64}", "unkey_"),
    _prefixed("gitlab-token", r"(?:glffct|glwt)-[\w-]{20,60}", "gl"),
    _known("gitlab-token", r"_gitlab_session=([0-9a-f]{32})", "_gitlab_session", 1, dense=True),
    _prefixed("artifactory-token", r"cmVmd[A-Za-z0-9]{59}", "cmVmd"),
    _known("vault-token", START + r"s\.[A-Za-z0-9]{24}" + END, "s.", 0, is_mixed, dense=True),
    _prefixed("defined-key", r"dnkey-[A-Za-z0-9=_-]{26}-[A-Za-z0-9=_-]{52}", "dnkey-"),
    _prefixed(
        "authress-key",
        r"(?:sc|ext|scauth|authress)_[a-z0-9]{5,30}\.[a-z0-9]{4,6}\.acc[_-][a-z0-9-]{10,32}"
        r"\.[\w+/=-]{30,120}",
        ".acc",
    ),
    # Where people work and talk.
    _prefixed("adafruit-key", r"aio_[A-Za-z0-9]{28}", "aio_"),
    _prefixed("adobe-secret", r"p8e-[A-Za-z0-9_-]{32}", "p8e-"),
    _prefixed("clickup-token", r"pk_\d{4,12}_[A-Z0-9]{32}", "pk_"),
    _prefixed("cal-key", r"cal_(?:live_|test_)?[0-9a-f]{32}", "cal_"),
    _prefixed("retool-token", r"retool_[0-9a-z]{20,64}", "retool_", has_digits),
    _prefixed("readme-key", r"rdme_[a-z0-9]{70}", "rdme_"),
    _prefixed("frameio-token", r"fio-u-[\w=-]{64}", "fio-u-"),
    _prefixed("wakatime-key", r"waka_(?:tok_|sec_|ref_)?" + UUID, "waka_"),
    _prefixed("onesignal-key", r"os_v2_(?:app|org)_[a-z0-9]{60,140}", "os_v2_"),
    _prefixed("pinterest-token", r"pin[acr]_[\w-]{40,120}", "pin"),
    _prefixed("persona-key", r"persona_[a-z]{4,12}_" + UUID, "persona_"),
    _prefixed("intra42-secret", r"s-s4t2(?:ud|af)-[0-9a-f]{64}", "s-s4t2"),
    _prefixed("settlemint-token", r"sm_[aps]at_[A-Za-z0-9]{16}", "sm_"),
    _prefixed("pushbullet-token", r"o\.[A-Za-z0-9]{32}", "o.", is_mixed),
    _prefixed("close-key", r"api_[A-Za-z0-9]{20,24}\.[A-Za-z0-9]{20,24}", "api_", is_mixed),
    _prefixed("salesforce-token", r"00D[A-Za-z0-9]{12,15}![\w.]{60,200}", "!"),
    _prefixed("zoho-token", r"1000\.[0-9a-f]{32}\.[0-9a-f]{32}", "1000."),
    _prefixed("twitch-token", r"oauth:[a-z0-9]{30}", "oauth:"),
    _prefixed("x-bearer-token", r"A{22}[A-Za-z0-9%]{60,120}", "A" * 22, is_mixed),
    _prefixed("meta-token", r"EAA[A-Za-z0-9]{60,400}", "EAA", is_mixed),
    _prefixed("square-token", r"EAAA[\w-]{56,64}", "EAAA", is_mixed),
    _prefixed("okta-token", r"00[\w-]{40}", "00", is_mixed),
    _prefixed("mailersend-token", r"mlsn\.[0-9a-f]{64}", "mlsn."),
    _prefixed("maxmind-key", r"[A-Za-z0-9]{6}_[A-Za-z0-9]{29}_mmk", "_mmk"),
    _prefixed("telnyx-key", r"KEY[0-9A-F]{32}_[A-Za-z0-9]{22}", "KEY"),
    _prefixed(
        "rapidapi-key",
        r"[a-zA-Z0-9]{10}msh[a-zA-Z0-9]{15}p1[a-zA-Z0-9]{6}jsn[a-zA-Z0-9]{12}",
        "jsn",
    ),
    _prefixed("huggingface-token", r"api_org_[A-Za-z]{34}", "api_org_"),
    # Money.
    _prefixed("flutterwave-key", r"FLW(?:SECK|PUBK)(?:_TEST)?-[0-9a-hX-]{12,40}", "FLW"),
    _prefixed("paddle-key", r"pdl_[a-z]{4}_apikey_[a-z0-9]{26}_\w{22}_\w{3}", "pdl_"),
    _prefixed("razorpay-key", r"rzp_(?:live|test)_[A-Za-z0-9]{14,24}", "rzp_"),
    _prefixed("adyen-key", r"AQE[a-z]hmf[A-Za-z0-9+/_=-]{60,400}", "AQE"),
    _prefixed("duffel-token", r"duffel_(?:test|live)_[\w=-]{43}", "duffel_"),
    _prefixed("polar-token", r"polar_[a-z]{2,4}_[A-Za-z0-9]{32,64}", "polar_"),
    _prefixed(
        "braintree-token", r"access_token\$[a-z]{7,10}\$[0-9a-z]{16}\$[0-9a-f]{32}", "access_token$"
    ),
    *(
        _known("payment-key", START + mark + body + END, mark, 0, check, dense=True)
        for mark in ("live_", "test_")
        for body, check in ((r"[A-Za-z0-9]{30,44}", is_random), (r"[0-9a-f]{35}", None))
    ),
    _prefixed("alchemy-key", r"alcht_[A-Za-z0-9]{30}", "alcht_"),
    # Wallets: the private half of an extended key, and of Nostr.
    _prefixed("wallet-key", r"[xyzt]prv[1-9A-HJ-NP-Za-km-z]{100,112}", "prv"),
    _prefixed("wallet-key", r"nsec1[02-9ac-hj-np-z]{58}", "nsec1"),
    # Unlisted services: most have their name in front of the random part. Ids of objects
    # ("msg_01…") are shorter, hashes name their algorithm, and publishable keys say so.
    _known("prefixed-token", r"[_-]([A-Za-z0-9]{20,160})" + END, "", 1, has_prefix, dense=True),
)
