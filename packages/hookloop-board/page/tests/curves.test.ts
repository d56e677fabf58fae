import { describe, expect, test } from "vitest";
import type { Curve } from "../src/answers";
import { groupMetrics } from "../src/curves/groups";
import { logRange, logTicks } from "../src/curves/log";
import { alignTo, continued, countHidden, nearestPoint, overgrown, pointsFor, positive, unionOf } from "../src/curves/series";
import { smooth, weightAt } from "../src/curves/smoothing";

const curve = (x: number[], y: (number | null)[], more: Partial<Curve> = {}): Curve => ({ run: "r", metric: "m", reading: 1, count: x.length, total: x.length, x, y, ...more });

describe("smoothing", () => {
  test("has no pull towards zero at the beginning", () => {
    expect(smooth([5, 5, 5], 0.9).map((value) => value!.toFixed(6))).toEqual(["5.000000", "5.000000", "5.000000"]);
  });
  test("is the weighted mean of what came before", () => {
    const [, second] = smooth([1, 3], 0.5);
    expect(second).toBeCloseTo((1 * 0.25 + 3 * 0.5) / 0.75, 12);
  });
  test("leaves gaps and goes on behind them", () => {
    const result = smooth([1, null, 1, NaN], 0.9);
    expect([result[1], result[3]]).toEqual([null, null]);
    expect(result[2]).toBeCloseTo(1, 12);
  });
  test("does nothing without weight, and never reaches 1", () => {
    expect(smooth([1, 2, 4], weightAt(0))).toEqual([1, 2, 4]);
    expect(weightAt(100)).toBeLessThan(1);
  });
});

describe("continuing a curve", () => {
  test("adds only what is new", () => {
    const next = continued(curve([1, 2], [10, 20]), curve([2, 3, 4], [20, 30, null], { count: 4, nonfinite: [[4, "NaN"]] }));
    expect(next).toMatchObject({ x: [1, 2, 3, 4], y: [10, 20, 30, null], total: 4, nonfinite: [[4, "NaN"]] });
  });
  test("is the same curve when nothing is new", () => {
    const old = curve([1, 2], [10, 20]);
    expect(continued(old, curve([2], [20], { count: 2 }))).toBe(old);
  });
  test("single points behind buckets are their own lowest and highest", () => {
    const old = curve([5, 15], [1, 2], { count: 20, total: 20, min: [0, 1], max: [2, 3] });
    expect(continued(old, curve([21], [7], { count: 21 }))).toMatchObject({ total: 21, min: [0, 1, 7], max: [2, 3, 7] });
  });
  test("a down-sampled continuation means to load again", () => {
    expect(continued(curve([1], [1]), curve([5], [2], { total: 100, min: [1], max: [3] }))).toBeNull();
  });
  test("goes on with its moving average, and is loaded again for another one", () => {
    const old = curve([1, 2], [1, 3], { smooth: [1, 2], weight: 0.5 });
    expect(continued(old, curve([2, 3], [3, 5], { count: 3, smooth: [2, 4], weight: 0.5 }))).toMatchObject({ smooth: [1, 2, 4] });
    expect(continued(old, curve([2, 3], [3, 5], { count: 3, smooth: [2, 4], weight: 0.9 }))).toBeNull();
  });
  test("a file that was written again means to load again", () => {
    expect(continued(curve([1, 2], [1, 2]), curve([2, 3], [2, 3], { reading: 2, count: 3 }))).toBeNull();
  });
  test("points before the end, by a clock that was set back, mean to load again", () => {
    expect(continued(curve([1, 5], [1, 2]), curve([5], [2], { count: 3 }))).toBeNull();
    expect(continued(curve([1, 5], [1, 2]), curve([5, 6], [2, 3], { count: 4 }))).toBeNull();
  });
  test("a curve with too many points is to be down-sampled anew", () => {
    expect(overgrown(curve(new Array(1501).fill(0), []), 1000)).toBe(true);
    expect(overgrown(curve(new Array(1500).fill(0), []), 1000)).toBe(false);
  });
});

describe("a common axis", () => {
  test("holds every x once, in order", () => {
    expect(unionOf([curve([1, 3, 5], []), curve([2, 3], [])])).toEqual([1, 2, 3, 5]);
    expect(unionOf([curve([1, 2], []), curve([1], [])])).toEqual([1, 2]);
    expect(unionOf([])).toEqual([]);
  });
  test("tells a missing point from a gap", () => {
    expect(alignTo([1, 2, 3, 5], [1, 5], [7, null])).toEqual([7, undefined, undefined, null]);
  });
  test("of several values at one x the last counts", () => expect(alignTo([1, 2], [1, 1, 2], [5, 6, 7])).toEqual([6, 7]));
});

test("a log scale hides zero and below, and counts them", () => {
  expect(positive([1, 0, -1, null])).toEqual([1, null, null, null]);
  expect(countHidden(curve([1, 2, 3, 4], [1, 0, -1, null]))).toBe(2);
  expect(countHidden(curve([1, 2], [1, 2], { min: [-1, 1], max: [3, 3] }))).toBe(1);
});

describe("a log scale", () => {
  test("goes from digit to digit", () => {
    expect(logRange(0.034, 210)).toEqual([0.03, 300]);
    expect(logRange(5, 5)).toEqual([0.5, 50]);
    expect(logRange(null, null)).toEqual([1, 10]);
  });
  test("has few ticks, however many powers of ten there are", () => {
    expect(logTicks(0.03, 3)).toEqual([0.05, 0.1, 0.2, 0.5, 1, 2]);
    expect(logTicks(1e-4, 1)).toEqual([1e-4, 1e-3, 1e-2, 0.1, 1]);
    for (const [low, high] of [[1e-29, 1], [5e-324, 1e308], [1e-300, 1e-299]]) {
      const [min, max] = logRange(low!, high!);
      const ticks = logTicks(min, max);
      expect(ticks.length).toBeGreaterThan(0);
      expect(ticks.length).toBeLessThan(10);
    }
  });
});

test("the nearest point is found from either side", () => {
  expect([0, 14, 16, 99].map((x) => nearestPoint([10, 20, 30], x))).toEqual([0, 0, 1, 2]);
  expect(nearestPoint([], 1)).toBe(-1);
});

test("many runs get fewer points each", () => expect([1, 12, 40, 1000].map(pointsFor)).toEqual([1000, 1000, 300, 150]));

test("interval means and epoch means are separate groups", () => {
  const groups = groupMetrics(["lr", "val/accuracy", "train_epoch/loss", "val/loss", "train/iter_time", "train/loss", "gpu/memory"]);
  expect(groups.map((group) => group.name)).toEqual(["train", "train_epoch", "val", "gpu", "other"]);
  expect(groups[0]).toMatchObject({ about: "means over intervals", metrics: ["train/loss", "train/iter_time"] });
  expect(groups[2]!.metrics).toEqual(["val/loss", "val/accuracy"]);
});
