/** Small pieces that show a run: its state, its progress, its colour. */

import type { Run, Status } from "../answers";
import { look } from "../colours";
import { h, style } from "../dom";
import { duration, number } from "../format";
import { oneLine } from "../text";
import { progressOf } from "./columns";

/** As many characters of the end of a name are always shown. */
const END = 8;

/** Show a name that keeps its end where there is no room for all of it: runs differ there, as by a seed or a trial. */
export function runName(name: string, most = 300): HTMLElement {
  const line = oneLine(name, most);
  const cut = Math.max(0, line.length - END);
  return h("span", { class: "ends", title: name }, h("span", { class: "start" }, line.slice(0, cut)), h("span", {}, line.slice(cut)));
}

/** Show a state by word and colour. */
export function statusPill(status: Status, reason = ""): HTMLElement {
  return h("span", { class: "pill", "data-status": status, title: reason || null }, status);
}

/** Show how far a run is, with the time to go while it trains. */
export function progressBar(run: Run): HTMLElement {
  const share = progressOf(run);
  if (share === undefined) {
    return h("span", { class: "progress-text" }, run.iters === null ? "–" : `${number(run.iters)} iterations`);
  }
  const percent = Math.floor(share * 100);
  const fill = style(h("span", { class: "fill" }), { width: `${percent}%` });
  const togo = run.status === "running" && run.remaining !== null ? `${duration(run.remaining)} left` : "";
  return h(
    "span",
    { class: "progress", "data-status": run.status },
    h(
      "span",
      {
        class: "bar",
        role: "progressbar",
        "aria-valuenow": percent,
        "aria-valuemin": 0,
        "aria-valuemax": 100,
        "aria-label": "progress",
      },
      fill,
    ),
    h("span", { class: "progress-text" }, `${percent} %`, togo && h("span", { class: "dim" }, ` ${togo}`)),
  );
}

/** Show the colour that a run has in every chart. */
export function swatch(run: string): HTMLElement {
  const { colour, dash } = look(run);
  const element = h("span", { class: "swatch", "aria-hidden": "true", "data-dash": dash.length ? dash[0]! : null });
  return style(element, { color: colour });
}
