import { expect, test } from "vitest";
import { ago, bytes, duration, moment, number, numeric, percent, plural, shortTime } from "../src/format";

test("numbers are short and exact enough", () => {
  expect([0.012345, 1204, 1234.56, 0.0000321, 12345678.9, 4054352.3, -0.5, 0].map((value) => number(value))).toEqual([
    "0.01235", "1,204", "1,234.6", "3.21e-5", "1.235e7", "4.054e6", "-0.5", "0",
  ]);
});

test("what is not finite or not there is said", () => {
  expect(["NaN", "-Infinity", null, undefined].map((value) => number(value))).toEqual(["NaN", "-Infinity", "–", "–"]);
  expect(numeric("Infinity")).toBe(Infinity);
  expect(numeric("")).toBeNaN();
});

test("durations", () => {
  expect([0.25, 59.6, 60, 200, 7500, 273_600].map(duration)).toEqual(["0.3 s", "1 min", "1 min", "3 min 20 s", "2 h 5 min", "3 d 4 h"]);
  expect(duration(null)).toBe("–");
});

test("short times, sizes and shares", () => {
  expect([0.00034, 0.0125, 1.23, 0].map(shortTime)).toEqual(["340 µs", "12.5 ms", "1.23 s", "0 s"]);
  expect([512, 1_400_000, null].map(bytes)).toEqual(["512 B", "1.4 MB", "–"]);
  expect([0.0004, 0.034, 0.12].map(percent)).toEqual(["< 0.1 %", "3.4 %", "12 %"]);
});

test("moments and how long ago they were", () => {
  expect(moment("2026-11-18T07:23:55")).toBe("2026-11-18 07:23:55");
  expect(moment("not a date")).toBe("not a date");
  const now = Date.parse("2026-11-18T12:00:00Z");
  expect(ago("2026-11-18T11:59:30Z", now)).toBe("just now");
  expect(ago("2026-11-18T11:00:00Z", now)).toBe("1 hour ago");
  expect(ago("2026-11-15T12:00:00Z", now)).toBe("3 days ago");
  expect(plural(1000, "run")).toBe("1,000 runs");
});
