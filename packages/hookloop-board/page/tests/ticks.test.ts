import { expect, test } from "vitest";
import { tickTexts } from "../src/curves/ticks";

test("texts of ticks are short, however large or small the values", () => {
  expect(tickTexts([0, 2_000_000, 4_000_000])).toEqual(["0", "2M", "4M"]);
  expect(tickTexts([0, 5e-7, 1e-6])).toEqual(["0", "5e-7", "1e-6"]);
  expect(tickTexts([-1e30, 0, 1e30])).toEqual(["-1e30", "0", "1e30"]);
  expect(tickTexts([1e9, 2.5e12])).toEqual(["1e9", "2.5e12"]);
  expect(tickTexts([50_000, 100_000])).toEqual(["50K", "100K"]);
});

test("no two ticks have the same text", () => {
  expect(tickTexts([0.99991, 0.99992, 0.99993])).toEqual(["0.99991", "0.99992", "0.99993"]);
  expect(tickTexts([1_200_010, 1_200_020, 1_200_030])).toEqual(["1.20001M", "1.20002M", "1.20003M"]);
  expect(tickTexts([null, 1, null])).toEqual(["", "1", ""]);
});
