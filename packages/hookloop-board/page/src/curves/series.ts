/** Curves as arrays: continued by what is new, and brought to a common axis for drawing. */

import type { Curve } from "../answers";

/**
 * Return a curve continued by later points, or null if it must be loaded again.
 *
 * What the fresh part repeats is dropped. A fresh part that was down-sampled itself does not fit behind points, nor does
 * one of a file that was written again, or of which some points lie before the end: a clock was set back.
 */
export function continued(old: Curve, fresh: Curve): Curve | null {
  if (fresh.min && fresh.total > fresh.x.length) return null;
  if (fresh.reading !== old.reading || fresh.weight !== old.weight) return null;
  const last = old.x.at(-1) ?? -Infinity;
  const begin = fresh.x.findIndex((x) => x > last);
  if (begin < 0) return fresh.count === old.count ? old : null;
  const y = fresh.y.slice(begin);
  if (fresh.count !== old.count + y.length) return null;
  const next: Curve = {
    ...old,
    count: fresh.count,
    total: old.total + y.length,
    x: [...old.x, ...fresh.x.slice(begin)],
    y: [...old.y, ...y],
    nonfinite: [...(old.nonfinite ?? []), ...(fresh.nonfinite ?? []).filter(([x]) => x > last)],
  };
  if (old.min && old.max) {
    next.min = [...old.min, ...(fresh.min?.slice(begin) ?? y)];
    next.max = [...old.max, ...(fresh.max?.slice(begin) ?? y)];
  }
  if (old.smooth) next.smooth = [...old.smooth, ...(fresh.smooth?.slice(begin) ?? y)];
  return next;
}

/** Return whether a curve has grown by so many points that it should be down-sampled again. */
export function overgrown(curve: Curve, points: number): boolean {
  return curve.x.length > points * 1.5;
}

/** Values on a common axis. `undefined` is where a curve has no point, `null` where it has a gap. */
export type Aligned = (number | null | undefined)[];

/** Return the union of all x, ascending, each once. */
export function unionOf(curves: Curve[]): number[] {
  const longest = curves.reduce((one, other) => (other.x.length > one.length ? other.x : one), [] as number[]);
  const all = new Set<number>(longest);
  const before = all.size;
  for (const curve of curves) for (const x of curve.x) all.add(x);
  if (all.size === before && isAscending(longest)) return [...longest];
  return [...all].sort((one, other) => one - other);
}

function isAscending(values: number[]): boolean {
  return values.every((value, index) => index === 0 || value > values[index - 1]!);
}

/** Spread values over a common axis that holds every x of them; of several at one x the last counts. */
export function alignTo(axis: number[], xs: number[], values: (number | null)[]): Aligned {
  const result = new Array<number | null | undefined>(axis.length).fill(undefined);
  let place = 0;
  xs.forEach((x, index) => {
    while (place < axis.length && axis[place]! < x) place += 1;
    if (axis[place] === x) result[place] = values[index] ?? null;
  });
  return result;
}

/** Return values for a logarithmic scale, which has no place for zero and below. */
export function positive(values: (number | null)[]): (number | null)[] {
  return values.map((value) => (value !== null && value > 0 ? value : null));
}

/** Return how many points a logarithmic scale cannot show; of points that stand for several, those that have such a value. */
export function countHidden(curve: Curve): number {
  return (curve.min ?? curve.y).filter((value) => value !== null && value <= 0).length;
}

/** Return the place of the point that is nearest to an x, -1 if there is none. */
export function nearestPoint(xs: number[], x: number): number {
  let [low, high] = [0, xs.length - 1];
  if (high < 0) return -1;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (xs[middle]! < x) low = middle + 1;
    else high = middle;
  }
  return low > 0 && Math.abs(xs[low - 1]! - x) <= Math.abs(xs[low]! - x) ? low - 1 : low;
}

/** Return how many points to ask for, so that many runs together stay quick to draw. */
export function pointsFor(runs: number): number {
  return Math.max(150, Math.min(1000, Math.floor(12_000 / Math.max(1, runs))));
}
