"""Imports modules where only some distributions are installed, and prints why which one failed.

In, as JSON on standard input: `modules` to import; `roots`, the top-level packages that are there;
`shared`, the modules that are there of packages which several distributions share; `distributions`
by name. Python's own modules and `anaphora` are always there. Out: JSON, the error by module.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable, Sequence
from importlib import import_module
from importlib.machinery import BuiltinImporter, FrozenImporter, ModuleSpec, PathFinder
from importlib.metadata import Distribution, DistributionFinder
from types import ModuleType


class Installed:
    """Finds nothing but what is said to be installed."""

    def __init__(
        self, roots: Sequence[str], shared: Sequence[str], distributions: Sequence[str]
    ) -> None:
        self._roots = {*roots, *sys.stdlib_module_names, "anaphora"}
        self._shared = frozenset(shared)
        self._distributions = {*distributions, "anaphora"}

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """The module where it is installed, else None."""
        root = name.partition(".")[0]
        # How Python was built: its own, though its list of modules does not have it.
        build = root.startswith("_sysconfigdata_")
        if build or root in self._roots or name in self._shared:
            return PathFinder.find_spec(name, path, target)
        return None

    def find_distributions(self, context: DistributionFinder.Context) -> Iterable[Distribution]:
        """The metadata of what is installed."""
        for found in PathFinder.find_distributions(context):
            if re.sub(r"[-_.]+", "-", found.name).lower() in self._distributions:
                yield found


def main() -> None:
    """Import all that was asked for."""
    asked = json.load(sys.stdin)
    finder = Installed(asked["roots"], asked["shared"], asked["distributions"])
    sys.meta_path[:] = [BuiltinImporter, FrozenImporter, finder]
    failures = {}
    for module in asked["modules"]:
        try:
            import_module(module)
        except Exception as error:  # noqa: BLE001 - reported by module
            cause = f" ({error.__cause__})" if error.__cause__ else ""
            failures[module] = f"{type(error).__name__}: {error}{cause}"
    json.dump(failures, sys.stdout)


if __name__ == "__main__":
    main()
