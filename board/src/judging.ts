/** Which metrics say how good a run is, and which how fast it was. */

const ABOUT_SPEED = /time$|time_per_|per_second$|memory\/|throughput|mfu$|(^|\/)lr$/;

/** Return whether a metric is about speed, memory or a setting, and not a result. */
export function isAboutSpeed(metric: string): boolean {
  return ABOUT_SPEED.test(metric);
}

/** Return how much a metric says of a run; nothing for speed. */
export function interest(metric: string, main: string[]): number {
  if (main.includes(metric)) return 5;
  if (isAboutSpeed(metric)) return 0;
  if (metric.startsWith("val/")) return 4;
  if (metric.startsWith("test/")) return 3;
  if (metric.startsWith("train_epoch/")) return 0.5;
  return /(^|\/)loss$/.test(metric) ? 2 : 1;
}

/** Sort metrics by what they say of a run; equal ones stay in their order. */
export function byInterest(metrics: string[], main: string[]): string[] {
  return [...metrics].sort((one, other) => interest(other, main) - interest(one, main));
}
