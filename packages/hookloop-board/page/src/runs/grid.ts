/** A table of which only the rows in sight are in the document: thousands of runs open at once. */

import type { Run } from "../answers";
import { fill, h, style } from "../dom";
import { plural } from "../format";
import type { Column, Sorting, Standing } from "./columns";

const ROW = 38;
const SPARE = 12;
/** On a phone, name, result and curve of a run are side by side. */
const NARROW = 600;
const MOST_NARROW: Partial<Record<Column["kind"], number>> = { name: 136, number: 88, result: 88, curve: 112 };

export interface GridOptions {
  /** Make the content of a cell. */
  cell: (run: Run, column: Column) => Node | string;
  /** Return where a value stands among those of the other runs. */
  standing: (run: Run, column: Column) => Standing | undefined;
  sort: (column: Column) => void;
  select: (run: Run, on: boolean) => void;
  selectAll: (on: boolean) => void;
  isSelected: (run: Run) => boolean;
  open: (run: Run) => void;
}

/** The table of runs: sticky headings, rows by need, moved through by keys. */
export class Grid {
  readonly element: HTMLElement;
  private readonly table = h("table", { class: "runs", "data-testid": "runs-table" });
  private readonly columnsOf = h("colgroup");
  private readonly head = h("thead");
  private readonly body = h("tbody");
  private runs: Run[] = [];
  private columns: Column[] = [];
  private active = 0;
  private shown = { begin: -1, end: -1 };
  private frame = 0;

  constructor(private readonly options: GridOptions) {
    this.table.append(h("caption", { class: "unseen" }, "Runs"), this.columnsOf, this.head, this.body);
    this.element = h("div", { class: "grid-scroll", onscroll: () => this.soon(), onkeydown: (e: KeyboardEvent) => this.key(e) }, this.table);
    const watch = new ResizeObserver(() => this.soon());
    watch.observe(this.element);
  }

  /** Show these runs in these columns. */
  show(runs: Run[], columns: Column[], sorting: Sorting): void {
    const same = columns.map((column) => column.id).join("\n") === this.columns.map((column) => column.id).join("\n");
    const sight = this.sight();
    this.runs = runs;
    this.columns = columns;
    this.active = Math.min(this.active, Math.max(0, runs.length - 1));
    this.table.setAttribute("aria-rowcount", String(runs.length + 1));
    this.table.dataset["rows"] = String(runs.length);
    if (!same || this.columnsOf.childElementCount === 0) this.setWidths();
    this.showHead(sorting);
    this.draw(true, sight);
  }

  /** Put the focus on the row that was last active. */
  focus(): void {
    this.move(this.active);
  }

  private setWidths(): void {
    const isNarrow = this.element.clientWidth > 0 && this.element.clientWidth < NARROW;
    const widths = this.columns.map((column) => (isNarrow ? Math.min(widthOf(column, this.runs), MOST_NARROW[column.kind] ?? Infinity) : widthOf(column, this.runs)));
    const all = [isNarrow ? 30 : 44, ...widths];
    fill(this.columnsOf, all.map((width) => style(h("col"), { width: `${width}px` })));
    style(this.table, { "min-width": `${all.reduce((sum, width) => sum + width, 0)}px` });
  }

  private showHead(sorting: Sorting): void {
    const every = this.runs.length > 0 && this.runs.every((run) => this.options.isSelected(run));
    const box = h("input", {
      type: "checkbox",
      "aria-label": "Select all runs that are shown",
      onchange: () => this.options.selectAll(box.checked),
    });
    box.checked = every;
    box.indeterminate = !every && this.runs.some((run) => this.options.isSelected(run));
    const heads = this.columns.map((column) => {
      const here = sorting.column === column.id;
      const order = here ? (sorting.descending ? "descending" : "ascending") : null;
      const button = h(
        "button",
        { type: "button", title: column.label, onclick: () => this.options.sort(column) },
        h("span", { class: "label" }, column.label),
        h("span", { class: "arrow", "aria-hidden": "true" }, here ? (sorting.descending ? "▼" : "▲") : ""),
      );
      return h("th", { scope: "col", "aria-sort": order, class: classOf(column) }, button);
    });
    const focused = this.head.contains(document.activeElement) ? [...this.head.querySelectorAll("button, input")].indexOf(document.activeElement!) : -1;
    fill(this.head, h("tr", { "aria-rowindex": 1 }, h("th", { scope: "col", class: "pick" }, box), heads));
    if (focused >= 0) this.head.querySelectorAll<HTMLElement>("button, input")[focused]?.focus();
  }

  private soon(): void {
    if (!this.frame) {
      this.frame = requestAnimationFrame(() => {
        this.frame = 0;
        this.draw(false);
      });
    }
  }

  // Read before anything changes: afterwards it would make the browser lay out the page an extra time.
  private sight(): { scrollTop: number; clientHeight: number } {
    const { scrollTop, clientHeight } = this.element;
    return { scrollTop, clientHeight };
  }

  private draw(again: boolean, { scrollTop, clientHeight } = this.sight()): void {
    const begin = Math.max(0, Math.floor(scrollTop / ROW) - SPARE);
    const end = Math.min(this.runs.length, Math.ceil((scrollTop + Math.max(clientHeight, 600)) / ROW) + SPARE);
    if (!again && begin === this.shown.begin && end === this.shown.end) return;
    const held = document.activeElement;
    // A field that is being edited keeps its rows; they are drawn again when it is left.
    if (held instanceof HTMLInputElement && held.type !== "checkbox" && this.body.contains(held)) return;
    const row = held instanceof HTMLElement && this.body.contains(held) ? held.closest("tr")?.dataset["run"] : undefined;
    const box = held instanceof HTMLInputElement;
    this.shown = { begin, end };
    const rows = this.runs.slice(begin, end).map((run, index) => this.row(run, begin + index));
    fill(this.body, spacer(begin * ROW), rows, spacer((this.runs.length - end) * ROW));
    if (row !== undefined) {
      const same = rows.find((each) => each.dataset["run"] === row);
      (box ? same?.querySelector<HTMLElement>("input[type=checkbox]") : same)?.focus({ preventScroll: true });
    }
  }

  private row(run: Run, index: number): HTMLTableRowElement {
    const selected = this.options.isSelected(run);
    const box = h("input", {
      type: "checkbox",
      tabindex: "-1",
      "aria-label": `Compare ${run.name}`,
      onchange: () => this.options.select(run, box.checked),
    });
    box.checked = selected;
    const cells = this.columns.map((column) => this.cell(run, column));
    return h(
      "tr",
      {
        "data-testid": "run-row",
        "data-run": run.id,
        "data-status": run.status,
        "aria-rowindex": index + 2,
        "aria-selected": String(selected),
        tabindex: index === this.active ? 0 : -1,
        onfocus: () => (this.active = index),
        ondblclick: () => this.options.open(run),
      },
      h("td", { class: "pick" }, box),
      cells,
    );
  }

  // A worse result looks worse, by its words for whom cannot see it.
  private cell(run: Run, column: Column): HTMLElement {
    const cell = h("td", { class: classOf(column), role: column.kind === "name" ? "rowheader" : null }, this.options.cell(run, column));
    const standing = this.options.standing(run, column);
    if (!standing) return cell;
    if (standing.rank === 1) cell.classList.add("best");
    cell.dataset["rank"] = String(standing.rank);
    cell.title = `${column.text(run)}: ${standing.rank === 1 ? "the best" : `number ${standing.rank}`} of ${plural(standing.of, "run")}`;
    return style(cell, { "--worse": `${Math.round(Math.max(0, standing.share - 0.4) * 30)}%` });
  }

  private key(event: KeyboardEvent): void {
    const target = event.target as HTMLElement;
    if (target instanceof HTMLInputElement && target.type !== "checkbox") return;
    const run = this.runs[this.active];
    const page = Math.max(1, Math.floor(this.element.clientHeight / ROW) - 2);
    const steps: Record<string, number> = {
      ArrowDown: this.active + 1,
      ArrowUp: this.active - 1,
      PageDown: this.active + page,
      PageUp: this.active - page,
      Home: 0,
      End: this.runs.length - 1,
    };
    const onRow = target instanceof HTMLTableRowElement || this.body.contains(target);
    if (event.key in steps && (onRow || event.key === "ArrowDown")) this.move(steps[event.key]!);
    else if (event.key === " " && target instanceof HTMLTableRowElement && run) this.options.select(run, !this.options.isSelected(run));
    else if (event.key === "Enter" && target instanceof HTMLTableRowElement && run) this.options.open(run);
    else return;
    event.preventDefault();
  }

  private move(index: number): void {
    if (this.runs.length === 0) return;
    this.active = Math.max(0, Math.min(this.runs.length - 1, index));
    const head = this.head.offsetHeight;
    const top = this.active * ROW;
    const { scrollTop, clientHeight } = this.element;
    if (top < scrollTop) this.element.scrollTop = top;
    else if (top + ROW > scrollTop + clientHeight - head) this.element.scrollTop = top + ROW - clientHeight + head;
    this.draw(false);
    const row = this.body.querySelector<HTMLElement>(`tr[aria-rowindex="${this.active + 2}"]`);
    this.body.querySelectorAll("tr[tabindex='0']").forEach((each) => each.setAttribute("tabindex", "-1"));
    row?.setAttribute("tabindex", "0");
    row?.focus({ preventScroll: true });
  }
}

function spacer(height: number): HTMLElement | null {
  return height > 0 ? style(h("tr", { class: "spacer", "aria-hidden": "true" }), { height: `${height}px` }) : null;
}

function classOf(column: Column): string {
  return `is-${column.kind}`;
}

function widthOf(column: Column, runs: Run[]): number {
  const own = { name: 90, status: 118, progress: runs.some((run) => run.status === "running") ? 226 : 140, curve: 128, result: 100, tags: 130, note: 180, number: 84, text: 84 }[column.kind];
  let longest = Math.min(column.label.length, 22) + 2;
  for (const run of runs) longest = Math.max(longest, Math.min(column.text(run).length, 34));
  return column.kind === "progress" || column.kind === "status" || column.kind === "curve" ? own : Math.max(own, Math.round(longest * (column.kind === "name" ? 8.8 : 7.6)) + 22);
}
