/** What the address holds of the curves, so that a reload shows the same. */

import type { Settings } from "./plot";

/** Return the query of an address; what is as usual is left out. */
export function addressOf(runs: string[], metrics: string[] | null, settings: Settings, smoothing: number): URLSearchParams {
  const kept = new URLSearchParams();
  runs.forEach((run) => kept.append("run", run));
  metrics?.forEach((metric) => kept.append("metric", metric));
  if (settings.axis !== "iter") kept.set("axis", settings.axis);
  if (smoothing) kept.set("smooth", String(smoothing));
  if (settings.log) kept.set("log", "1");
  if (settings.all) kept.set("all", "1");
  settings.range?.forEach((end, index) => kept.set(index ? "to" : "from", String(Number(end.toPrecision(12)))));
  return kept;
}
