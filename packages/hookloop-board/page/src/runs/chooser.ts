/** The choice of columns. */

import { checkbox, fill, h } from "../dom";
import { groupBy } from "../lists";
import type { Column } from "./columns";

export interface ChooserOptions {
  all: () => Column[];
  chosen: () => string[];
  change: (ids: string[]) => void;
  reset: () => void;
}

/** Make the button and the panel in which columns are chosen. */
export function columnChooser(options: ChooserOptions): HTMLElement {
  const list = h("div", { class: "column-list" });
  const search = h("input", { type: "search", placeholder: "search columns", "aria-label": "Search columns", oninput: show });
  const panel = h(
    "div",
    { class: "panel" },
    search,
    list,
    h("p", {}, h("button", { type: "button", onclick: () => (options.reset(), show()) }, "Default columns")),
  );
  const element = h("details", { class: "drop", "data-testid": "columns" }, h("summary", {}, "Columns"), panel);
  element.addEventListener("toggle", () => {
    if (!element.open) return document.removeEventListener("click", closeOutside);
    document.addEventListener("click", closeOutside);
    show();
    search.focus();
  });
  element.addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || !element.open) return;
    element.open = false;
    element.querySelector("summary")?.focus();
  });
  return element;

  function closeOutside(event: Event): void {
    if (!event.composedPath().includes(element)) element.open = false;
  }

  function show(): void {
    const wanted = search.value.toLowerCase();
    const groups = groupBy(
      options.all().filter((column) => column.label.toLowerCase().includes(wanted)),
      (column) => column.group,
    );
    const chosen = new Set(options.chosen());
    fill(
      list,
      [...groups].map(([group, columns]) =>
        h("fieldset", {}, h("legend", {}, group), columns.map((column) => line(column, chosen.has(column.id)))),
      ),
      groups.size === 0 && h("p", { class: "dim" }, "No column has that name."),
    );
  }

  function line(column: Column, on: boolean): HTMLElement {
    return checkbox(
      column.label,
      on,
      (wanted) => {
        const now = options.chosen();
        options.change(wanted ? [...now, column.id] : now.filter((id) => id !== column.id));
      },
      { disabled: column.id === "name" },
    );
  }
}
