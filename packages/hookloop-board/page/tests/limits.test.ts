import { describe, expect, test } from "vitest";
import type { Curve } from "../src/answers";
import { outside, robustLimits, type View, wantsLog } from "../src/curves/limits";

const curve = (y: (number | null)[], more: Partial<Curve> = {}): Curve => ({ run: "r", metric: "m", reading: 1, count: y.length, total: y.length, x: y.map((_, index) => index + 1), y, ...more });
const view = (more: Partial<View> = {}): View => ({ log: false, from: -Infinity, to: Infinity, better: "less", ...more });
const series = (length: number, make: (index: number) => number): number[] => Array.from({ length }, (_, index) => make(index));
const falling = series(100, (index) => 0.1 + 2.2 * Math.exp(-index / 15));

describe("limits leave out", () => {
  test("a run that diverged, and say how many of its points", () => {
    const diverged = falling.map((value, index) => (index < 97 ? value : 10 ** (index - 90)));
    const curves = [curve(falling, { run: "good" }), curve(diverged, { run: "bad" })];
    const limits = robustLimits(curves, view())!;
    expect(limits[1]).toBeCloseTo(2.3, 6);
    expect(outside(curves, limits, view())).toEqual([{ run: "bad", above: 3, below: 0, farthest: 1e9 }]);
  });
  test("a run that was wild from its first value on", () => {
    const limits = robustLimits([curve([1e9, 3e12, 1e15]), curve([0.9, 0.5, 0.4]), curve([0.8, 0.7, 0.6])], view());
    expect(limits).toEqual([0.4, 0.9]);
  });
  test("a run that had diverged before its first value was written, and came down part of the way", () => {
    const curves = [curve([7e15, 4e4, 1600, 1575]), curve([0.9, 0.5, 0.4]), curve([1.8e16, 1254, ...series(10, (index) => 1300 + 50 * index)])];
    expect(robustLimits(curves, view())).toEqual([0.4, 0.9]);
    expect(outside(curves, [0.4, 0.9], view()).map((one) => one.above)).toEqual([4, 12]);
  });
  test("most of the runs of a sweep, if most diverged", () => {
    const wild = [1, 2, 3, 4].map((power) => curve([2.3, 1e6 ** power, 1e7 ** power]));
    expect(robustLimits([curve([2.3, 1, 0.5]), ...wild], view())).toEqual([0.5, 2.3]);
  });
  test("spikes of a single run", () => {
    const spiky = falling.map((value, index) => (index === 60 ? 5000 : value));
    expect(robustLimits([curve(spiky)], view())![1]).toBeCloseTo(2.3, 6);
  });
  test("what diverged downwards, where more is better", () => {
    expect(robustLimits([curve([-1e6, -1e8]), curve([0.1, 0.8]), curve([0.2, 0.9])], view({ better: "greater" }))).toEqual([0.1, 0.9]);
  });
  test("a value of thirty powers of ten on a logarithmic axis, too", () => {
    const wild = curve([...falling.slice(0, 50), 1e30]);
    expect(robustLimits([curve(falling), wild], view({ log: true }))![1]).toBeCloseTo(2.3, 6);
  });
});

describe("limits leave alone", () => {
  const fits: [string, Curve[], Partial<View>][] = [
    ["a loss that falls", [curve(falling)], {}],
    ["a loss that falls fast", [curve(series(100, (index) => 2.3 / (1 + index)))], {}],
    ["what rises evenly", [curve(series(100, (index) => index))], { better: null }],
    ["a slow run beside one that began with trained weights", [curve([2e-3, 1e-3, 1e-3]), curve([2.3, 1.1, 0.6])], {}],
    ["a worse run", [curve([0.01, 0.008, 0.005]), curve([1, 0.9, 0.8])], {}],
    ["a run that gets worse", [curve([0.01, 0.008, 0.005]), curve([0.05, 0.06, 0.075])], {}],
    ["runs beside one with tiny values", [curve([1e-9, 1e-9, 1e-9]), curve([0.5, 0.5, 0.52])], {}],
    ["the best run of a metric of which nothing is known", [curve([0, 1, 1]), curve([0, 50, 100])], { better: null }],
    ["the best run where less is better", [curve([1, 0.9, 0.8]), curve([1, 1e-3, -500])], {}],
    ["a flat line beside another", [curve([0, 0, 0]), curve([5, 5, 5])], {}],
    ["a single point", [curve([7])], {}],
    ["nothing at all", [curve([null, null])], {}],
  ];
  test.each(fits)("%s", (_, curves, more) => expect(robustLimits(curves, view(more))).toBeNull());
});

test("limits are those of the part that is shown", () => {
  const late = curve(falling.map((value, index) => (index < 97 ? value : 1e9)));
  expect(robustLimits([curve(falling), late], view({ from: 1, to: 90 }))).toBeNull();
});

test("the extremes of points that stand for several count", () => {
  const low = series(20, () => 1);
  const down = curve(low, { min: low, max: low.map((value, index) => (index === 5 ? 900 : value)) });
  expect(outside([down], [0, 2], view())).toEqual([{ run: "r", above: 1, below: 0, farthest: 900 }]);
});

test("a logarithmic axis is offered where a plain one hides most", () => {
  expect(wantsLog([curve([1e6, 10]), curve([1e-3])], view())).toBe(true);
  expect(wantsLog([curve([1e6, -10])], view())).toBe(false);
  expect(wantsLog([curve(falling)], view())).toBe(false);
});
