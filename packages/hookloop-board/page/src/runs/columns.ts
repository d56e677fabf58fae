/** The columns of the runs table: what they show, how they sort, which are there at first. */

import type { Rule, Run, Runs } from "../answers";
import { duration, moment, number, type Numeric, numeric } from "../format";
import { byInterest, interest } from "../judging";
import { groupBy, once } from "../lists";
import { oneLine, valueText } from "../text";

export type Kind = "name" | "result" | "status" | "progress" | "curve" | "tags" | "note" | "number" | "text";

export interface Column {
  id: string;
  label: string;
  group: "Run" | "Last value" | "Best value" | "Config";
  kind: Kind;
  /** The value to sort by. */
  value: (run: Run) => unknown;
  /** The text of a cell. */
  text: (run: Run) => string;
  /** Which values are better, of a metric of which that is known. */
  better?: Rule;
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
  fixed("curve", "Curve", "curve", (run) => run.main_metric ?? undefined, (run) => run.main_metric ?? ""),
  fixed("result", "Result", "result", resultOf, (run) => (resultOf(run) === undefined ? "" : number(resultOf(run)))),
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

/** Return the last value of what a run is judged by. */
function resultOf(run: Run): Numeric {
  return run.main_metric === null ? undefined : run.metrics[run.main_metric];
}

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
  return run.status === "running" && run.remaining !== null ? `${done}, ${duration(run.remaining)} left` : done;
}

/** Return every column that the runs could have. */
export function allColumns(answer: Runs): Column[] {
  const last = answer.metrics.map((name): Column => ({
    id: `last:${name}`,
    label: name,
    group: "Last value",
    kind: "number",
    ...ruleOf(answer, name),
    value: (run) => run.metrics[name],
    text: (run) => (run.metrics[name] === undefined ? "" : number(run.metrics[name])),
  }));
  const best = namesOf(answer.runs, (run) => run.bests).map((name): Column => ({
    id: `best:${name}`,
    label: `best ${name}`,
    group: "Best value",
    kind: "number",
    ...ruleOf(answer, name),
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

function ruleOf(answer: Runs, metric: string): { better?: Rule } {
  const rule = answer.better[metric];
  return rule === undefined ? {} : { better: rule };
}

function configText(value: unknown): string {
  return typeof value === "number" && !Number.isInteger(value) ? number(value) : oneLine(valueText(value));
}

function namesOf(runs: Run[], part: (run: Run) => object): string[] {
  const names = new Set<string>();
  for (const run of runs) for (const name of Object.keys(part(run))) names.add(name);
  return [...names].sort();
}

/**
 * Return the columns to begin with: the run, what it is judged by, and the config keys that differ.
 *
 * Where there is room for three of them, those are the run, its result and its curve.
 */
export function firstColumns(answer: Runs, narrow = false): string[] {
  const best = mainMetrics(answer.runs);
  const shown = byInterest(answer.metrics, best, answer).filter((name) => interest(name, best, answer) > 0).slice(0, MOST_METRICS);
  const main = best.filter((name) => shown.includes(name));
  const others = shown.filter((name) => !best.includes(name));
  const results = main.flatMap((name, index) => [`last:${name}`, ...(index < 2 ? [`best:${name}`] : [])]);
  // Runs of several projects are judged by several metrics: then each by its own.
  results.splice(1, 0, "curve");
  if (narrow && main.length > 1) results.unshift("result", "curve");
  return [
    ...(narrow ? ["name"] : ["name", "status", "progress"]),
    ...new Set([...results, ...others.map((name) => `last:${name}`)]),
    ...(narrow ? ["status", "progress"] : []),
    ...answer.differing.slice(0, MOST_KEYS).map((name) => `config:${name}`),
    ...["started", "seconds", "tags", "note"],
  ];
}

/** Return the metrics by which runs are judged, that of most runs first. */
function mainMetrics(runs: Run[]): string[] {
  const groups = groupBy(runs.filter((run) => run.main_metric !== null), (run) => run.main_metric!);
  return [...groups].sort(([, one], [, other]) => other.length - one.length).map(([name]) => name);
}

/** Return whether no run has anything in a column. */
export function isEmptyColumn(column: Column, runs: Run[]): boolean {
  return runs.every((run) => ["", "–"].includes(column.text(run)));
}

/** Where a value stands among others: 0 is the best of them, 1 the worst. */
export interface Standing {
  rank: number;
  of: number;
  share: number;
}

/** Return where the runs stand in a column, best first; equal values stand equally, what is not a number has no place. */
export function standings(runs: Run[], column: Column): Map<string, Standing> {
  const found = new Map<string, Standing>();
  if (!column.better) return found;
  const sign = column.better === "greater" ? -1 : 1;
  const values = runs.map((run) => ({ id: run.id, value: sign * numeric(column.value(run)) })).filter(({ value }) => Number.isFinite(value));
  values.sort((one, other) => one.value - other.value);
  const distinct = new Set(values.map(({ value }) => value)).size;
  if (distinct < 2) return found;
  let [rank, before] = [0, NaN];
  values.forEach(({ id, value }, index) => {
    if (value !== before) [rank, before] = [index, value];
    found.set(id, { rank: rank + 1, of: values.length, share: rank / (values.length - 1) });
  });
  return found;
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
