/** The texts of ticks: short, and no two alike. */

import { number } from "../format";
import { once } from "../lists";

const MOST_DIGITS = 12;
const FONT = "11px system-ui, sans-serif";

export const TICK_FONT = FONT;

/** Return a text for each tick, in as many digits as it takes to tell them apart: 0.5, 12K, 10M, 2e-7. */
export function tickTexts(ticks: (number | null)[]): string[] {
  const real = new Set(ticks.filter((tick) => tick !== null)).size;
  for (let digits = 3; ; digits += 1) {
    const texts = ticks.map((tick) => (tick === null ? "" : tickText(tick, digits)));
    if (digits >= MOST_DIGITS || new Set(texts.filter((text) => text !== "")).size === real) return texts;
  }
}

function tickText(tick: number, digits: number): string {
  const size = Math.abs(tick);
  if (size >= 1e9) return tick.toExponential(digits - 1).replace(/\.?0*e\+?/, "e");
  if (size < 10_000) return number(tick, digits);
  // In a locale of its own: a page in German would show the points of thousands.
  return new Intl.NumberFormat("en", { notation: "compact", maximumSignificantDigits: digits }).format(tick);
}

/** Return how wide the widest text is, in pixels. */
export function widthOf(texts: string[]): number {
  const pen = measure();
  return Math.ceil(Math.max(0, ...texts.map((text) => pen?.measureText(text).width ?? text.length * 7)));
}

const measure = once(() => {
  const pen = document.createElement("canvas").getContext("2d");
  if (pen) pen.font = FONT;
  return pen;
});
