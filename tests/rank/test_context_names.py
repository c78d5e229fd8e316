"""Which files a focus names: paths, modules, frames of tracebacks."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anaphora.rank.context.names import PathNames

FILES = (
    "src/flask/app.py",
    "src/flask/config.py",
    "src/flask/json/__init__.py",
    "tests/test_config.py",
    "docs/config.rst",
    "web/app/frame.ts",
    "src/flask/sansio/app.py",
    "Makefile",
)


def named(text: str, kind: str = "path") -> set[str]:
    return {FILES[code] for code in PathNames(FILES).named([(text, kind, 1.0)])}


@pytest.mark.parametrize(
    ("text", "kind", "files"),
    [
        ("config.py", "path", {"src/flask/config.py"}),
        ("flask/config.py", "path", {"src/flask/config.py"}),
        ("SRC\\Flask\\Config.py", "path", {"src/flask/config.py"}),
        ("Makefile", "path", {"Makefile"}),
        ("app.py", "path", {"src/flask/app.py", "src/flask/sansio/app.py"}),
        ("sansio/app.py", "path", {"src/flask/sansio/app.py"}),
        ("/usr/lib/python3/site-packages/flask/app.py", "frame", {"src/flask/app.py"}),
        ("/usr/lib/python3/site-packages/pandas/core/frame.ts", "frame", set()),
        ("flask.config.Config.from_file", "dotted", {"src/flask/config.py"}),
        ("flask.json", "dotted", {"src/flask/json/__init__.py"}),
        ("os.path.join", "dotted", set()),
        ("nothing/of/ours.py", "path", set()),
        ("", "path", set()),
        ("...", "dotted", set()),
    ],
)
def test_names_find_their_files(text: str, kind: str, files: set[str]) -> None:
    """A name means the files that agree with it in whole components, and nothing else."""
    assert named(text, kind) == files


def test_the_last_frame_counts_most() -> None:
    """Of a traceback's frames in the project the last one is where it was raised."""
    found = PathNames(FILES).named(
        [
            ("/x/flask/app.py", "frame", 0.4),
            ("/x/flask/config.py", "frame", 0.4),
            ("/lib/os.py", "frame", 0.4),
        ]
    )
    assert found[1] == pytest.approx(0.4)
    assert 0.0 < found[0] < found[1]


def test_an_ambiguous_name_says_less() -> None:
    """A name that fits several files says less of each than one that fits one."""
    names = PathNames(FILES)
    both = names.named([("app.py", "path", 1.0)])
    assert set(both) == {0, 6}
    assert max(both.values()) < names.named([("config.py", "path", 1.0)])[1]


@settings(deadline=None)
@given(
    st.lists(
        st.tuples(
            st.text(max_size=30), st.sampled_from(["path", "dotted", "frame"]), st.floats(0.01, 1.0)
        ),
        max_size=8,
    )
)
def test_any_names_are_bounded(names: list[tuple[str, str, float]]) -> None:
    """Whatever is named, each file's share lies between 0 and the greatest weight given."""
    found = PathNames(FILES).named(names)
    most = max((weight for _, _, weight in names), default=0.0)
    assert all(0 <= code < len(FILES) and 0.0 < share <= most for code, share in found.items())
