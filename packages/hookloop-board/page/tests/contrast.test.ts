import { describe, expect, test } from "vitest";
import styles from "../src/styles/base.css?raw";
import { PALETTES } from "../src/palette";

function light(hex: string): number {
  const parts = [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16) / 255);
  const [red, green, blue] = parts.map((part) => (part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4));
  return 0.2126 * red! + 0.7152 * green! + 0.0722 * blue!;
}

function contrast(one: string, other: string): number {
  const [low, high] = [light(one), light(other)].sort((a, b) => a - b);
  return (high! + 0.05) / (low! + 0.05);
}

const blocks = styles.match(/:root[^{]*\{[^}]*\}/g)!;
const themes = { light: blocks[0]!, dark: blocks[1]! };
const variable = (block: string, name: string): string => new RegExp(`--${name}: (#[0-9a-f]{6})`).exec(block)![1]!;

describe.each(["light", "dark"] as const)("%s", (theme) => {
  const block = themes[theme];
  test.each(["ink", "dim", "accent", "good", "bad", "warn", "calm"])("text in %s can be read", (name) => {
    for (const ground of ["paper", "raised"]) expect(contrast(variable(block, name), variable(block, ground))).toBeGreaterThanOrEqual(4.5);
  });
  test("text on the main button can be read", () => {
    expect(contrast(variable(block, "accent-ink"), variable(block, "accent"))).toBeGreaterThanOrEqual(4.5);
  });
  test.each(PALETTES[theme])("a curve in %s can be seen", (hex) => {
    expect(contrast(hex, variable(block, "paper"))).toBeGreaterThanOrEqual(3);
  });
});
