/** The first look at a run: how far, how fast, what is wrong. */

import type { RunDetails } from "../answers";
import { type Child, fill, h, update } from "../dom";
import { bytes, duration, moment, number, type Numeric, numeric, percent, shortTime } from "../format";
import { byInterest, isSetting } from "../judging";
import { runHash } from "../routes";
import { labelField } from "../runs/labels";
import { clip, oneLine, valueText } from "../text";
import { copyable } from "./copying";
import { mainCurves } from "./main_curve";
import { box, cellText, facts, table } from "./tables";
import type { Part } from "./view";

/** Show the overview. */
export function showOverview(part: Part): void {
  const told = h("p", { class: "dim", role: "status" });
  const labels = h("div", { class: "labels" });
  const grid = h("div", { class: "boxes" });
  fill(part.place, labels, told, mainCurves(part), grid);
  const { store } = part.board;
  const name = (which: "tags" | "note"): HTMLElement =>
    h("div", { class: "field grow" }, h("span", {}, which === "tags" ? "Tags" : "Note"), labelField(store, store.find(part.run) ?? part.details(), which, (text) => (told.textContent = text)));
  let open = store.canChange;
  fill(labels, name("tags"), name("note"));
  // Whether labels can be changed is known with the list of runs, which may come later.
  const leave = store.changed.add(() => {
    if (store.canChange === open) return;
    open = store.canChange;
    fill(labels, name("tags"), name("note"));
  });
  part.signal.addEventListener("abort", leave);
  show();
  part.onChange(show);

  function show(): void {
    const run = part.details();
    update(grid, problemBox(run), progressBox(run), metricsBox(run), speedBox(run), warningsBox(run), historyBox(run), commandBox(run));
  }
}

function problemBox(run: RunDetails): Child {
  const off = run.disabled_hooks;
  if (!run.problem && off.length === 0) return h("section", { hidden: true });
  const rows = Object.entries(run.problem ?? {}).filter(([, value]) => value !== null && value !== "");
  return h(
    "section",
    { class: "box problem wide" },
    h("h2", {}, run.problem ? "Problem" : "Hooks switched off"),
    rows.map(([name, value]) => h("div", {}, h("p", { class: "dim" }, name), h("pre", {}, clip(valueText(value, 20_000), 20_000)))),
    off.map((each) => h("p", {}, h("a", { href: runHash(run.id, "hooks") }, each.hook), ` was switched off at ${each.point}: ${clip(each.error, 2000)}`)),
  );
}

function progressBox(run: RunDetails): HTMLElement {
  const total = (now: Numeric, all: number | null): string => (all ? `${number(now)} of ${number(all)}` : number(now));
  const more = Object.entries(run.progress).filter(([name, value]) => name !== "iter" && name !== "epoch" && value !== null);
  return box(
    "Progress",
    facts([
      ["iteration", total(run.progress["iter"] ?? run.iters, run.total_iters)],
      ["epoch", total(run.progress["epoch"] ?? run.epochs, run.total_epochs)],
      ...more.map(([name, value]): [string, Child] => [name, number(value)]),
      ["time to go", run.status === "running" ? duration(run.remaining) : "–"],
      ["duration", duration(run.seconds)],
      ["started", moment(run.started)],
      ["ranks", number(run.ranks)],
    ]),
  );
}

function metricsBox(run: RunDetails): HTMLElement {
  const main = run.main_metric === null ? [] : [run.main_metric];
  const names = byInterest(Object.keys(run.metrics), main, run).filter((name) => isSetting(name) || !run.machine.includes(name));
  const rows = names.map((name) => {
    const best = run.bests[name];
    const where = best && best.iter !== null ? number(best.iter) : "";
    return [main.includes(name) ? h("strong", {}, name) : name, metricText(run.metrics[name]), best ? number(best.value) : "", where];
  });
  if (rows.length === 0) return box("Metrics", h("p", { class: "dim" }, "Nothing was recorded yet."));
  return box("Metrics", table("Last and best metrics", ["metric", "last", "best", "at iteration"], rows, [false, true, true, true]));
}

// A result that is not a number is what is wrong with the run.
function metricText(value: Numeric): Child {
  return Number.isFinite(numeric(value)) ? number(value) : h("span", { class: "wrong" }, number(value));
}

function speedBox(run: RunDetails): HTMLElement {
  const { iter_time: iter, data_time: data, ...more } = run.speed;
  const wait = numeric(data) / numeric(iter);
  return box(
    "Speed and memory",
    facts([
      ["time per iteration", shortTime(iter)],
      ["iterations/s", Number.isFinite(1 / numeric(iter)) ? number(1 / numeric(iter), 3) : "–"],
      ["waiting for data", Number.isFinite(wait) ? `${shortTime(data)}, ${percent(wait)} of the iteration` : shortTime(data)],
      ...Object.entries(more).map(([name, value]): [string, Child] => [name.replaceAll("_", " "), /(^|_)time(_|$)|seconds$/.test(name) ? shortTime(value) : number(value)]),
      ...Object.entries(run.memory).map(([name, value]): [string, Child] => [name.replaceAll("_", " "), memoryText(name, value)]),
    ]),
    Number.isFinite(wait) && wait > 0.5 && h("p", {}, "More than half of the time goes into waiting for data: more workers may help."),
  );
}

function memoryText(name: string, value: Numeric): string {
  if (/percent|share|util/.test(name)) return number(value);
  return bytes(value);
}

function warningsBox(run: RunDetails): HTMLElement {
  if (run.warnings.length === 0) return box("Warnings", h("p", { class: "dim" }, "None."));
  const lines = run.warnings.toReversed().map((each) => h("li", {}, h("span", { class: "dim" }, each.time ? `${moment(each.time)} ` : ""), clip(each.text, 2000)));
  return box(`Warnings (last ${run.warnings.length})`, h("ul", { class: "warnings" }, lines), h("p", {}, h("a", { href: runHash(run.id, "log") }, "The whole log")));
}

function historyBox(run: RunDetails): HTMLElement {
  const starts = run.starts.map((start, index) => {
    const what = index ? `resumed at iteration ${number(start.iter)}` : "started";
    return h("li", {}, h("span", { class: "dim" }, `${moment(start.time)} `), `${what}${start.host ? ` on ${start.host}` : ""}`);
  });
  const changes = run.changes.map((change) => {
    const who = change.by ? `, by ${oneLine(change.by)}` : "";
    const back = change["how"] === "rewound";
    const what = back
      ? `went back from iteration ${number(change.old as Numeric)} to ${number(change.new as Numeric)}`
      : `${change.key ?? "a value"} from ${oneLine(cellText(change.old))} to ${oneLine(cellText(change.new))} at iteration ${number(change.iter)}${who}`;
    return h("li", {}, change.time ? h("span", { class: "dim" }, `${moment(change.time)} `) : null, what);
  });
  return box(
    "Starts and intended changes",
    starts.length + changes.length === 0 && h("p", { class: "dim" }, "Nothing was recorded."),
    h("ul", { class: "history" }, starts, changes),
  );
}

function commandBox(run: RunDetails): HTMLElement {
  const why = run.has_config ? "It is running; once it has ended, it can be continued." : "It has no config: its own script continues it.";
  return box("Directory", h("p", {}, h("code", {}, run.path)), run.command ? copyable("continue", run.command) : h("p", { class: "dim" }, why));
}
