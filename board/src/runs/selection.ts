/** The runs that are selected for comparison, kept while the page is open. */

import { Listeners } from "../live";
import { separate } from "../colours";

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
