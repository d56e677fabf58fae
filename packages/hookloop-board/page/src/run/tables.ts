/** Small tables of facts. */

import { type Child, h } from "../dom";
import { number } from "../format";
import { valueText } from "../text";

/** Show names with their values. */
export function facts(rows: [string, Child][]): HTMLElement {
  return h("dl", { class: "facts" }, rows.map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", {}, value))));
}

/** Show a box with a heading. */
export function box(title: string, ...children: Child[]): HTMLElement {
  return h("section", { class: "box" }, h("h2", {}, title), children);
}

/** Show a table that scrolls by itself when it is wider than the page. */
export function table(caption: string, heads: Child[], rows: Child[][], numbers: boolean[] = []): HTMLElement {
  return h(
    "div",
    { class: "scroll", tabindex: "0", role: "region", "aria-label": caption },
    h(
      "table",
      { class: "plain" },
      h("caption", { class: "unseen" }, caption),
      h("thead", {}, h("tr", {}, heads.map((head, index) => h("th", { scope: "col", class: numbers[index] ? "is-number" : null }, head)))),
      h("tbody", {}, rows.map((row) => h("tr", {}, row.map((cell, index) => h("td", { class: numbers[index] ? "is-number" : isLong(cell) ? "is-long" : null }, cell))))),
    ),
  );
}

// A long text in a narrow column would be a tower of words.
function isLong(cell: Child): boolean {
  return typeof cell === "string" && cell.length > 40;
}

/** Return any value of a table as text, numbers rounded. */
export function cellText(value: unknown): string {
  if (typeof value === "number") return number(value);
  // A file of rows has its numbers as text, with all their digits.
  if (typeof value === "string" && /^-?\d+\.\d{6,}(e[-+]?\d+)?$/.test(value)) return number(value);
  return value === null || value === undefined ? "" : valueText(value, 500);
}
