/** The shapes of the server's answers. */

import type { Numeric } from "./format";

export type Status =
  | "running" | "completed" | "stopped" | "failed" | "interrupted" | "dead" | "unknown" | "unreadable";

/** Which values of a metric are better. */
export type Rule = "greater" | "less";

/** How the server judges the metrics of an answer. */
export interface Judged {
  /** Those that measure the machine. */
  machine: string[];
  /** Which values are better, where that is known. */
  better: Record<string, Rule>;
}

export interface Best {
  value: Numeric;
  iter: number | null;
  epoch: number | null;
}

export interface Run {
  id: string;
  name: string;
  root: number;
  status: Status;
  reason: string;
  started: string | null;
  seconds: number | null;
  iters: number | null;
  epochs: number | null;
  total_iters: number | null;
  total_epochs: number | null;
  remaining: number | null;
  ranks: number | null;
  metrics: Record<string, Numeric>;
  bests: Record<string, Best>;
  main_metric: string | null;
  config: Record<string, unknown>;
  tags: string[];
  note: string;
  disabled: string[];
  sweep: string | null;
  trial: number | null;
}

export interface Runs extends Judged {
  version: number;
  hookloop: string;
  roots: string[];
  can_change: boolean;
  differing: string[];
  metrics: string[];
  runs: Run[];
}

export interface Start {
  iter?: number | null;
  time?: string | null;
  host?: string | null;
  command?: string[] | null;
  git?: Record<string, unknown> | null;
  [name: string]: unknown;
}

export interface Change {
  iter?: number | null;
  time?: string | null;
  key?: string;
  old?: unknown;
  new?: unknown;
  by?: string;
  [name: string]: unknown;
}

export interface Series {
  name: string;
  count: number;
  span: string;
  phase: string;
}

export interface RunDetails extends Run, Judged {
  progress: Record<string, Numeric>;
  command: string | null;
  has_config: boolean;
  path: string;
  speed: Record<string, Numeric>;
  memory: Record<string, Numeric>;
  warnings: { time: string | null; text: string }[];
  starts: Start[];
  changes: Change[];
  problem: Record<string, unknown> | null;
  disabled_hooks: { hook: string; point: string; error: string }[];
  series: Series[];
}

export interface Curve {
  run: string;
  metric: string;
  /** Another number each time that the server reads the file from its start, as after a resume. */
  reading: number;
  /** How many values the metric has, and how many of them are in the range. */
  count: number;
  total: number;
  x: number[];
  y: (number | null)[];
  min?: (number | null)[];
  max?: (number | null)[];
  nonfinite?: [number, string][];
  /** The moving average over the whole curve, for the weight that was asked for. */
  smooth?: (number | null)[];
  weight?: number;
}

export interface Mark {
  run: string;
  x: number;
  kind: string;
  text: string;
}

export interface Curves {
  axis: string;
  curves: Curve[];
  marks: Mark[];
  /** Runs that have no such axis, and why. */
  left_out?: { run: string; text: string }[];
  /** How much of the files is read, if not all: ask again for more. */
  reading?: number;
}

export interface ConfigValue {
  key: string;
  value: unknown;
  source: string | null;
  other?: unknown;
  differs?: boolean;
}

export interface Config {
  text: string;
  values: ConfigValue[];
}

export interface Environment {
  starts: Start[];
  differences: { key: string; value: unknown; other: unknown }[];
  source: { commit?: string | null; dirty?: boolean | null; zip?: boolean } | null;
}

export interface LogPart {
  text: string;
  begin: number;
  end: number;
  size: number;
}

export interface HookColumn {
  name: string;
  type: string;
  priority: number | null;
  policy: string | null;
  reads: string[];
  writes: string[];
  every: Record<string, string>;
  ranks: string | null;
  disabled: { point: string; error: string } | null;
  state: Record<string, unknown> | null;
}

export interface HookCell {
  point: string;
  hook: string;
  order: number;
  calls: number | null;
  seconds: number | null;
  share: number | null;
}

export interface Hooks {
  points: string[];
  hooks: HookColumn[];
  cells: HookCell[];
  iteration_seconds: number | null;
  measured: string | null;
}

export interface Checkpoint {
  name: string;
  iter: number | null;
  epoch: number | null;
  size: number | null;
  time: string | null;
  metrics: Record<string, Numeric>;
  is_last: boolean;
  best_of: string[];
  state: "ok" | "damaged" | "missing" | "unchecked";
  kind?: string | null;
  forever?: boolean;
  commands: Record<string, string>;
}

export type MediaKind = "image" | "text" | "table" | "histogram" | "confusion";

export interface Media {
  kind: MediaKind;
  name: string;
  steps: { iter: number; epoch?: number | null; id: string }[];
}

export interface Table {
  columns: string[];
  rows: unknown[][];
  total_rows?: number;
}

export interface Predictions {
  files: { id: string; name: string }[];
  columns: string[];
  rows: unknown[][];
  total: number;
}

export interface Trial {
  number: number;
  run: string | null;
  state: string;
  problem: string;
  value: Numeric;
  params: Record<string, unknown>;
}

export interface Sweep {
  id: string;
  name: string;
  metric: string | null;
  direction: string | null;
  parameters: string[];
  /** Those of which each factor of ten was equally likely. */
  log: string[];
  trials: Trial[];
}
