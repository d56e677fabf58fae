/** Limits of a y axis that a few wild values, or a run that diverged, do not set. */

import type { Curve, Rule } from "../answers";

/** How far beyond what is usual a value still belongs to the picture, in heights of the usual. */
const NEAR = 6;
/** How far a run goes away that has diverged, in the same. */
const AWAY = 10;
/** How much higher the picture would have to be for values to be left out. */
const WORTH = 2;
/** How far away a whole run must begin to be left out, and only if it looks diverged. */
const FAR = 100;
/** How far a run comes down that had diverged before its first value was written. */
const WILD = 1e6;
/** Below this many points none of a curve's own is wild. */
const FEW = 8;
const MOST_SORTED = 300;

export interface View {
  log: boolean;
  from: number;
  to: number;
  /** Which values are better: a run that diverged is worse. */
  better: Rule | null;
}

export interface Outside {
  run: string;
  above: number;
  below: number;
  /** The value that is farthest away. */
  farthest: number;
}

interface Part {
  low: number;
  high: number;
  least: number;
  most: number;
  /** Whether its worst value comes after its best. */
  rises: boolean;
  isOdd: boolean;
}

/** Return from where to where to draw, or null where everything fits. */
export function robustLimits(curves: Curve[], view: View): [number, number] | null {
  // Where more is better, a run diverges downwards: the same upside down.
  const sign = view.better === "greater" ? -1 : 1;
  const shape = (value: number): number => sign * (view.log ? Math.log10(value) : value);
  const parts = curves.map((curve) => partOf(curve, view, shape)).filter((part) => part !== null);
  if (parts.length === 0) return null;
  const kept = withoutDiverged(parts, view);
  let [low, high] = [Math.min(...kept.map((part) => part.low)), Math.max(...kept.map((part) => part.high))];
  const [least, most] = [Math.min(...parts.map((part) => part.least)), Math.max(...parts.map((part) => part.most))];
  const height = high - low;
  if (most - high <= WORTH * height || height === 0) high = most;
  if (low - least <= WORTH * height || height === 0) low = least;
  if (low === least && high === most) return null;
  const back = (value: number): number => (view.log ? 10 ** (sign * value) : sign * value);
  return sign > 0 ? [back(low), back(high)] : [back(high), back(low)];
}

/** Return which runs have points beyond the limits, within the part that is shown. */
export function outside(curves: Curve[], [low, high]: [number, number], view: View): Outside[] {
  const found: Outside[] = [];
  for (const curve of curves) {
    const one: Outside = { run: curve.run, above: 0, below: 0, farthest: NaN };
    eachPoint(curve, view, (least, most) => {
      if (most > high) [one.above, one.farthest] = [one.above + 1, one.farthest > most ? one.farthest : most];
      else if (least < low) [one.below, one.farthest] = [one.below + 1, one.farthest < least || one.farthest > high ? one.farthest : least];
    });
    if (one.above + one.below > 0) found.push(one);
  }
  return found;
}

/** Return whether a plain axis hides most of what is there: positive values over more than three powers of ten. */
export function wantsLog(curves: Curve[], view: View): boolean {
  let [least, most, all] = [Infinity, 0, true];
  for (const curve of curves) {
    eachPoint(curve, { ...view, log: false }, (low, high) => {
      all &&= low > 0;
      [least, most] = [Math.min(least, low), Math.max(most, high)];
    });
  }
  return all && most / least > 1000;
}

function eachPoint(curve: Curve, view: View, call: (least: number, most: number) => void): void {
  curve.x.forEach((x, index) => {
    if (x < view.from || x > view.to) return;
    const [least, most] = [curve.min?.[index] ?? curve.y[index], curve.max?.[index] ?? curve.y[index]];
    if (typeof least !== "number" || typeof most !== "number" || (view.log && most <= 0)) return;
    call(view.log && least <= 0 ? most : least, most);
  });
}

function partOf(curve: Curve, view: View, shape: (value: number) => number): Part | null {
  const tops: number[] = [];
  const bottoms: number[] = [];
  eachPoint(curve, view, (one, other) => {
    const [least, most] = [shape(one), shape(other)];
    tops.push(Math.max(least, most));
    bottoms.push(Math.min(least, most));
  });
  if (tops.length === 0) return null;
  const [least, most] = [Math.min(...bottoms), Math.max(...tops)];
  const begun = Math.max(tops.length < FEW ? 1 : 3, Math.floor(tops.length / 20));
  // A curve begins high and comes down: its beginning belongs to it, a single first value does not.
  const start = quantile(tops.slice(0, begun), 0.5);
  const part: Part = { low: least, high: most, least, most, rises: tops.lastIndexOf(most) > bottoms.indexOf(least), isOdd: (curve.nonfinite?.length ?? 0) > 0 };
  if (tops.length < FEW) return part;
  const [low, high] = [Math.min(quantile(bottoms, 0.1), start), Math.max(quantile(tops, 0.8), start)];
  const room = NEAR * scaleOf(low, high, view);
  if (room === 0) return part;
  part.high = Math.max(...tops.filter((value) => value <= high + room));
  part.low = Math.min(...bottoms.filter((value) => value >= low - room));
  return part;
}

// From the best run on: the next one belongs to the picture unless it has left it, or is far off and looks diverged.
function withoutDiverged(parts: Part[], view: View): Part[] {
  const sorted = [...parts].sort((one, other) => one.high - other.high);
  const kept: Part[] = [];
  let [low, high] = [Infinity, -Infinity];
  for (const part of sorted) {
    const scale = kept.length ? scaleOf(low, high, view) : 0;
    if (scale > 0 && part.high - high > AWAY * scale && isDiverged(part, high, scale, view)) continue;
    kept.push(part);
    [low, high] = [Math.min(low, part.low), Math.max(high, part.high)];
  }
  return kept;
}

function isDiverged(part: Part, high: number, scale: number, view: View): boolean {
  // Of a metric of which nothing is known, it may be the best of all.
  const isWorse = part.isOdd || ((part.rises || part.most - part.least > WILD * scale) && view.better !== null);
  const [hasLeft, isFar] = [part.least - high <= AWAY * scale, part.least - high > FAR * scale];
  return isWorse && (hasLeft || (isFar && (part.isOdd || part.most - part.least > AWAY * scale)));
}

// How high the usual is; of a flat line its distance from zero, on a logarithmic axis a power of ten.
function scaleOf(low: number, high: number, view: View): number {
  return Math.max(high - low, view.log ? 1 : Math.abs(high));
}

// Of some of the values, where they are many: this is asked again with each move of a chart.
function quantile(values: number[], share: number): number {
  const step = Math.ceil(values.length / MOST_SORTED);
  const some = step > 1 ? values.filter((_, index) => index % step === 0) : [...values];
  const sorted = some.sort((one, other) => one - other);
  return sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))]!;
}
