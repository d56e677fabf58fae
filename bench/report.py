"""The figures as tables and as a picture."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import cast

from bench.race import Result, difference, mean_of, typical


def print_all(results: Mapping[str, list[Result]], content: Mapping[str, object]) -> None:
    """Print every table."""
    machine = cast("dict[str, object]", content["machine"])
    versions = cast("dict[str, str]", machine["versions"])
    print(", ".join(f"{name} {number}" for name, number in versions.items()))
    print(
        f"Python {machine['python']}, {machine['processors']} processors, one thread, load at the "
        f"start {machine['load']:.1f}; microseconds of processor time per iteration, medians;"
    )
    print("differences to the mean of both hand-written loops of the same round, with quartiles")
    for case, found in results.items():
        print(f"\n{case}")
        by_hand, again, *others = found
        print(f"  {line(by_hand, by_hand)}\n  {line(again, by_hand)}")
        for result in others:
            print(f"  {line(result, mean_of(by_hand, again))}")
    print(f"\nempty mount point {content['empty point, ns']:8.1f} ns")
    for step in cast("list[dict[str, object]]", content["growth"]):
        print(f"{step['what']:12} {step['count']:>9}  {step['value']:9.2f} us  {step['note']}")
    imported = cast("dict[str, float]", content["import hookloop"])
    cpu, wall = imported["cpu"] * 1e3, imported["wall"] * 1e3
    print(f"import hookloop {cpu:8.1f} ms, wall time {wall:.1f}")
    first = cast("dict[str, dict[str, float]]", content["first iteration"])
    script, ours = first["script"], first["hookloop"]
    print(
        f"to the first iteration of the digits: script {script['cpu']:.2f} s, hookloop train "
        f"{ours['cpu']:.2f} s, {ours['cpu'] / script['cpu']:.2f}x; wall time "
        f"{script['wall']:.2f} s, {ours['wall']:.2f} s, {ours['wall'] / script['wall']:.2f}x"
    )


def line(result: Result, base: Result) -> str:
    """Return the line of one result."""
    if result.error or len(result.cpu) < 2:
        return f"{result.name:16} {result.error or 'did not run'}"
    low, middle, high = difference(result, base)
    _, wall, _ = difference(result, base, "wall")
    weights = "" if result.same_weights else "  OTHER WEIGHTS"
    return (
        f"{result.name:16} {typical(result):8.1f}  {middle:+8.2f} ({low:+.1f}, {high:+.1f})"
        f"  wall time {typical(result, 'wall'):8.1f} {wall:+8.1f}{weights}"
    )


def draw(results: Mapping[str, list[Result]], path: Path) -> None:
    """Draw how much each engine adds to the hand-written loop, one panel per case."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(1, len(results), figsize=(3.2 * len(results), 3.4), sharey=True)
    names = [result.name for result in next(iter(results.values()))][2:][::-1]
    for axis, (case, found) in zip(axes, results.items(), strict=True):
        by_name, base = {result.name: result for result in found}, mean_of(found[0], found[1])
        extras = [_extra(by_name[name], base) for name in names]
        colors = ["#1f6f8b" if name == "hookloop" else "#b8b8b8" for name in names]
        axis.barh(names, [extra or 0.0 for extra in extras], color=colors)
        widest = max([extra for extra in extras if extra is not None] + [1.0])
        for row, extra in enumerate(extras):
            text = "no hooks" if extra is None else f"{extra:+.0f}"
            axis.text(max(extra or 0.0, 0.0) + widest * 0.02, row, text, va="center", fontsize=8)
        axis.set_xlim(min(0.0, *(extra or 0.0 for extra in extras)), widest * 1.2)
        axis.set_title(case, fontsize=10)
        axis.axvline(0, color="black", linewidth=0.8)
        for side in ("top", "right"):
            axis.spines[side].set_visible(False)
    figure.supxlabel("microseconds per iteration more than the hand-written loop", fontsize=9)
    figure.tight_layout()
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=120)


def _extra(result: Result, base: Result) -> float | None:
    return None if result.error or len(result.cpu) < 2 else difference(result, base)[1]
