import { expect, test } from "vitest";
import { heatOf } from "../src/run/heat";

test("what costs less than a hundredth of the iteration has no heat, whatever the others cost", () => {
  expect([null, 0, 0.0005, 0.0099].map(heatOf)).toEqual([0, 0, 0, 0]);
  expect(heatOf(0.01)).toBeGreaterThan(0);
  expect(heatOf(0.02)).toBeLessThan(heatOf(0.2));
  expect(heatOf(0.9)).toBe(1);
});
