/** A parameter against the metric, one point per trial. */

import type { Trial } from "../answers";
import { h, svg } from "../dom";
import { number, plural } from "../format";
import { oneLine, valueText } from "../text";
import { goodness, type Scale, shade, spaced } from "./scales";

const WIDTH = 520;
const HEIGHT = 280;
const LEFT = 64;
const BOTTOM = 40;
/** Between the axes and the first and last points, which would lie on their texts. */
const PAD = 12;
/** The width of a letter, which is larger in the small picture of a phone. */
const letter = (): number => (window.innerWidth <= 600 ? 11 : 6.5);

/** Draw the points; each opens its run by click or Enter. */
export function scatter(trials: Trial[], across: Scale, up: Scale, best: Trial | null, isMore: boolean, dark: boolean, open: (trial: Trial) => void): HTMLElement {
  const x = (place: number): number => LEFT + PAD + place * (WIDTH - LEFT - 20 - 2 * PAD);
  const y = (place: number): number => 12 + (1 - place) * (HEIGHT - BOTTOM - 24 - PAD);
  const points = trials.map((trial) => {
    const [left, top] = [across.at(trial.params[across.name]), up.at(trial.value)];
    if (left === null || top === null) return null;
    const label = `trial ${trial.number}: ${across.name} ${valueText(trial.params[across.name], 60)}, ${up.name} ${number(trial.value)}`;
    const point = svg("circle", {
      cx: x(left),
      cy: y(top),
      r: trial === best ? 7 : 5,
      fill: shade(goodness(top, isMore), dark),
      class: trial === best ? "point best" : "point",
      "data-keep": `trial/${trial.number}`,
      tabindex: trial.run ? 0 : null,
      role: trial.run ? "link" : null,
      "aria-label": label,
      onclick: () => open(trial),
      onkeydown: (event: KeyboardEvent) => event.key === "Enter" && open(trial),
    });
    point.append(svg("title", {}, label));
    return point;
  });
  const left = points.filter((point) => point === null).length;
  const acrossTicks = spaced(across.ticks, WIDTH - LEFT - 20 - 2 * PAD, letter()).map((tick) => svg("text", { x: x(tick.at), y: HEIGHT - BOTTOM + 10, "text-anchor": "middle" }, oneLine(tick.text, 12)));
  const upTicks = up.ticks.map((tick) => [
    svg("line", { class: "grid", x1: LEFT, x2: WIDTH - 20, y1: y(tick.at), y2: y(tick.at) }),
    svg("text", { x: LEFT - 8, y: y(tick.at) + 4, "text-anchor": "end" }, oneLine(tick.text, 12)),
  ]);
  return h(
    "figure",
    { class: "scatter" },
    h("figcaption", {}, `${oneLine(up.name, 60)} by ${oneLine(across.name, 60)}${across.log ? " (log)" : ""}`),
    svg("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "group", "aria-label": `${up.name} by ${across.name}` }, upTicks, acrossTicks, svg("text", { class: "axis-name", x: (LEFT + WIDTH - 20) / 2, y: HEIGHT - 8, "text-anchor": "middle" }, oneLine(across.name, 60)), points),
    left > 0 && h("p", { class: "dim" }, `${plural(left, "trial")} without a value ${left === 1 ? "is" : "are"} not shown here.`),
  );
}
