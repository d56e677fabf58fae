/** Exponential smoothing without the pull towards zero at the beginning. */

/**
 * Return the moving average of some values.
 *
 * The weight of what came before is from 0 (none) to just below 1. Gaps stay gaps and do not count.
 */
export function smooth(values: (number | null)[], weight: number): (number | null)[] {
  let sum = 0;
  let share = 0;
  return values.map((value) => {
    if (value === null || !Number.isFinite(value)) return null;
    sum = sum * weight + (1 - weight) * value;
    share = share * weight + (1 - weight);
    return sum / share;
  });
}

/** Return the weight for a place of the slider, from 0 to 100: finer towards the strong end. */
export function weightAt(place: number): number {
  return place <= 0 ? 0 : Math.min(0.999, 1 - (1 - place / 100) ** 2);
}
