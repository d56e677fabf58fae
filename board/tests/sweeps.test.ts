import { expect, test } from "vitest";
import { makeScale, within } from "../src/sweeps/scales";

test("wide positive numbers are on a logarithmic scale", () => {
  const scale = makeScale("lr", [1e-4, 1e-2, 1]);
  expect(scale.log).toBe(true);
  expect(scale.at(1e-2)).toBeCloseTo(0.5, 12);
  expect(scale.at(0)).toBeNull();
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
