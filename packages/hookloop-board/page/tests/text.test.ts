import { describe, expect, test } from "vitest";
import { clip, fileName, middle, nearest, oneLine, valueText, visible } from "../src/text";

describe("visible", () => {
  test("shows control characters and keeps lines", () => {
    expect(visible("\u001b[31mred\u0000\n\tend\u007f")).toBe("\\x1b[31mred\\x00\n\tend\\x7f");
  });
  test("shows characters that change the direction of text", () => {
    expect(visible("abc\u202etxt.exe")).toBe("abc‹U+202E›txt.exe");
  });
  test("leaves markup and other scripts as they are", () => {
    expect(visible("<img src=x onerror=alert(1)> Größe 模型")).toBe("<img src=x onerror=alert(1)> Größe 模型");
  });
});

test("long texts are cut with their length", () => {
  expect(clip("a".repeat(2000), 10)).toBe("aaaaaaaaaa… (2,000 characters)");
  expect(oneLine("one\ntwo\tthree")).toBe("one two three");
});

test("of long names both ends are shown", () => {
  expect(middle("sweep/trial_0007", 12)).toBe("swee…al_0007");
  expect(middle("short", 12)).toBe("short");
  expect(middle("2026-11-11_resnet50_adamw_seed17", 24)).toHaveLength(24);
});

test("values are shown as configs write them", () => {
  expect([null, true, 3, "x", [1, 2], { a: 1 }].map((value) => valueText(value))).toEqual(["null", "true", "3", "x", "[1,2]", '{"a":1}']);
});

test("names of files lead nowhere", () => {
  expect(fileName("../../etc/passwd", "png")).toBe("etc-passwd.png");
  expect(fileName("val/<b>loss</b>", "png")).toBe("val-b-loss-b.png");
  expect(fileName("..", "csv")).toBe("board.csv");
});

test("the nearest name is found, and none if all are far", () => {
  expect(nearest("acuracy", ["loss", "accuracy"])).toBe("accuracy");
  expect(nearest("zzzz", ["loss", "accuracy"])).toBeNull();
});
