/** Tags and notes, edited in place. */

import type { Run } from "../answers";
import { post, runPath } from "../api";
import { h } from "../dom";
import type { Store } from "../store";

interface Labels {
  tags: string[];
  note: string;
}

/** Read tags from what was typed: commas or spaces between them, each once. */
export function readTags(text: string): string[] {
  return [...new Set(text.split(/[,\s]+/).filter((tag) => tag !== ""))];
}

/** Make a field for a run's tags or its note; Enter or leaving it saves, Escape takes the change back. */
export function labelField(store: Store, run: Run, which: "tags" | "note", told: (text: string) => void): HTMLElement {
  const now = (): string => {
    const known = store.find(run.id) ?? run;
    return which === "note" ? known.note : known.tags.join(", ");
  };
  if (!store.canChange) return h("span", { "data-testid": which }, now());
  const field = h("input", {
    class: "in-place",
    "data-testid": which,
    "data-keep": `${which}:${run.id}`,
    "aria-label": `${which === "note" ? "Note" : "Tags"} of ${run.name}`,
    placeholder: which === "note" ? "add a note" : "add tags",
    maxlength: 2000,
    onkeydown: (event: KeyboardEvent) => {
      event.stopPropagation();
      if (event.key === "Escape") field.value = now();
      if (event.key === "Enter" || event.key === "Escape") field.blur();
    },
    onchange: () => void save(),
    onblur: () => void save(),
  });
  field.value = now();
  return field;

  async function save(): Promise<void> {
    if (field.value === now()) return;
    const known = store.find(run.id) ?? run;
    const labels: Labels = {
      tags: which === "tags" ? readTags(field.value) : known.tags,
      note: which === "note" ? field.value : known.note,
    };
    store.put({ ...known, ...labels });
    try {
      store.put({ ...known, ...(await post<Labels>(runPath(run.id, "labels"), labels)) });
      told(`Saved the ${which} of ${run.name}.`);
    } catch (error) {
      store.put(known);
      told(`The ${which} of ${run.name} could not be saved: ${error instanceof Error ? error.message : String(error)}`);
    }
    field.value = now();
    store.changed.tell();
  }
}
