import { expect, test } from "vitest";
import { goodness, makeScale, spaced, within } from "../src/sweeps/scales";

test("wide positive numbers are on a logarithmic scale", () => {
  const scale = makeScale("lr", [1e-4, 1e-2, 1]);
  expect(scale.log).toBe(true);
  expect(scale.at(1e-2)).toBeCloseTo(0.5, 12);
  expect(scale.at(0)).toBeNull();
});

test("what a sweep drew by factors of ten is on a logarithmic scale, however near the values are", () => {
  const scale = makeScale("lr", [0.005518, 0.01786, 0.08439], true);
  expect([scale.log, makeScale("lr", [0.005518, 0.01786, 0.08439]).log]).toEqual([true, false]);
  expect(scale.ticks.map((tick) => tick.text)).toEqual(["0.01", "0.02", "0.05"]);
  expect(scale.ticks.every(({ at }) => at > 0 && at < 1)).toBe(true);
});

test("ticks are the values themselves where they are few, and round numbers where they are many", () => {
  const texts = (values: number[]): string[] => makeScale("x", values).ticks.map((tick) => tick.text);
  expect(texts([8, 4, 8])).toEqual(["4", "8"]);
  expect(texts([0.1234567, 0.2345678, 0.3456789])).toEqual(["0.15", "0.2", "0.25", "0.3"]);
  expect(texts([0.26])).toEqual(["0.26"]);
});

test("ticks whose texts would touch are left out", () => {
  const { ticks } = makeScale("lr", [1e-4, 3e-4, 2e-3, 8e-3, 7e-2, 0.05, 0.01], true);
  expect(spaced(ticks, 2000, 6.5)).toEqual(ticks);
  const few = spaced(ticks, 290, 11);
  expect(few.length).toBeGreaterThan(1);
  expect(few.length).toBeLessThan(ticks.length);
  few.slice(1).forEach((tick, index) => expect((tick.at - few[index]!.at) * 290).toBeGreaterThan(44));
});

test("the best is bright, whether more or less is better", () => {
  expect([goodness(1, true), goodness(1, false), goodness(null, false)]).toEqual([1, 0, null]);
});

test("narrow numbers are on a plain one, a single number in the middle", () => {
  expect(makeScale("width", [8, 16, 32]).at(20)).toBeCloseTo(0.5, 12);
  expect(makeScale("width", [8]).at(8)).toBe(0.5);
});

test("names and truth values have places by their order", () => {
  const scale = makeScale("type", ["b", "a", true, null]);
  expect(scale.ticks.map((tick) => tick.text)).toEqual(["a", "b", "true"]);
  expect([scale.at("a"), scale.at("b"), scale.at(null), scale.at("c")]).toEqual([0, 0.5, null, null]);
});

test("limits keep what is within all of them", () => {
  expect(within([0.5, null], [[0, 1], null])).toBe(true);
  expect(within([0.5, null], [null, [0, 1]])).toBe(false);
  expect(within([0.5], [[0.6, 1]])).toBe(false);
});
