/** Parallel coordinates: one axis per parameter, one line per trial, with limits that can be drawn or typed. */

import type { Trial } from "../answers";
import { fill, h, svg } from "../dom";
import { number } from "../format";
import { oneLine } from "../text";
import { goodness, type Scale, shade, within } from "./scales";

const TOP = 34;
const HEIGHT = 260;
const STEP = 0.05;

export interface ParallelOptions {
  scales: Scale[];
  /** The places of a trial on all axes; the last is the metric. */
  places: (trial: Trial) => (number | null)[];
  trials: Trial[];
  /** The limits of the axes by name, kept over newer trials. */
  limits: Map<string, [number, number]>;
  dark: boolean;
  /** Whether more of the metric is better. */
  isMore: boolean;
  open: (trial: Trial) => void;
  changed: (shown: Trial[]) => void;
}

/** Draw the coordinates; drag along an axis, or use the arrow keys on its ends, to limit it. */
export function parallel(options: ParallelOptions): HTMLElement {
  const { scales, trials } = options;
  const wide = Math.max(150 * scales.length, Math.min(1400, window.innerWidth - 80));
  const limits = scales.map((scale) => options.limits.get(scale.name) ?? null);
  const x = (axis: number): number => 76 + (axis * (wide - 152)) / Math.max(1, scales.length - 1);
  const y = (place: number): number => TOP + (1 - place) * HEIGHT;
  const lines = svg("g", { class: "lines" });
  const drawn = trials.map((trial) => {
    const places = options.places(trial);
    const points = places.map((place, axis) => (place === null ? null : `${x(axis)},${y(place)}`)).filter((point) => point !== null);
    const good = goodness(places.at(-1) ?? null, options.isMore);
    const line = svg("polyline", { points: points.join(" "), stroke: shade(good, options.dark), "stroke-width": 1.2 + 1.4 * (good ?? 0), class: trial.run ? "open" : null, onclick: () => options.open(trial) });
    line.append(svg("title", {}, `trial ${trial.number}: ${number(trial.value)}`));
    return { trial, places, line, good };
  });
  // The best on top of the others.
  lines.append(...[...drawn].sort((one, other) => (one.good ?? -1) - (other.good ?? -1)).map((each) => each.line));
  const axes = scales.map((scale, axis) => drawAxis(scale, axis));
  const picture = svg("svg", { viewBox: `0 0 ${wide} ${TOP + HEIGHT + 24}`, class: "parallel", role: "group", "aria-label": "Parallel coordinates of the trials" }, lines, axes.map((axis) => axis.element));
  show();
  const element = h("div", { class: "scroll" });
  fill(element, picture);
  picture.style.setProperty("width", `${wide}px`);
  return element;

  function show(): void {
    axes.forEach((axis) => axis.show());
    scales.forEach(({ name }, axis) => (limits[axis] ? options.limits.set(name, limits[axis]) : options.limits.delete(name)));
    const kept = drawn.filter((each) => within(each.places, limits));
    drawn.forEach((each) => each.line.classList.toggle("out", !kept.includes(each)));
    options.changed(kept.map((each) => each.trial));
  }

  function drawAxis(scale: Scale, axis: number): { element: SVGElement; show: () => void } {
    const band = svg("rect", { class: "limit", x: x(axis) - 8, width: 16 });
    const ends = ([1, 0] as const).map((end) => handle(scale, axis, end));
    const reach = svg("rect", { class: "reach", x: x(axis) - 14, y: TOP - 6, width: 28, height: HEIGHT + 12, onpointerdown: (event: PointerEvent) => drag(event, axis) });
    const isLast = axis === scales.length - 1 && axis > 0; // Beside it are no lines.
    const ticks = scale.ticks.map((tick) => svg("text", { x: x(axis) + (isLast ? 13 : -13), y: y(tick.at) + 4, "text-anchor": isLast ? "start" : "end" }, oneLine(tick.text, 14)));
    const name = svg("text", { class: "axis-name", x: x(axis), y: 16, "text-anchor": "middle" }, oneLine(scale.name, 22) + (scale.log ? " (log)" : ""));
    name.append(svg("title", {}, scale.name));
    const element = svg("g", {}, svg("line", { class: "rule", x1: x(axis), x2: x(axis), y1: TOP, y2: TOP + HEIGHT }), band, ticks, name, reach, ends);
    return {
      element,
      show: () => {
        const [low, high] = limits[axis] ?? [0, 1];
        band.setAttribute("y", String(y(high)));
        band.setAttribute("height", String(limits[axis] ? y(low) - y(high) : 0));
        ends.forEach((end, index) => {
          const place = index === 0 ? high : low;
          end.setAttribute("transform", `translate(${x(axis)} ${y(place)})`);
          end.setAttribute("aria-valuenow", String(Math.round(place * 100)));
        });
      },
    };
  }

  function handle(scale: Scale, axis: number, end: 0 | 1): SVGElement {
    const label = `${end ? "Upper" : "Lower"} limit of ${scale.name}, in percent of the axis`;
    const key = (event: KeyboardEvent): void => {
      const now: [number, number] = [...(limits[axis] ?? [0, 1])];
      const steps: Record<string, number> = { ArrowUp: STEP, ArrowDown: -STEP, PageUp: STEP * 4, PageDown: -STEP * 4 };
      if (event.key === "Escape") limits[axis] = null;
      else if (event.key in steps) {
        const moved = now[end] + steps[event.key]!;
        now[end] = end ? Math.min(1, Math.max(now[0], moved)) : Math.max(0, Math.min(now[1], moved));
        limits[axis] = now[0] <= 0 && now[1] >= 1 ? null : now;
      } else return;
      event.preventDefault();
      show();
    };
    return svg("path", { class: "handle", d: "M-9 0 L0 -5 L9 0 L0 5 Z", tabindex: 0, role: "slider", "data-keep": `${end}/${scale.name}`, "aria-orientation": "vertical", "aria-valuemin": 0, "aria-valuemax": 100, "aria-label": label, onkeydown: key });
  }

  function drag(begun: PointerEvent, axis: number): void {
    begun.preventDefault();
    const box = picture.getBoundingClientRect();
    const place = (event: PointerEvent): number => {
      const inPicture = ((event.clientY - box.top) / box.height) * (TOP + HEIGHT + 24);
      return Math.max(0, Math.min(1, 1 - (inPicture - TOP) / HEIGHT));
    };
    const first = place(begun);
    const move = (event: PointerEvent): void => {
      const now = place(event);
      limits[axis] = [Math.min(first, now), Math.max(first, now)];
      show();
    };
    const end = (event: PointerEvent): void => {
      document.removeEventListener("pointermove", move);
      document.removeEventListener("pointerup", end);
      if (Math.abs(place(event) - first) < 0.015) limits[axis] = null;
      show();
    };
    document.addEventListener("pointermove", move);
    document.addEventListener("pointerup", end);
  }
}
