/** How warm the cells of the timetable are. */

/** Shares of an iteration: what costs less is not worth a look, and what costs more could not be warmer. */
const [COOL, HOT] = [0.01, 0.5];

/** Return how warm a cell is, from 0 to 1: from a hundredth of the iteration on, by its logarithm up to half of it. */
export function heatOf(share: number | null): number {
  if (share === null || share < COOL) return 0;
  return Math.min(1, 0.2 + (0.8 * Math.log(share / COOL)) / Math.log(HOT / COOL));
}
