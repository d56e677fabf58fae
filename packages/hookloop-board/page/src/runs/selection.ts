/** The runs that are selected for comparison, kept while the page is open. */

import type { Run } from "../answers";
import { separate } from "../colours";
import { Listeners } from "../live";

const FIRST_RUNS = 6;

const selected = new Set<string>();

export const selectionChanged = new Listeners<void>();

/** Return the selected runs in the order of selection. */
export function selection(): string[] {
  return [...selected];
}

export function isSelected(run: string): boolean {
  return selected.has(run);
}

/** Select runs, or take them out of the selection. */
export function select(runs: string[], on: boolean): void {
  for (const run of runs) {
    if (on) selected.add(run);
    else selected.delete(run);
  }
  separate(selection());
  selectionChanged.tell();
}

/** Return the runs to begin with, where none are named: those that are selected, else those that train, and the newest. */
export function firstRuns(runs: Run[]): string[] {
  if (selected.size) return selection();
  const rank = (run: Run): number => (run.status === "running" ? 0 : 1);
  const newest = [...runs].sort((one, other) => rank(one) - rank(other) || (other.started ?? "").localeCompare(one.started ?? ""));
  return newest.slice(0, FIRST_RUNS).map((run) => run.id);
}
