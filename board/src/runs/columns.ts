/** The columns of the runs table: what they show, how they sort, which are there at first. */

import type { Run, Runs } from "../answers";
import { duration, moment, number, numeric } from "../format";
import { byInterest, interest } from "../judging";
import { once } from "../lists";
import { oneLine, valueText } from "../text";

export type Kind = "name" | "status" | "progress" | "tags" | "note" | "number" | "text";

export interface Column {
  id: string;
  label: string;
  group: "Run" | "Last value" | "Best value" | "Config";
  kind: Kind;
  /** The value to sort by. */
  value: (run: Run) => unknown;
  /** The text of a cell. */
  text: (run: Run) => string;
}

export interface Sorting {
  column: string;
  descending: boolean;
}

const MOST_METRICS = 4;
const MOST_KEYS = 6;

function fixed(id: string, label: string, kind: Kind, value: (run: Run) => unknown, text: (run: Run) => string): Column {
  return { id, label, group: "Run", kind, value, text };
}

const FIXED: Column[] = [
  fixed("name", "Run", "name", (run) => run.name, (run) => oneLine(run.name)),
  fixed("status", "State", "status", (run) => run.status, (run) => run.status),
  fixed("progress", "Progress", "progress", progressOf, progressText),
  fixed("started", "Started", "text", (run) => Date.parse(run.started ?? "") || undefined, (run) => moment(run.started)),
  fixed("seconds", "Duration", "number", (run) => run.seconds ?? undefined, (run) => duration(run.seconds)),
  fixed("iters", "Iterations", "number", (run) => run.iters ?? undefined, (run) => number(run.iters)),
  fixed("epochs", "Epochs", "number", (run) => run.epochs ?? undefined, (run) => number(run.epochs)),
  fixed("ranks", "Ranks", "number", (run) => run.ranks ?? undefined, (run) => number(run.ranks)),
  fixed("reason", "Reason", "text", (run) => run.reason || undefined, (run) => oneLine(run.reason)),
  fixed("tags", "Tags", "tags", (run) => run.tags.join(", ") || undefined, (run) => run.tags.join(", ")),
  fixed("note", "Note", "note", (run) => run.note || undefined, (run) => oneLine(run.note)),
];

/** Return how far a run is, from 0 to 1, or nothing where the end is not known. */
export function progressOf(run: Run): number | undefined {
  // Iterations that were left out on the way, as after a return, are not to come any more.
  if (run.status === "completed" && (run.total_iters || run.total_epochs)) return 1;
  if (run.total_iters && run.iters !== null) return Math.min(1, run.iters / run.total_iters);
  if (run.total_epochs && run.epochs !== null) return Math.min(1, run.epochs / run.total_epochs);
  return undefined;
}

function progressText(run: Run): string {
  const share = progressOf(run);
  if (share === undefined) return run.iters === null ? "–" : `${number(run.iters)} iterations`;
  const done = `${Math.floor(share * 100)} %`;
  return run.status === "running" && run.remaining !== null ? `${done}, ${duration(run.remaining)} to go` : done;
}

/** Return every column that the runs could have. */
export function allColumns(answer: Runs): Column[] {
  const last = answer.metrics.map((name): Column => ({
    id: `last:${name}`,
    label: name,
    group: "Last value",
    kind: "number",
    value: (run) => run.metrics[name],
    text: (run) => (run.metrics[name] === undefined ? "" : number(run.metrics[name])),
  }));
  const best = namesOf(answer.runs, (run) => run.bests).map((name): Column => ({
    id: `best:${name}`,
    label: `best ${name}`,
    group: "Best value",
    kind: "number",
    value: (run) => run.bests[name]?.value,
    text: (run) => (run.bests[name] ? number(run.bests[name].value) : ""),
  }));
  const config = namesOf(answer.runs, (run) => run.config).map((name): Column => ({
    id: `config:${name}`,
    label: name,
    group: "Config",
    kind: answer.runs.some((run) => typeof run.config[name] === "number") ? "number" : "text",
    value: (run) => run.config[name],
    text: (run) => (name in run.config ? configText(run.config[name]) : ""),
  }));
  return [...FIXED, ...last, ...best, ...config];
}

function configText(value: unknown): string {
  return typeof value === "number" && !Number.isInteger(value) ? number(value) : oneLine(valueText(value));
}

function namesOf(runs: Run[], part: (run: Run) => object): string[] {
  const names = new Set<string>();
  for (const run of runs) for (const name of Object.keys(part(run))) names.add(name);
  return [...names].sort();
}

/** Return the columns to begin with: the run, what it is judged by, and the config keys that differ. */
export function firstColumns(answer: Runs): string[] {
  const best = [...new Set(answer.runs.map((run) => run.main_metric).filter((name) => name !== null))];
  const shown = byInterest(answer.metrics, best).filter((name) => interest(name, best) > 0).slice(0, MOST_METRICS);
  const [main, others] = [shown.filter((name) => best.includes(name)), shown.filter((name) => !best.includes(name))];
  return [
    ...["name", "status", "progress", "started", "seconds"],
    ...main.map((name) => `last:${name}`),
    ...best.slice(0, 2).map((name) => `best:${name}`),
    ...others.map((name) => `last:${name}`),
    ...answer.differing.slice(0, MOST_KEYS).map((name) => `config:${name}`),
    ...["tags", "note"],
  ];
}

/** Return the runs in order; what has no value comes last either way. */
export function sortRuns(runs: Run[], column: Column | undefined, descending: boolean): Run[] {
  if (!column) return runs;
  const keyed = runs.map((run) => ({ run, key: sortKey(column.value(run)) }));
  keyed.sort((one, other) => {
    if (one.key === null || other.key === null) return Number(one.key === null) - Number(other.key === null);
    const order = compare(one.key, other.key);
    return descending ? -order : order;
  });
  return keyed.map(({ run }) => run);
}

function sortKey(value: unknown): number | string | null {
  if (value === undefined || value === null || value === "") return null;
  const real = typeof value === "boolean" ? Number(value) : numeric(value);
  if (!Number.isNaN(real)) return real;
  return value === "NaN" ? null : valueText(value).toLowerCase();
}

function compare(one: number | string, other: number | string): number {
  if (typeof one === "number" && typeof other === "number") return one - other;
  if (typeof one === typeof other) return collator().compare(String(one), String(other));
  return typeof one === "number" ? -1 : 1;
}

// Made when it is needed: that takes longer than to sort.
const collator = once(() => new Intl.Collator("en", { numeric: true }));
