/** The view of sweeps: which values of the parameters did well. */

import type { Sweep, Trial } from "../answers";
import { get } from "../api";
import { atMost, choice, fill, h, keepingFocus, style } from "../dom";
import { number, numeric, plural } from "../format";
import { curvesHash, keepInAddress, runHash } from "../routes";
import { cellText, table } from "../run/tables";
import { oneLine } from "../text";
import { theme, themeChanged } from "../theme";
import { type Board, empty, failure, type View, waiting } from "../view";
import { parallel } from "./parallel";
import { makeScale, shade } from "./scales";
import { scatter } from "./scatter";

/** Open the sweeps; the address holds which one. */
export function openSweeps(board: Board, query: URLSearchParams): View {
  let sweeps: Sweep[] = [];
  let known = "";
  let chosen = query.get("sweep");
  let parameter = query.get("parameter");
  const limits = new Map<string, [number, number]>();
  const stop = new AbortController();
  const place = h("div", {}, waiting("the sweeps"));
  const element = h("section", { class: "view", "aria-label": "Sweeps" }, h("h1", { class: "unseen" }, "Sweeps"), place);
  const refresh = atMost(1500, () => void load());
  const leave = [board.store.changed.add(refresh), themeChanged.add(show)];
  void load();
  return {
    element,
    title: "Sweeps",
    close: () => {
      stop.abort();
      refresh.cancel();
      leave.forEach((call) => call());
    },
  };

  async function load(): Promise<void> {
    try {
      ({ sweeps } = await get<{ sweeps: Sweep[] }>("/api/sweeps", stop.signal));
      const now = JSON.stringify(sweeps);
      if (now !== known || now === "[]") show();
      known = now;
    } catch (error) {
      if (!stop.signal.aborted && known === "") fill(place, failure(error, () => void load()));
    }
  }

  function show(): void {
    keepingFocus(place, draw);
  }

  function draw(): void {
    const sweep = sweeps.find((each) => each.id === chosen) ?? sweeps[0];
    if (!sweep) return fill(place, empty("There are no sweeps here.", "Start one with ", h("code", {}, "hookloop sweep config.yaml"), "."));
    const across = parameter !== null && sweep.parameters.includes(parameter) ? parameter : sweep.parameters[0];
    const runs = sweep.trials.map((trial) => trial.run).filter((run) => run !== null);
    fill(
      place,
      h(
        "div",
        { class: "toolbar" },
        choice("Sweep", sweeps.map((each): [string, string] => [each.id, oneLine(each.name, 60)]), sweep.id, (id) => change(id, null), { "data-keep": "sweep" }),
        across !== undefined && choice("Parameter", sweep.parameters.map((name): [string, string] => [name, oneLine(name, 60)]), across, (name) => change(sweep.id, name), { "data-keep": "parameter" }),
        runs.length > 0 && h("a", { class: "button", href: curvesHash(runs.slice(0, 40)) }, "Curves of the trials"),
        h("span", { class: "dim" }, `${plural(sweep.trials.length, "trial")}, ${sweep.direction ?? "compare"} ${sweep.metric ?? "value"}`),
      ),
      content(sweep, across, limits),
    );
  }

  function change(sweep: string, name: string | null): void {
    if (sweep !== chosen && name === null) limits.clear();
    [chosen, parameter] = [sweep, name];
    keepInAddress("sweeps", new URLSearchParams(name === null ? { sweep } : { sweep, parameter: name }));
    show();
  }
}

function content(sweep: Sweep, across: string | undefined, limits: Map<string, [number, number]>): HTMLElement {
  const { trials } = sweep;
  const metric = sweep.metric ?? "value";
  const up = makeScale(metric, trials.map((trial) => trial.value));
  const scales = sweep.parameters.map((name) => makeScale(name, trials.map((trial) => trial.params[name]), sweep.log.includes(name)));
  const isMore = isMoreBetter(sweep);
  const dark = theme() === "dark";
  const best = bestTrial(sweep);
  const list = h("div", { class: "box" });
  const lines = parallel({
    scales: [...scales, up],
    places: (trial) => [...scales.map((scale) => scale.at(trial.params[scale.name])), up.at(trial.value)],
    trials,
    limits,
    dark,
    isMore,
    open,
    changed: (shown) => fill(list, h("h2", {}, `${plural(shown.length, "trial")} within the limits`), trialTable(sweep, shown, best)),
  });
  const scale = scales.find((each) => each.name === across);
  return h(
    "div",
    { class: "sweep" },
    h("section", { class: "box" }, h("h2", {}, "Parallel coordinates"), h("p", { class: "dim" }, "Drag along an axis to limit it, click it to free it; a line opens its run."), colourLegend(metric, trials, isMore, dark), lines),
    scale && h("section", { class: "box" }, h("h2", {}, "Parameter against metric"), scatter(trials, scale, up, best, isMore, dark, open)),
    list,
  );
}

// What the colours mean: from the worst value to the best.
function colourLegend(metric: string, trials: Trial[], isMore: boolean, dark: boolean): HTMLElement {
  const values = trials.map((trial) => numeric(trial.value)).filter(Number.isFinite);
  const ends: [number, number] = [Math.min(...values), Math.max(...values)];
  const [worst, best] = isMore ? ends : [ends[1], ends[0]];
  const shades = [0, 0.25, 0.5, 0.75, 1].map((place) => shade(place, dark));
  return h(
    "p",
    { class: "colours", "data-testid": "colours" },
    h("span", {}, oneLine(metric, 60)),
    values.length > 1 && h("span", { class: "dim" }, `worst ${number(worst)}`),
    values.length > 1 && style(h("span", { class: "scale", "aria-hidden": "true" }), { background: `linear-gradient(to right, ${shades.join(", ")})` }),
    values.length > 0 && h("span", { class: "dim" }, `best ${number(best)}`),
    values.length < trials.length && [style(h("span", { class: "scale one", "aria-hidden": "true" }), { background: shade(null, dark) }), h("span", { class: "dim" }, "no value")],
  );
}

function isMoreBetter(sweep: Sweep): boolean {
  return sweep.direction?.startsWith("max") ?? false;
}

function open(trial: Trial): void {
  if (trial.run) window.location.hash = runHash(trial.run);
}

/** Return the trial with the best value, in the direction of the sweep. */
export function bestTrial(sweep: Sweep): Trial | null {
  const sign = isMoreBetter(sweep) ? -1 : 1;
  const done = sweep.trials.filter((trial) => Number.isFinite(numeric(trial.value)));
  return done.reduce<Trial | null>((best, trial) => (best && sign * numeric(best.value) <= sign * numeric(trial.value) ? best : trial), null);
}

function trialTable(sweep: Sweep, trials: Trial[], best: Trial | null): HTMLElement {
  const sign = isMoreBetter(sweep) ? -1 : 1;
  const key = (trial: Trial): number => (Number.isFinite(numeric(trial.value)) ? sign * numeric(trial.value) : Infinity);
  const rows = [...trials].sort((one, other) => key(one) - key(other) || one.number - other.number).slice(0, 200);
  return table(
    "Trials, best first",
    ["trial", "state", sweep.metric ?? "value", ...sweep.parameters],
    rows.map((trial) => [
      trial.run ? h("a", { href: runHash(trial.run) }, `trial ${trial.number}`) : `trial ${trial.number}`,
      trial.problem ? `${trial.state}: ${oneLine(trial.problem, 200)}` : trial.state,
      trial === best ? h("strong", {}, number(trial.value)) : number(trial.value),
      ...sweep.parameters.map((name) => (name in trial.params ? cellText(trial.params[name]) : "")),
    ]),
    [false, false, true, ...sweep.parameters.map((name) => trials.every((trial) => !(name in trial.params) || typeof trial.params[name] === "number"))],
  );
}
