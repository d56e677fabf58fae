/** Which metrics say how good a run is. Which measure the machine, and which values are better, the server says. */

import type { Judged } from "./answers";

/** Return whether a metric is a setting of the training, such as a learning rate, and not a result. */
export function isSetting(metric: string): boolean {
  return /(^|\/)lr($|\/)/.test(metric);
}

/** Return whether a metric is a result: neither about the machine nor a setting. */
export function isResult(metric: string, judged: Judged): boolean {
  return !judged.machine.includes(metric) && !isSetting(metric);
}

/** Return how much a metric says of a run; nothing for what is not a result. */
export function interest(metric: string, main: string[], judged: Judged): number {
  if (main.includes(metric)) return 5;
  if (!isResult(metric, judged)) return 0;
  if (metric.startsWith("val/")) return 4;
  if (metric.startsWith("test/")) return 3;
  if (metric.startsWith("train_epoch/")) return 0.5;
  return /(^|\/)loss$/.test(metric) ? 2 : 1;
}

/** Sort metrics by what they say of a run; equal ones stay in their order. */
export function byInterest(metrics: string[], main: string[], judged: Judged): string[] {
  return [...metrics].sort((one, other) => interest(other, main, judged) - interest(one, main, judged));
}
