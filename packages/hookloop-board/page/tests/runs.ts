/** A run for tests, with what the test is about. */

import type { Run, Runs } from "../src/answers";

export function makeRun(more: Partial<Run> = {}): Run {
  return {
    id: "0000000000000001", name: "run", root: 0, status: "completed", reason: "", started: "2026-11-18T07:00:00+00:00", seconds: 10,
    iters: 60, epochs: 3, total_iters: 60, total_epochs: 3, remaining: null, ranks: 1, metrics: {}, bests: {}, main_metric: null,
    config: {}, tags: [], note: "", disabled: [], sweep: null, trial: null, ...more,
  };
}

export function makeAnswer(runs: Run[], more: Partial<Runs> = {}): Runs {
  return { version: 1, hookloop: "0.0.0", roots: ["runs"], can_change: true, differing: [], metrics: [], machine: [], better: {}, runs, ...more };
}
