"""Editions of one document by its path: the versions and languages in which it is kept.

`versioned_docs/version-10.x/links.md` is `docs/links.md` as it was, `README-zh.md` is `README.md`
in another language. Only prose is kept so: `v1` and `v2` of code are two things.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

from anaphora.language.word_lists import words

_PROSE: Final = (".md", ".mdx", ".markdown", ".rst", ".txt", ".adoc", ".html")
_LANGUAGES: Final = words(
    "ar az bg bn br ca cn cs da de el en es et fa fi fil fr he hi hr hu id it ja jp ka kk ko kr lt "
    "lv ms nb nl no pl pt ro ru sk sl sr sv th tr tw uk ur uz vi zh"
)
_CODE: Final = rf"(?:{'|'.join(sorted(_LANGUAGES))})(?:[-_][a-z]{{2,4}})?"
_LANGUAGE_FOLDER = re.compile(_CODE)
_LANGUAGE_ENDING = re.compile(rf"[-_.]{_CODE}$")
# Numbers alone are chapters and years.
_VERSION_FOLDER = re.compile(
    r"(?:v|version[-_]?)\d+(?:\.(?:\d+|x))*|\d+(?:\.(?:\d+|x))+|latest|stable|next|current"
)
_VERSIONED = re.compile(r"versioned[-_](\w+)")
_TRANSLATED: Final = words("i18n l10n locales locale translations")


@lru_cache(maxsize=8_192)
def edition_of(path: str) -> str:
    """What the paths of all editions of a document have in common; "" for what is no prose."""
    *folders, name = path.lower().split("/")
    stem, dot, ending = name.rpartition(".")
    if not dot or f".{ending}" not in _PROSE:
        return ""
    common = []
    for folder in folders:
        if _VERSION_FOLDER.fullmatch(folder) or _LANGUAGE_FOLDER.fullmatch(folder):
            continue
        if folder in _TRANSLATED:
            continue
        version_match = _VERSIONED.fullmatch(folder)
        # Docusaurus keeps translations of `docs` in a folder of this name.
        plain = folder.removeprefix("docusaurus-plugin-content-")
        common.append(version_match[1] if version_match else plain)
    return "/".join((*common, f"{_LANGUAGE_ENDING.sub('', stem) or stem}.{ending}"))
