/** The predictions of a run as a table, the worst first. */

import type { Predictions } from "../answers";
import { exported, get, query, runPath } from "../api";
import { choice, h } from "../dom";
import { number, plural } from "../format";
import { oneLine } from "../text";
import { empty, load } from "../view";
import { cellText, table } from "./tables";
import type { Part } from "./view";

const PAGE = 100;

/** Show the predictions. */
export function showPredictions(part: Part): void {
  const now: { file?: string; sort?: string; descending: boolean; offset: number } = { descending: true, offset: 0 };
  ask();

  function ask(): void {
    const path = query(runPath(part.run, "predictions"), {
      file: now.file,
      offset: now.offset,
      limit: PAGE,
      sort: now.sort,
      descending: now.sort === undefined ? undefined : Number(now.descending),
    });
    void load(part.place, "the predictions", (signal) => get<Predictions>(path, signal), show, part.signal);
  }

  function show(answer: Predictions): Node | Node[] {
    if (answer.files.length === 0) {
      return empty("The run wrote no predictions.", "The hook ", h("code", {}, "SavePredictions"), " and the command ", h("code", {}, "hookloop predict"), " write them.");
    }
    const files = answer.files.map((file): [string, string] => [file.id, oneLine(file.name, 80)]);
    const end = Math.min(answer.total, now.offset + answer.rows.length);
    const numbers = answer.columns.map((_, index) => answer.rows.some((row) => typeof rounded(row[index]) === "number"));
    const bar = h(
      "div",
      { class: "toolbar" },
      choice("File", files, now.file ?? files[0]![0], (file) => go({ file, offset: 0 }, true), { disabled: exported !== null }),
      turn("Previous", now.offset === 0, now.offset - PAGE),
      turn("Next", end >= answer.total, now.offset + PAGE),
      h("span", { class: "dim", role: "status" }, `${number(now.offset + 1)} to ${number(end)} of ${plural(answer.total, "row")}${now.sort === undefined ? ", worst first" : ""}`),
    );
    const grid = table("Predictions", answer.columns.map(head), answer.rows.map((row) => row.map((cell) => cellText(rounded(cell)))), numbers);
    grid.querySelectorAll("th").forEach((cell, index) => {
      if (answer.columns[index] === now.sort) cell.setAttribute("aria-sort", now.descending ? "descending" : "ascending");
    });
    return h("div", {}, bar, grid);
  }

  function head(column: string): HTMLElement {
    const here = column === now.sort;
    const again = (): void => go({ sort: column, descending: here ? !now.descending : true, offset: 0 });
    return h("button", { type: "button", class: "quiet", disabled: exported !== null, onclick: again }, oneLine(column, 60), h("span", { "aria-hidden": "true" }, here ? (now.descending ? " ▼" : " ▲") : ""));
  }

  function turn(label: string, off: boolean, offset: number): HTMLElement {
    return h("button", { type: "button", disabled: off || exported !== null, onclick: () => go({ offset: Math.max(0, offset) }) }, label);
  }

  function go(change: Partial<typeof now>, worstFirst = false): void {
    Object.assign(now, change);
    if (worstFirst) delete now.sort;
    ask();
  }
}

/** Return the number that a cell holds as text; tables of text have numbers of seventeen digits. */
function rounded(cell: unknown): unknown {
  return typeof cell === "string" && /^-?\d+(\.\d+)?(e[+-]?\d+)?$/i.test(cell) && cell.length < 40 ? Number(cell) : cell;
}
