"""Pictures of the curve from a thousand memories to a million, for light pages and for dark ones.

In: bench/results/curve.json. Out: docs/images/curve-*.svg and curve-*-dark.svg, one message each,
in words and numbers of those results. It measures nothing:

    python -m bench.scale.curve_pictures [--to DIR]
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from bench.scale.pictures import IMAGES, draw_as_told, milliseconds, plain_numbers, saved

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["draw"]


@dataclass(frozen=True, slots=True)
class _Theme:
    """The colours of a page: behind, of words, of lines, and of what is drawn, in order."""

    ending: str
    behind: str
    words: str
    lines: str
    drawn: tuple[str, ...]


_LIGHT: Final = _Theme("", "#ffffff", "#1f2937", "#e5e7eb", ("#1f6fb4", "#7fb2dd", "#d9730d"))
_DARK: Final = _Theme("-dark", "#0d1117", "#e6edf3", "#30363d", ("#58a6ff", "#2f5f96", "#f0883e"))

Sizes = Mapping[int, Mapping[str, float]]
Title = Callable[[float, float, int, int], str]


@dataclass(frozen=True, slots=True)
class _Picture:
    """Lines over the number of memories: (key, what it is). The title says the first one's ends."""

    name: str
    up: str
    lines: tuple[tuple[str, str], ...]
    title: Title


def _time(what: str) -> Title:
    return lambda first, last, least, most: (
        f"{what} {milliseconds(first)} at {least:,} memories, {milliseconds(last)} at {most:,}"
    )


def _size(what: str) -> Title:
    return lambda first, last, least, most: (
        f"{what} {first:,.0f} MB at {least:,} memories, {last:,.0f} MB at {most:,}"
    )


_PICTURES: Final = (
    _Picture(
        "question",
        "a question less its embedding, ms",
        (("question_p50_ms", "half are faster"), ("question_p99_ms", "99 of 100 are faster")),
        _time("A question takes"),
    ),
    _Picture(
        "write",
        "a single write over its embedding, ms",
        (
            ("write_p50_ms", "half are faster"),
            ("write_p99_ms", "99 of 100 are faster"),
            ("fsync_p50_ms", "what the disk takes for a page, half"),
        ),
        _time("A single write takes"),
    ),
    _Picture(
        "open",
        "opening and the first answer, ms",
        (("open_ms", "libraries and model loaded"),),
        _time("Opening a home takes"),
    ),
    _Picture(
        "forget",
        "milliseconds",
        (
            ("forget_ms", "forget one for good"),
            ("forget_first_ms", "the first of a process"),
            ("close_ms", "close after it"),
        ),
        _time("Forgetting one takes"),
    ),
    _Picture(
        "memory",
        "resident memory, MB",
        (("resident_mb", "after 200 questions"), ("without_home_mb", "before the home is opened")),
        _size("A process that recalls holds"),
    ),
    _Picture("disk", "on disk, MB", (("disk_mb", "database and index"),), _size("A home takes")),
)


def draw(results: Path, to: Path = IMAGES) -> list[Path]:
    """Make every picture that the results allow; the files."""
    place = results / "curve.json"
    value: Any = json.loads(place.read_text("utf-8")) if place.is_file() else {"sizes": {}}
    sizes = {int(size): found for size, found in value["sizes"].items()}
    return [
        _drawn(picture, sizes, theme, to / f"curve-{picture.name}{theme.ending}.svg")
        for picture in _PICTURES
        for theme in (_LIGHT, _DARK)
        if any(picture.lines[0][0] in found for found in sizes.values())
    ]


def _drawn(picture: _Picture, sizes: Sizes, theme: _Theme, place: Path) -> Path:
    drawn = [(name, _points(sizes, key)) for key, name in picture.lines]
    (least, first), (most, last) = drawn[0][1][0], drawn[0][1][-1]
    axes = _axes(theme)
    title = picture.title(first, last, least, most)
    axes.set_title(title, loc="left", fontsize=12, fontweight="bold", pad=12, color=theme.words)
    axes.set_xlabel("memories in the namespace", fontsize=11, color=theme.words)
    axes.set_ylabel(picture.up, fontsize=11, color=theme.words)
    for (name, points), color in zip(drawn, theme.drawn, strict=False):
        if points:
            axes.plot(*zip(*points, strict=True), color=color, marker="o", label=name)
    axes.set_xscale("log")
    axes.set_yscale("log")
    plain_numbers(axes, x=True, y=True)
    axes.legend(frameon=False, labelcolor=theme.words)
    return saved(place, theme.behind)


def _points(sizes: Sizes, key: str) -> Sequence[tuple[int, float]]:
    return [(size, sizes[size][key]) for size in sorted(sizes) if key in sizes[size]]


def _axes(theme: _Theme) -> Axes:
    import matplotlib as mpl

    mpl.use("svg")
    from matplotlib import pyplot

    _, axes = pyplot.subplots(figsize=(8.2, 4.6), layout="constrained")
    axes.set_facecolor(theme.behind)
    axes.grid(axis="y", color=theme.lines)
    axes.set_axisbelow(True)
    axes.tick_params(which="both", colors=theme.words, labelsize=10)
    for side, spine in axes.spines.items():
        spine.set_visible(side not in ("top", "right"))
        spine.set_color(theme.lines)
    return axes


if __name__ == "__main__":
    draw_as_told(draw, __doc__)
