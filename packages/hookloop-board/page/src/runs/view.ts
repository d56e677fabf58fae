/** The view of all runs. */

import type { Run } from "../answers";
import { exported } from "../api";
import { fill, h, later } from "../dom";
import { ago, moment, plural, whole } from "../format";
import { curvesHash, keepInAddress, runHash } from "../routes";
import { keepSetting, readSetting } from "../settings";
import { oneLine } from "../text";
import { type Board, empty, failure, type View, waiting } from "../view";
import { columnChooser } from "./chooser";
import { allColumns, type Column, firstColumns, isEmptyColumn, sortRuns, type Sorting, type Standing, standings } from "./columns";
import { readFilter } from "./filter";
import { Grid } from "./grid";
import { labelField } from "./labels";
import { progressBar, runName, statusPill, swatch } from "./parts";
import { isSelected, select, selection, selectionChanged } from "./selection";
import { Sparks } from "./sparks";

/** Columns that are for writing, so that whoever chose them sees them empty, too. */
const WRITTEN = ["tags", "note"];

/** Open the table of runs. */
export function openRuns(board: Board, query: URLSearchParams): View {
  const { store } = board;
  let sorting: Sorting = { column: query.get("sort") ?? "started", descending: query.get("order") !== "up" };
  let chosen = readSetting<string[] | null>("columns", null);
  let shown: Run[] = [];
  let ranks = new Map<string, Map<string, Standing>>();
  const sparks = new Sparks(() => store.judged);
  // Where not all fits, results come before state and progress.
  const narrow = window.matchMedia("(max-width: 1000px)");

  const soon = later(60, show);
  const filter = h("input", {
    type: "search",
    "data-testid": "filter",
    "aria-label": "Filter runs",
    placeholder: "filter: text, lr<0.01, status=running   ( / )",
    "aria-describedby": "filter-told",
    oninput: () => soon(),
    onkeydown: (event: KeyboardEvent) => {
      if (event.key !== "Enter" && event.key !== "ArrowDown") return;
      event.preventDefault();
      grid.focus();
    },
  });
  filter.value = query.get("q") ?? "";
  const told = h("span", { class: "dim", id: "filter-told", role: "status" });
  const note = h("span", { class: "dim", role: "status" });
  const compare = h("button", { type: "button", "data-testid": "compare", class: "main", onclick: () => (window.location.hash = curvesHash(selection())) });
  const none = h("button", { type: "button", class: "quiet", onclick: () => select(selection(), false) }, "Clear selection");
  const chooser = columnChooser({
    all: () => (store.answer ? allColumns(store.answer) : []),
    chosen: columnIds,
    change: choose,
    reset: () => choose(null),
  });
  const grid = new Grid({
    cell,
    standing: (run, column) => ranks.get(column.id)?.get(run.id),
    sort: (column) => {
      const again = sorting.column === column.id;
      sorting = { column: column.id, descending: again ? !sorting.descending : beginsDescending(column) };
      show();
    },
    select: (run, on) => select([run.id], on),
    selectAll: (on) => select(shown.map((run) => run.id), on),
    isSelected: (run) => isSelected(run.id),
    open: (run) => (window.location.hash = runHash(run.id)),
  });
  const bar = h("div", { class: "toolbar" }, filter, chooser, compare, none, told, note);
  const place = h("div", { class: "fill" });
  const element = h("section", { class: "view tall", "aria-label": "Runs" }, h("h1", { class: "unseen" }, "Runs"), bar, place);
  const leave = [store.changed.add(show), selectionChanged.add(show)];
  document.addEventListener("keydown", slash);
  narrow.addEventListener("change", show);
  show();
  return {
    element,
    title: "Runs",
    close: () => {
      soon.cancel();
      sparks.close();
      narrow.removeEventListener("change", show);
      leave.forEach((call) => call());
      document.removeEventListener("keydown", slash);
    },
  };

  function slash(event: KeyboardEvent): void {
    const target = event.target as HTMLElement;
    if (event.key !== "/" || event.ctrlKey || event.metaKey || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName)) return;
    event.preventDefault();
    filter.focus();
    filter.select();
  }

  function choose(ids: string[] | null): void {
    chosen = ids;
    keepSetting("columns", ids);
    show();
  }

  function columnIds(): string[] {
    return chosen ?? (store.answer ? firstColumns(store.answer, narrow.matches) : []);
  }

  function show(): void {
    const { answer } = store;
    bar.hidden = !answer?.runs.length;
    if (!answer) return fill(place, store.error ? failure(store.error, () => void store.load()) : waiting("the runs"));
    if (answer.runs.length === 0) return fill(place, noRuns(answer.roots));
    const columns = allColumns(answer);
    const ids = [...new Set(["name", ...columnIds()])];
    const test = readFilter(filter.value, answer.runs);
    const sorted = sortRuns(answer.runs.filter(test.test), columns.find((each) => each.id === sorting.column), sorting.descending);
    shown = sorted;
    told.textContent = test.problem ?? count(shown.length, answer.runs.length);
    told.classList.toggle("wrong", test.problem !== null);
    const picked = selection().length;
    compare.textContent = picked ? `Compare ${plural(picked, "run")}` : "Compare";
    compare.disabled = picked === 0;
    none.hidden = picked === 0;
    if (!place.contains(grid.element)) fill(place, grid.element);
    const known = new Map(columns.map((column) => [column.id, column]));
    const wanted = ids.map((id) => known.get(id)).filter((column) => column !== undefined);
    const filled = wanted.filter((column) => (chosen !== null && WRITTEN.includes(column.id)) || !isEmptyColumn(column, answer.runs));
    ranks = new Map(filled.map((column) => [column.id, standings(shown, column)]));
    grid.show(shown, filled, sorting);
    remember();
  }

  function remember(): void {
    const kept = new URLSearchParams();
    if (filter.value) kept.set("q", filter.value);
    if (sorting.column !== "started") kept.set("sort", sorting.column);
    if (!sorting.descending) kept.set("order", "up");
    keepInAddress("runs", kept);
  }

  function cell(run: Run, column: Column): Node | string {
    switch (column.kind) {
      case "name":
        return h(
          "a",
          { href: runHash(run.id), tabindex: "-1", title: run.name },
          narrow.matches && h("span", { class: "pill", "data-status": run.status, title: run.status }, h("span", { class: "unseen" }, `${run.status}: `)),
          isSelected(run.id) && swatch(run.id),
          run.name ? runName(run.name) : "(no name)",
        );
      case "status":
        return h("span", {}, statusPill(run.status, run.reason), run.disabled.length > 0 && h("span", { class: "flag", title: `switched off: ${run.disabled.join(", ")}` }, " !"));
      case "progress":
        return progressBar(run);
      case "result":
        return h("span", { class: "result" }, h("span", { class: isBroken(run, column) ? "wrong" : null }, column.text(run)), h("span", { class: "dim" }, oneLine(run.main_metric ?? "", 60)));
      case "curve":
        return sparks.draw(run);
      case "tags":
      case "note":
        return labelField(store, run, column.kind, (text) => (note.textContent = text));
      default:
        if (column.id === "started") return h("time", { title: moment(run.started), datetime: run.started }, ago(run.started));
        return h("span", { title: column.text(run), class: isBroken(run, column) ? "wrong" : null }, column.text(run));
    }
  }
}

/** Return whether the best, the newest or the longest is at the bottom of a column that ascends. */
function beginsDescending(column: Column): boolean {
  return column.better ? column.better === "greater" : column.kind === "number" || column.id === "started";
}

function isBroken(run: Run, column: Column): boolean {
  const value = column.value(run);
  return column.group !== "Config" && typeof value === "string" && /^(NaN|-?Infinity)$/.test(value);
}

function count(shown: number, all: number): string {
  return shown === all ? plural(all, "run") : `${whole(shown)} of ${plural(all, "run")}`;
}

function noRuns(roots: string[]): HTMLElement {
  if (exported) return empty("There are no runs in this file.");
  const where = roots.length ? roots.join(", ") : "runs";
  return empty(`No runs in ${where} yet.`, "Start one with ", h("code", {}, "hookloop train config.yaml"), "; it appears here by itself.");
}
