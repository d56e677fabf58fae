/** The choice of runs and metrics beside the charts. */

import type { Run } from "../answers";
import { checkbox, fill, h, keepingFocus, later } from "../dom";
import { readFilter } from "../runs/filter";
import { runName, statusPill, swatch } from "../runs/parts";
import type { Store } from "../store";
import { oneLine } from "../text";
import { groupMetrics } from "./groups";

const MOST = 60;

export interface SidebarOptions {
  runs: () => string[];
  metrics: () => string[];
  isOfMachine: (metric: string) => boolean;
  isHidden: (metric: string) => boolean;
  setRuns: (runs: string[]) => void;
  setMetrics: (metrics: string[] | null) => void;
}

/** Make the sidebar; `show` brings it up to date. */
export function sidebar(store: Store, options: SidebarOptions): { element: HTMLElement; show: () => void } {
  const soon = later(80, show);
  const find = h("input", { type: "search", "aria-label": "Find runs", placeholder: "find runs", oninput: () => soon() });
  const runList = h("div", { class: "pick-list" });
  const metricList = h("div", { class: "pick-list" });
  const summary = h("summary", {}, "Runs and metrics");
  const element = h(
    "details",
    { class: "sidebar", open: window.innerWidth >= 900 },
    summary,
    h("fieldset", {}, h("legend", {}, "Runs"), find, runList),
    h("fieldset", {}, h("legend", {}, "Metrics"), metricList),
  );
  return { element, show };

  function show(): void {
    keepingFocus(element, () => {
      showRuns();
      showMetrics();
    });
  }

  function showRuns(): void {
    const chosen = new Set(options.runs());
    const matching = store.runs.filter(readFilter(find.value, store.runs).test);
    const known = new Map(matching.map((run) => [run.id, run]));
    const first = [
      ...[...chosen].map((id) => known.get(id)).filter((run) => run !== undefined),
      ...matching.filter((run) => !chosen.has(run.id)).sort(newest),
    ];
    const left = first.length - MOST;
    fill(
      runList,
      first.slice(0, Math.max(MOST, chosen.size)).map((run) =>
        checkbox(
          [chosen.has(run.id) && swatch(run.id), runName(run.name), run.status === "running" && statusPill(run.status)],
          chosen.has(run.id),
          (on) => options.setRuns(on ? [...options.runs(), run.id] : options.runs().filter((id) => id !== run.id)),
          { "data-keep": `run:${run.id}` },
        ),
      ),
      left > 0 && h("p", { class: "dim" }, `${left} more; type to find them.`),
      first.length === 0 && h("p", { class: "dim" }, "No run matches."),
    );
  }

  function showMetrics(): void {
    const all = options.metrics();
    const shown = all.filter((name) => !options.isHidden(name));
    const machine = all.filter((name) => options.isOfMachine(name)).sort();
    fill(
      metricList,
      h(
        "p",
        { class: "row" },
        h("button", { type: "button", class: "quiet small", "data-keep": "all", onclick: () => options.setMetrics(null) }, "All"),
        h("button", { type: "button", class: "quiet small", "data-keep": "losses", onclick: () => options.setMetrics(all.filter((name) => /(^|\/)(loss|accuracy)$/.test(name))) }, "Loss and accuracy"),
      ),
      groupMetrics(all.filter((name) => !options.isOfMachine(name))).map((group) => [
        h("p", { class: "group-name" }, group.name),
        group.metrics.map((name) => choose(name, name.slice(name.indexOf("/") + 1))),
      ]),
      machine.length > 0 && [h("p", { class: "group-name" }, "the machine"), machine.map((name) => choose(name, name))],
    );

    function choose(name: string, label: string): HTMLElement {
      return checkbox(
        h("span", { class: "run-name", title: name }, oneLine(label, 80)),
        !options.isHidden(name),
        (on) => options.setMetrics(on ? [...shown, name] : shown.filter((each) => each !== name)),
        { "data-keep": `metric:${name}` },
      );
    }
  }
}

function newest(one: Run, other: Run): number {
  return (other.started ?? "").localeCompare(one.started ?? "");
}
