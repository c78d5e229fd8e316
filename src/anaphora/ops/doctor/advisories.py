"""Published vulnerabilities of the libraries that Anaphora uses: which versions have them.

`advisories.json` has a row for each: package, id, the first version that is affected and the first
that no longer is. Each is described at https://nvd.nist.gov/vuln/detail/ID. The list comes with the
package and nothing is looked up, so it knows what was published when this version was made.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Final

from anaphora.values.conversations import Check

_FILE: Final = Path(__file__).with_suffix(".json")
_VERSION: Final = re.compile(
    r"v?(?:\d+!)?(\d{1,9}(?:\.\d{1,9})*)([-_.]?(?:alpha|beta|preview|pre|rc|dev|a|b|c)\d*)?", re.I
)
_LONGEST: Final = 6


@dataclass(frozen=True, slots=True)
class Advisory:
    """A vulnerability of a package: in versions from `first` on, up to but without `fixed`."""

    package: str
    id: str
    first: str
    fixed: str


@cache
def advisories() -> tuple[Advisory, ...]:
    """All that were known when this version was released."""
    return tuple(Advisory(*row) for row in json.loads(_FILE.read_text("utf-8")))


def library_check(packages: Iterable[str] | None = None) -> Check:
    """Whether an installed library has a published vulnerability."""
    packages_listed = {advisory.package for advisory in advisories()}
    count, affected_lines = 0, []
    for package in sorted(packages_listed if packages is None else packages_listed & set(packages)):
        try:
            installed_version = version(package)
        except PackageNotFoundError:
            continue
        count += 1
        installed = _order(installed_version)
        holes = [
            advisory
            for advisory in advisories()
            if advisory.package == package
            and _order(advisory.first) <= installed < _order(advisory.fixed)
        ]
        if holes:
            fixed_version = max((advisory.fixed for advisory in holes), key=_order)
            ids = ", ".join(advisory.id for advisory in holes)
            affected_lines.append(
                f"{package} {installed_version} has {ids}: install {fixed_version} or later"
            )
    if affected_lines:
        return Check("libraries", ok=False, detail="; ".join(affected_lines))
    detail = f"{count} looked up in {len(advisories())} known vulnerabilities; none applies"
    return Check("libraries", ok=True, detail=detail)


def _order(written: str) -> tuple[tuple[int, ...], bool]:
    """The sort key of a version: its numbers, and whether it is final (PEP 440, in part).

    An invalid version counts as the oldest: it is reported rather than ignored.
    """
    parts = _VERSION.match(written.strip())
    if parts is None:
        return (0,) * _LONGEST, True
    numbers = tuple(int(number) for number in parts[1].split("."))
    return (*numbers, *(0,) * (_LONGEST - len(numbers))), parts[2] is None
