"""Which files of a project hold keys and passwords by what they are called.

In: a path. Out: whether it is such a file, and whether the path itself gives a secret away. A
template without secrets (`.env.example`) is an ordinary file. It reads nothing: what an ordinary
file holds is `anaphora.ingest.secrets`' to take out.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

from anaphora.ingest.files.values import words
from anaphora.ingest.secrets.redacting import redact

_NAMES: Final = words(
    ".netrc _netrc .npmrc .pypirc .pgpass pgpass.conf .my.cnf .mylogin.cnf .git-credentials "
    ".dockercfg .dockerconfigjson .htpasswd .s3cfg .boto .passwd-s3fs .vault-token .vault_pass "
    ".ftpconfig .remote-sync.json sftp-config.json .secrets .credentials credentials "
    "credentials.csv rootkey.csv accesskeys.csv application_default_credentials.json "
    "credentials.tfrc.json .terraformrc keystore.properties key.properties kubeconfig "
    "id_rsa id_dsa id_ecdsa id_ed25519 id_ecdsa_sk id_ed25519_sk id_xmss"
)
_ENDINGS: Final = (
    ".pem", ".key", ".p8", ".p12", ".pk8", ".pkcs12", ".pfx", ".ppk", ".jks", ".bks", ".keystore",
    ".kdb", ".kdbx", ".ovpn", ".kubeconfig", ".tfstate", ".tfstate.backup",
)  # fmt: skip
"""Keys, stores of keys, and what is written with the secrets in it."""
_FORMS: Final = re.compile(
    r"\.env(?:rc|\..+)?|.+\.env|\.?(?:credentials?|secrets?)(?:\..+)?\.(?:json|ya?ml|toml|ini|cfg"
    r"|conf|properties|xml|db|txt)|client_secrets?.*\.json|service[_-]?account.*\.json"
    r"|.+_accesskeys\.csv|\..+_history"
)
_PLACES: Final = re.compile(
    r"(?:^|/)(?:\.(?:ssh|gnupg|aws|azure)|\.config/(?:gcloud|gh)|\.docker/config\.json"
    r"|\.kube/config|\.m2/settings\.xml|\.(?:composer|codex)/auth\.json|\.vscode/sftp\.json"
    r"|\.(?:cargo|gem)/credentials[^/]*)(?:/|$)|^auth\.json$"
)
_TEMPLATE: Final = re.compile(
    r"(?:^|[._-])(?:examples?|samples?|templates?|tmpl|tpl|dist|defaults?|schema|skeleton)"
    r"(?:$|[._-])"
)
_JOINTS: Final = re.compile(r"([./:#])")


def is_secret_file(path: str) -> bool:
    """Whether a file (or folder) of a project holds secrets by its name or its place."""
    lowered = path.lower()
    name = lowered.rpartition("/")[2]
    if name.endswith(_ENDINGS) or _PLACES.search(lowered):
        return True
    return (name in _NAMES or _FORMS.fullmatch(name) is not None) and not _TEMPLATE.search(name)


_SHORT_PARTS: Final = re.compile(r"(?:[\w-]{0,15}[./])*[\w-]{0,15}")
_FEW_DIGITS: Final = 8


@lru_cache(maxsize=4_096)
def without_secret_names(path: str) -> str:
    """A path with its secrets taken out: the same path where it gives none away."""
    # Most names are no longer than the shortest token, and have fewer digits than any number.
    digits = sum(character.isdigit() for character in path)
    if digits <= _FEW_DIGITS and _SHORT_PARTS.fullmatch(path):
        return path
    whole = redact(path).text
    # A secret that is a part of a path has a dot or a slash where words have a space.
    return "".join(redact(part).text for part in _JOINTS.split(whole))
