/** The axes that curves can be drawn over. */

import { duration, moment, number } from "../format";
import { tickTexts } from "./ticks";

export type Axis = "iter" | "epoch" | "samples" | "time" | "relative";

export const AXES: [Axis, string][] = [
  ["iter", "iteration"],
  ["epoch", "epoch"],
  ["samples", "samples"],
  ["time", "time"],
  ["relative", "time since the start"],
];

/** Read an axis from an address. */
export function readAxis(text: string | null): Axis {
  return AXES.find(([axis]) => axis === text)?.[0] ?? "iter";
}

/** Return a place on an axis in words: iteration 1,204. */
export function placeText(axis: Axis, x: number): string {
  switch (axis) {
    case "iter":
      return `iteration ${number(x)}`;
    case "epoch":
      return `epoch ${number(x)}`;
    case "samples":
      return `${number(x)} samples`;
    case "time":
      return moment(new Date(x * 1000).toISOString());
    case "relative":
      return duration(x);
  }
}

/** Return the short texts of ticks. */
export function tickTextsOf(axis: Axis, ticks: number[]): string[] {
  return axis === "relative" ? ticks.map(duration) : tickTexts(ticks);
}
