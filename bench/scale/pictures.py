"""Pictures of what scale costs: `python -m bench.scale.pictures [--to DIR]`.

In: bench/results/scale.json, scale_namespaces.json and rest_load.json. Out:
docs/images/scale-*.svg, one message each, in words and numbers of those results. It measures
nothing; where a result is not there, its picture is not made.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from bench.figures import RESULTS

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["IMAGES", "draw", "milliseconds", "plain_numbers", "saved"]

IMAGES: Final = Path(__file__).parents[2] / "docs" / "images"
_BLUE, _ORANGE, _GREEN, _GREY = "#1f6fb4", "#d9730d", "#2e8b57", "#6b7280"
_WAYS: Final = (("exact", "exact scan in memory", _BLUE), ("ann", "LanceDB on disk", _ORANGE))

Value = Mapping[str, Any]


def draw(results: Path, to: Path) -> list[Path]:
    """Make every picture that the results allow; the files."""
    one, many = _read(results / "scale.json"), _read(results / "scale_namespaces.json")
    made: list[Path] = []
    if one.get("filling"):
        made.append(_filling(one, to))
    if one.get("sizes"):
        made += [_recall(one, to), _memory(one, to), _disk(one, to)]
        if any("second_forget_ms" in at.get("exact", {}) for at in one["sizes"].values()):
            made.append(_writes(one, to))
    if many.get("ways"):
        made.append(_namespaces(many, to))
    server = _read(results / "rest_load.json")
    if server.get("simulation"):
        made.append(_server(server["simulation"], to))
    return made


def _read(place: Path) -> Value:
    found: Value = json.loads(place.read_text("utf-8")) if place.is_file() else {}
    return found


def _filling(value: Value, to: Path) -> Path:
    done = [one for one in value["filling"] if one["added"] >= 1_000 and not one["bulk"]]
    rates = [one["added"] / one["seconds"] for one in done]
    rows = [one["rows"] for one in done]
    title = (
        f"{rates[0]:,.0f} memories are written a second at first, {rates[-1]:,.0f} at {rows[-1]:,}"
    )
    axes = _axes(title, "memories in the namespace", "memories written per second")
    axes.plot(rows, rates, color=_BLUE, linewidth=2, marker="o", markersize=3)
    axes.set_ylim(bottom=0)
    axes.set_xlim(left=0)
    plain_numbers(axes, x=True, y=True)
    return saved(to / "scale-filling.svg")


def _recall(value: Value, to: Path) -> Path:
    by = _by_way(value, "recall_p50_ms")
    least, most = by["exact"][0], by["exact"][-1]
    title = (
        f"The exact scan answers in {milliseconds(least[1])} at {least[0]:,} memories, "
        f"in {milliseconds(most[1])} at {most[0]:,}"
    )
    axes = _axes(title, "memories in the namespace", "one recall less its embedding, ms")
    for way, name, color in _WAYS:
        for key, words, line in (
            ("recall_p50_ms", "half", "-"),
            ("recall_p99_ms", "99 of 100", ":"),
        ):
            points = _by_way(value, key).get(way, [])
            if points:
                label = f"{name}: {words} are faster"
                axes.plot(*zip(*points, strict=True), line, color=color, marker="o", label=label)
    axes.set_xscale("log")
    axes.set_yscale("log")
    plain_numbers(axes, x=True, y=True)
    axes.legend(frameon=False)
    return saved(to / "scale-recall.svg")


def _memory(value: Value, to: Path) -> Path:
    points = _by_way(value, "resident_mb")
    size, most = points["exact"][-1]
    title = f"A process that recalls from {size:,} memories holds {most:,.0f} MB"
    if points.get("ann"):
        title += f", with LanceDB {points['ann'][-1][1]:,.0f} MB"
    axes = _axes(title, "memories in the namespace", "resident memory, MB")
    for way, name, color in _WAYS:
        if points.get(way):
            axes.plot(*zip(*points[way], strict=True), color=color, marker="o", label=name)
    axes.set_xscale("log")
    axes.set_ylim(bottom=0)
    plain_numbers(axes, x=True, y=True)
    axes.legend(frameon=False)
    return saved(to / "scale-memory.svg")


def _disk(value: Value, to: Path) -> Path:
    sizes = sorted(map(int, value["sizes"]))
    parts = (
        ("truth", "truth: texts and vectors", _BLUE),
        ("words", "index of words", _GREEN),
        ("ann", "index of vectors (LanceDB)", _ORANGE),
    )
    disks = [value["sizes"][str(size)]["disk"] for size in sizes]
    each = 1e6 * sum(disks[-1].values()) / sizes[-1]
    title = f"A memory takes {each / 1000:,.1f} kB of disk at {sizes[-1]:,}"
    axes = _axes(title, "memories in the namespace", "bytes of disk for each memory")
    bottom = [0.0] * len(sizes)
    for key, name, color in parts:
        heights = [1e6 * disk.get(key, 0.0) / size for disk, size in zip(disks, sizes, strict=True)]
        axes.bar([f"{size:,}" for size in sizes], heights, 0.6, bottom, color=color, label=name)
        bottom = [a + b for a, b in zip(bottom, heights, strict=True)]
    axes.set_ylim(top=1.3 * max(bottom))
    plain_numbers(axes, x=False, y=True)
    axes.legend(frameon=False, loc="upper left", ncols=3, fontsize=9)
    return saved(to / "scale-disk.svg")


def _writes(value: Value, to: Path) -> Path:
    keys = (
        ("remember_p50_ms", "remember one, less its embedding", _BLUE),
        ("recall_after_write_p50_ms", "the recall after it", _GREEN),
        ("second_forget_ms", "forget one for good, right after another", _ORANGE),
    )
    size, cost = _by_way(value, "second_forget_ms")["exact"][-1]
    title = f"At {size:,} memories forgetting one for good takes up to {milliseconds(cost)}"
    axes = _axes(title, "memories in the namespace", "milliseconds")
    for key, name, color in keys:
        points = _by_way(value, key)["exact"]
        axes.plot(*zip(*points, strict=True), color=color, marker="o", label=name)
    axes.set_xscale("log")
    axes.set_yscale("log")
    plain_numbers(axes, x=True, y=True)
    axes.legend(frameon=False)
    return saved(to / "scale-writes.svg")


def _namespaces(value: Value, to: Path) -> Path:
    ways = value["ways"]
    first = next(iter(ways.values()))
    grown = first["held"][-1]["resident_mb"] - first["held"][0]["resident_mb"]
    title = (
        f"{first['held'][-1]['recalled']:,} recalls, each in one of {first['count']:,} namespaces, "
        f"add {grown:,.0f} MB"
    )
    axes = _axes(title, "recalls, each in a namespace of chance", "resident memory, MB")
    for (way, one), color in zip(ways.items(), (_BLUE, _ORANGE), strict=False):
        held = one["held"]
        name = "truth in files" if way == "files" else "truth on PostgreSQL"
        axes.plot(
            [h["recalled"] for h in held], [h["resident_mb"] for h in held], color=color, label=name
        )
    axes.set_ylim(bottom=0)
    axes.set_xlim(left=0)
    plain_numbers(axes, x=True, y=True)
    axes.legend(frameon=False)
    return saved(to / "scale-namespaces.svg")


def _server(value: Value, to: Path) -> Path:
    many = [one for one in value["curve"] if one["connections"] == 16 * one["cores"]]
    few = [one for one in value["curve"] if one["connections"] == 16]
    seen = [
        one
        for one in value["checked"]
        if one["connections"] == 16 and one["cores"] == one["processes"]
    ]
    title = (
        f"By simulation a process a core gives {many[-1]['rate']:,.0f} answers a second on "
        f"{many[-1]['cores']} cores"
    )
    axes = _axes(title, "cores, and processes of the server", "answers a second")
    for curve, color, name in (
        (many, _BLUE, "simulated, 16 connections a core"),
        (few, _GREEN, "simulated, 16 connections"),
    ):
        axes.plot([o["cores"] for o in curve], [o["rate"] for o in curve], color=color, label=name)
    axes.plot(
        [one["processes"] for one in seen],
        [one["measured"]["rate"] for one in seen],
        color=_ORANGE, linestyle="", marker="o", label="measured, on two cores beside its client",
    )  # fmt: skip
    axes.set_ylim(bottom=0)
    plain_numbers(axes, x=True, y=True)
    axes.legend(frameon=False)
    return saved(to / "scale-server.svg")


def _by_way(value: Value, key: str) -> dict[str, list[tuple[int, float]]]:
    found: dict[str, list[tuple[int, float]]] = {"exact": [], "ann": []}
    for size in sorted(map(int, value["sizes"])):
        for way, points in found.items():
            measured = value["sizes"][str(size)].get(way, {}).get(key)
            if measured is not None:
                points.append((size, measured))
    return found


def _axes(title: str, across: str, up: str) -> Axes:
    import matplotlib as mpl

    mpl.use("svg")
    from matplotlib import pyplot

    _, axes = pyplot.subplots(figsize=(8.2, 4.6), layout="constrained")
    axes.set_title(title, loc="left", fontsize=12, fontweight="bold", pad=12, wrap=True)
    axes.set_xlabel(across, fontsize=11)
    axes.set_ylabel(up, fontsize=11)
    axes.grid(axis="y", color="#e5e7eb")
    axes.set_axisbelow(True)
    axes.tick_params(colors=_GREY, labelsize=10)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    return axes


def plain_numbers(axes: Axes, *, x: bool, y: bool) -> None:
    """Numbers as people write them, on both kinds of axes."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    form = FuncFormatter(lambda number, _: f"{number:,.0f}" if number >= 1 else f"{number:g}")
    for axis, wanted in ((axes.xaxis, x), (axes.yaxis, y)):
        if wanted:
            axis.set_major_formatter(form)
            axis.set_minor_formatter(NullFormatter())
            if axis is axes.yaxis and axes.get_yscale() == "log":
                axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))


def saved(place: Path, behind: str = "white") -> Path:
    """Write the picture that was drawn, before this colour; its file."""
    import matplotlib as mpl
    from matplotlib import pyplot

    place.parent.mkdir(parents=True, exist_ok=True)
    # Without these two the same results would give another file each time.
    with mpl.rc_context({"svg.hashsalt": "anaphora"}):
        pyplot.savefig(place, metadata={"Date": None}, facecolor=behind)
    pyplot.close("all")
    return place


def milliseconds(value: float) -> str:
    """A time as people say it."""
    if value >= 10_000:
        return f"{value / 1000:,.0f} s"
    return f"{value / 1000:,.1f} s" if value >= 1_000 else f"{value:,.1f} ms"


def draw_as_told(draw: Callable[[Path, Path], Iterable[Path]], about: str | None) -> None:
    """Read the arguments of a program that draws pictures of results, and draw."""
    parser = argparse.ArgumentParser(description=(about or "").splitlines()[0])
    parser.add_argument("--to", type=Path, default=IMAGES)
    for place in draw(RESULTS, parser.parse_args().to):
        print(place)


if __name__ == "__main__":
    draw_as_told(draw, __doc__)
