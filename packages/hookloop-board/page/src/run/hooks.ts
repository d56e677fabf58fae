/** The timetable: mount points down, hooks across, each cell with what the call costs. */

import type { HookCell, HookColumn, Hooks } from "../answers";
import { get, runPath } from "../api";
import { checkbox, type Child, fill, h, keepingFocus, style } from "../dom";
import { number, percent, plural, shortTime } from "../format";
import { once } from "../lists";
import { clip, oneLine, valueText } from "../text";
import { empty, load } from "../view";
import { heatOf } from "./heat";
import { facts } from "./tables";
import type { Part } from "./view";

/** Show the timetable; what hooks are at now follows the run. */
export function showHooks(part: Part): void {
  let chosen: { hook: string; point: string | null } | null = null;
  let answer: Hooks | null = null;
  let allPoints = false;
  const place = h("div", {});
  const about = h("aside", { class: "about box", "aria-label": "The chosen hook" });
  fill(part.place, place);
  const ask = (signal: AbortSignal): Promise<Hooks> => get<Hooks>(runPath(part.run, "hooks"), signal);
  void load(place, "the hooks", ask, begin, part.signal);
  part.onChange(() => void refresh());

  function begin(hooks: Hooks): Child {
    answer = hooks;
    if (hooks.hooks.length === 0) return empty("The run recorded no timetable.", "Runs that were started with this version or later have one.");
    showAbout();
    const bar = h("div", { class: "toolbar" }, summary(hooks), checkbox("Mount points without calls, too", allPoints, (on) => ((allPoints = on), keepingFocus(place, () => fill(place, begin(hooks)))), { "data-keep": "all" }));
    return [bar, h("div", { class: "with-about" }, grid(hooks, allPoints, choose), about)];
  }

  async function refresh(): Promise<void> {
    const newer = await ask(part.signal).catch(() => null);
    if (!newer || JSON.stringify(newer) === JSON.stringify(answer)) return;
    about.setAttribute("aria-live", "off"); // What changes every second is not read out.
    const old = place.querySelector(".timetable");
    const scroll = [old?.scrollLeft ?? 0, old?.scrollTop ?? 0] as const;
    keepingFocus(place, () => {
      fill(place, begin(newer));
      place.querySelector(".timetable")?.scrollTo(...scroll);
    });
  }

  function choose(hook: string, point: string | null): void {
    chosen = { hook, point };
    about.setAttribute("aria-live", "polite");
    showAbout();
  }

  function showAbout(): void {
    const hook = answer?.hooks.find((each) => each.name === chosen?.hook);
    const cell = answer?.cells.find((each) => each.hook === chosen?.hook && each.point === chosen.point);
    if (hook) fill(about, aboutHook(hook, cell));
    else fill(about, h("p", { class: "dim" }, "Choose a hook or a cell to see what it reads and writes, how often it acts, and what it is at now."));
  }
}

function summary(hooks: Hooks): HTMLElement {
  const parts = [
    plural(hooks.hooks.length, "hook"),
    hooks.iteration_seconds !== null && `${shortTime(hooks.iteration_seconds)} per iteration`,
    hooks.measured ? `measured over ${hooks.measured}` : "costs were not measured",
  ];
  return h("p", { class: "dim" }, parts.filter(Boolean).join(", "), ". A number is the order of the calls at a point; cells that cost 1 % of the iteration or more are coloured, more strongly the more they cost.");
}

function grid(hooks: Hooks, allPoints: boolean, choose: (hook: string, point: string | null) => void): HTMLElement {
  const cells = new Map(hooks.cells.map((cell) => [`${cell.point}\n${cell.hook}`, cell]));
  const heads = hooks.hooks.map((hook) =>
    h(
      "th",
      { scope: "col", class: hook.disabled ? "off" : null },
      h("button", { type: "button", "data-keep": `/${hook.name}`, title: hook.disabled ? `${hook.name}: switched off` : hook.name, onclick: () => choose(hook.name, null) }, h("span", {}, oneLine(hook.name, 40), hook.disabled && " (off)")),
    ),
  );
  const used = new Set(hooks.cells.map((cell) => cell.point));
  const rows = hooks.points.filter((point) => allPoints || used.has(point)).map((point) =>
    h(
      "tr",
      {},
      h("th", { scope: "row" }, h("code", {}, point)),
      hooks.hooks.map((hook) => {
        const cell = cells.get(`${point}\n${hook.name}`);
        return cell ? filled(cell, hook, choose) : h("td", { class: "none" });
      }),
    ),
  );
  return h(
    "div",
    { class: "timetable", onkeydown: (event: KeyboardEvent) => walk(event) },
    h(
      "table",
      { "data-testid": "hooks-table" },
      h("caption", { class: "unseen" }, "Timetable: mount points down, hooks across"),
      h("thead", {}, h("tr", {}, h("th", { scope: "col", class: "corner" }, "mount point"), heads)),
      h("tbody", {}, rows),
    ),
  );
}

function filled(cell: HookCell, hook: HookColumn, choose: (hook: string, point: string | null) => void): HTMLElement {
  const off = hook.disabled?.point === cell.point;
  const cost = cell.share === null ? "" : percent(cell.share);
  const label = [`${hook.name} at ${cell.point}`, `number ${cell.order + 1}`, cell.calls !== null && `${number(cell.calls)} calls`, cost && `${cost} of the iteration`, off && "switched off"].filter(Boolean).join(", ");
  const open = (): void => choose(hook.name, cell.point);
  const button = h(
    "button",
    { type: "button", "data-keep": `${cell.point}/${hook.name}`, title: label, onclick: open, onfocus: open },
    h("span", { class: "order" }, cell.order + 1),
    h("span", { class: "cost" }, cost.replaceAll(" ", "") || (cell.calls === null ? "" : `${compact().format(cell.calls)}×`)),
    h("span", { class: "unseen" }, ` ${label}`),
  );
  return style(h("td", { class: hook.disabled ? "cell off" : "cell" }, button), { "--heat": `${Math.round(heatOf(cell.share) * 40)}%` });
}

const compact = once(() => new Intl.NumberFormat("en", { notation: "compact" }));

/** Move through the timetable by arrow keys, over empty cells. */
function walk(event: KeyboardEvent): void {
  const steps: Record<string, [number, number]> = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] };
  const step = steps[event.key];
  const cell = (event.target as HTMLElement).closest("td, th");
  const row = cell?.parentElement as HTMLTableRowElement | null;
  const table = cell?.closest("table");
  if (!step || !cell || !row || !table) return;
  event.preventDefault();
  let [down, across] = [row.rowIndex + step[0], [...row.cells].indexOf(cell as HTMLTableCellElement) + step[1]];
  for (; table.rows[down]?.cells[across]; down += step[0], across += step[1]) {
    const button = table.rows[down]!.cells[across]!.querySelector("button");
    if (button) return button.focus();
  }
}

function aboutHook(hook: HookColumn, cell: HookCell | undefined): Child {
  const list = (names: string[]): Child => (names.length ? names.map((name, index) => [index > 0 && ", ", h("code", {}, name)]) : "nothing");
  const every = Object.entries(hook.every).map(([point, interval]) => `${interval} at ${point}`);
  const rows: [string, Child][] = [
    ["type", h("code", {}, hook.type)],
    ["priority", number(hook.priority)],
    ["reads", list(hook.reads)],
    ["writes", list(hook.writes)],
    ["interval", every.length ? every.join(", ") : "each time"],
  ];
  if (hook.policy) rows.push(["when it fails", hook.policy === "disable" ? "it is switched off" : hook.policy === "raise" ? "the run fails" : hook.policy]);
  if (hook.ranks) rows.push(["ranks", hook.ranks]);
  if (cell) {
    const each = cell.seconds !== null && cell.calls ? `, ${shortTime(cell.seconds / cell.calls)} each` : "";
    rows.push([`at ${cell.point}`, `number ${cell.order + 1}, ${cell.calls === null ? "calls not counted" : `${number(cell.calls)} calls`}${each}`]);
    if (cell.share !== null) rows.push(["cost", `${percent(cell.share)} of the iteration`]);
  }
  const state = Object.entries(hook.state ?? {});
  return [
    h("h2", {}, oneLine(hook.name, 100)),
    hook.disabled && h("p", { class: "wrong" }, `Switched off at ${hook.disabled.point}: ${clip(hook.disabled.error, 2000)}`),
    facts(rows),
    state.length > 0 && [h("h3", {}, "What it is at now"), facts(state.map(([name, value]): [string, Child] => [name.replaceAll("_", " "), typeof value === "number" ? number(value) : valueText(value, 500)]))],
  ];
}
