/** The controls above the charts. */

import { checkbox, choice, h } from "../dom";
import { AXES, type Axis } from "./axes";
import type { Settings } from "./plot";
import { weightAt } from "./smoothing";

export interface ToolbarOptions {
  smoothing: number;
  setAxis: (axis: Axis) => void;
  setSmoothing: (place: number) => void;
  setLog: (on: boolean) => void;
  setAll: (on: boolean) => void;
  reset: () => void;
  png: () => void;
  csv: () => void;
}

/** Make the controls; `show` brings them up to date with the settings. */
export function toolbar(settings: Settings, options: ToolbarOptions): { element: HTMLElement; show: () => void } {
  const amount = h("output", {}, shown(options.smoothing));
  const slider = h("input", {
    type: "range",
    min: 0,
    max: 99,
    step: 1,
    "data-testid": "smoothing",
    "aria-label": "Smoothing",
    oninput: () => {
      amount.textContent = shown(Number(slider.value));
      options.setSmoothing(Number(slider.value));
    },
  });
  slider.value = String(options.smoothing);
  const reset = h("button", { type: "button", onclick: options.reset }, "Reset zoom");
  const keys = h(
    "details",
    { class: "drop keys" },
    h("summary", {}, "Keys"),
    h(
      "div",
      { class: "panel" },
      h("p", {}, "Drag over a chart to zoom, double-click to reset, Shift and drag to pan."),
      h("p", {}, "With a chart in focus: arrow keys move the cursor, Shift and arrows pan, + and − zoom, 0 resets."),
      h("p", {}, "▽ a resume, ◁ a return to a checkpoint, ◇ an intended change, × a value that is not finite, ▲ and ▼ one beyond the limits of the axis. The band is from the lowest to the highest value."),
    ),
  );
  const log = checkbox("Log scale", settings.log, options.setLog, { "data-testid": "log-scale" });
  const all = checkbox("All values", settings.all, options.setAll, { "data-testid": "all-values", title: "Also those so far away that they would flatten all others" });
  const element = h(
    "div",
    { class: "toolbar" },
    choice("Axis", AXES, settings.axis, (axis) => options.setAxis(axis as Axis), { "data-testid": "axis" }),
    h("label", { class: "field" }, h("span", {}, "Smoothing"), slider, amount),
    log,
    all,
    reset,
    h("button", { type: "button", "data-testid": "export-png", onclick: options.png }, "PNG"),
    h("button", { type: "button", "data-testid": "export-csv", onclick: options.csv }, "CSV"),
    keys,
  );
  const show = (): void => {
    reset.disabled = settings.range === null;
    log.querySelector("input")!.checked = settings.log;
    all.querySelector("input")!.checked = settings.all;
  };
  show();
  return { element, show };
}

function shown(place: number): string {
  return place ? weightAt(place).toFixed(2) : "off";
}
