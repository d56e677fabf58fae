/** The filter over runs: free text, and conditions such as `lr<0.01` or `status=running`. */

import type { Run } from "../answers";
import { numeric } from "../format";
import { nearest, valueText } from "../text";

type Test = (run: Run) => boolean;

export interface Filter {
  test: Test;
  problem: string | null;
}

const CONDITION = /^([^<>=!~]+?)(<=|>=|!=|<|>|=|~)(.*)$/s;

/** Values that every run has, by the names that people type. */
const FIELDS: Record<string, (run: Run) => unknown> = {
  name: (run) => run.name,
  status: (run) => run.status,
  state: (run) => run.status,
  tag: (run) => run.tags,
  tags: (run) => run.tags,
  note: (run) => run.note,
  reason: (run) => run.reason,
  seconds: (run) => run.seconds,
  duration: (run) => run.seconds,
  started: (run) => run.started,
  iters: (run) => run.iters,
  epochs: (run) => run.epochs,
  ranks: (run) => run.ranks,
  trial: (run) => run.trial,
  sweep: (run) => run.sweep,
};

/** Read a filter. A condition on an unknown name matches nothing, and `problem` tells the nearest one. */
export function readFilter(text: string, runs: Run[]): Filter {
  const keys = knownKeys(runs);
  const tests: Test[] = [];
  let problem: string | null = null;
  for (const word of words(text)) {
    const negative = word.startsWith("-") && word.length > 1;
    const term = negative ? word.slice(1) : word;
    const parts = CONDITION.exec(term);
    let test: Test;
    if (parts) {
      const found = resolve(parts[1]!.trim(), keys);
      problem ??= found.length ? null : unknown(parts[1]!.trim(), keys);
      test = (run) => found.some((read) => holds(read(run), parts[2]!, parts[3]!.trim()));
    } else {
      const wanted = term.toLowerCase();
      test = (run) => freeText(run).includes(wanted);
    }
    tests.push(negative ? (run) => !test(run) : test);
  }
  return { test: (run) => tests.every((test) => test(run)), problem };
}

/** Split a text into words; quotes keep spaces. */
export function words(text: string): string[] {
  const found = text.match(/(?:"[^"]*"?|[^\s"])+/g) ?? [];
  return found.map((word) => word.replaceAll('"', "")).filter((word) => word !== "");
}

function knownKeys(runs: Run[]): Map<string, (run: Run) => unknown> {
  const keys = new Map(Object.entries(FIELDS));
  for (const run of runs) {
    for (const name of Object.keys(run.metrics)) if (!keys.has(name)) keys.set(name, (each) => each.metrics[name]);
    for (const name of Object.keys(run.bests)) {
      if (!keys.has(`best:${name}`)) keys.set(`best:${name}`, (each) => each.bests[name]?.value);
    }
    for (const name of Object.keys(run.config)) if (!keys.has(name)) keys.set(name, (each) => each.config[name]);
  }
  return keys;
}

// `lr` means `optimizer.lr`, and `accuracy` means `val/accuracy`, as long as nothing has that very name.
function resolve(name: string, keys: Map<string, (run: Run) => unknown>): ((run: Run) => unknown)[] {
  const exact = keys.get(name);
  if (exact) return [exact];
  const endings = [`.${name}`, `/${name}`];
  return [...keys].filter(([key]) => !key.startsWith("best:") && endings.some((end) => key.endsWith(end))).map(([, read]) => read);
}

function unknown(name: string, keys: Map<string, unknown>): string {
  const lasts = [...keys.keys()].flatMap((key) => [key, key.split(/[./]/).at(-1)!]);
  const near = nearest(name, lasts);
  return `No run has “${name}”.${near ? ` Did you mean “${near}”?` : ""}`;
}

function holds(value: unknown, sign: string, wanted: string): boolean {
  if (Array.isArray(value)) {
    const some = value.some((each) => holds(each, sign === "!=" ? "=" : sign, wanted));
    return sign === "!=" ? !some : some;
  }
  if (value === undefined || value === null) {
    const none = wanted === "" || wanted === "null";
    return sign === "=" ? none : sign === "!=" ? !none : false;
  }
  const text = valueText(value).toLowerCase();
  if (sign === "~") return text.includes(wanted.toLowerCase());
  const [own, other] = [typeof value === "boolean" ? NaN : numeric(value), numeric(wanted)];
  const numbers = !Number.isNaN(own) && !Number.isNaN(other);
  if (sign === "=" || sign === "!=") {
    return (numbers ? own === other : text === wanted.toLowerCase()) === (sign === "=");
  }
  if (!numbers && typeof value !== "string") return false;
  const order = numbers ? own - other : text < wanted.toLowerCase() ? -1 : text > wanted.toLowerCase() ? 1 : 0;
  if (!numbers && (!Number.isNaN(own) || !Number.isNaN(other))) return false;
  return sign === "<" ? order < 0 : sign === "<=" ? order <= 0 : sign === ">" ? order > 0 : order >= 0;
}

function freeText(run: Run): string {
  return [run.name, run.status, run.note, run.reason, ...run.tags].join("\n").toLowerCase();
}
