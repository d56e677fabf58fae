/** The options that make uPlot draw one metric of several runs. */

import uPlot from "uplot";
import type { Curve, Judged, Mark, Rule } from "../answers";
import { faint, look } from "../colours";
import { isSetting } from "../judging";
import { colour } from "../theme";
import { type Axis, tickTextsOf } from "./axes";
import { robustLimits, type View } from "./limits";
import { drawMarks, drawNonFinite, drawOutside } from "./marks";
import { logRange, logTicks } from "./log";
import { type Aligned, alignTo, countHidden, positive, unionOf } from "./series";
import { smooth } from "./smoothing";
import { TICK_FONT, tickTexts, widthOf } from "./ticks";

export interface Settings {
  axis: Axis;
  weight: number;
  log: boolean;
  /** Whether the axis reaches to every value, however far away. */
  all: boolean;
  range: [number, number] | null;
}

export interface Prepared {
  data: uPlot.AlignedData;
  series: uPlot.Series[];
  bands: uPlot.Band[];
  /** What the cursor shows for each curve. */
  shown: (number | null)[][];
  hidden: number;
}

/** The least room for the texts of the y axis, so that most charts below each other begin at the same place. */
const LEAST_WIDTH = 50;

/** Turn curves into what uPlot draws: per run the raw curve, its band where it was down-sampled, and the smooth one. */
export function prepare(curves: Curve[], settings: Settings): Prepared {
  const axis = unionOf(curves);
  const data: Aligned[] = [];
  const series: uPlot.Series[] = [{}];
  const bands: uPlot.Band[] = [];
  const shown: (number | null)[][] = [];
  let hidden = 0;
  const add = (curve: Curve, values: (number | null)[], look: uPlot.Series): number => {
    data.push(alignTo(axis, curve.x, values));
    series.push({ spanGaps: false, ...look });
    return series.length - 1;
  };
  for (const curve of curves) {
    const { colour: hue, dash } = look(curve.run);
    const fit = (values: (number | null)[]): (number | null)[] => (settings.log ? positive(values) : values);
    if (settings.log) hidden += countHidden(curve);
    if (curve.min && curve.max) {
      const edge: uPlot.Series = { stroke: faint(hue, 0), width: 0, points: { show: false } };
      const high = add(curve, fit(curve.max), edge);
      const low = add(curve, fit(curve.min), edge);
      bands.push({ series: [high, low], fill: faint(hue, settings.weight ? 0.1 : 0.18) });
    }
    const smoothed = settings.weight > 0 ? smoothOf(curve, settings.weight) : null;
    const own = { points: { show: curve.x.length <= 60, size: 5, fill: hue, stroke: hue } };
    if (smoothed) add(curve, fit(curve.y), { stroke: faint(hue, 0.3), width: 1, points: { show: false } });
    add(curve, fit(smoothed ?? curve.y), { stroke: hue, width: 1.6, dash, ...own, class: "main" });
    shown.push(smoothed ?? curve.y);
  }
  return { data: [axis, ...data] as uPlot.AlignedData, series, bands, shown, hidden };
}

// Until the server has smoothed the whole curve, what is there of it is.
function smoothOf(curve: Curve, weight: number): (number | null)[] {
  return curve.smooth && curve.weight === weight ? curve.smooth : smooth(curve.y, weight);
}

/** What is known of a metric: which values are better, and whether it is a setting, of which none is wild. */
export interface Judgement {
  better: Rule | null;
  isSetting: boolean;
  isOfMachine: boolean;
}

export interface PlotEvents {
  zoom: (from: number, to: number) => unknown;
  pan: (from: number, to: number, done: boolean) => unknown;
  reset: () => void;
  cursor: (plot: uPlot) => unknown;
  drawn: (plot: uPlot) => unknown;
}

/** Return what is known of a metric. */
export function judgementOf(metric: string, judged: Judged): Judgement {
  return { better: judged.better[metric] ?? null, isSetting: isSetting(metric), isOfMachine: judged.machine.includes(metric) };
}

/** Return the part of a chart that is shown, for its limits. */
export function viewOf(settings: Settings, better: Rule | null): View {
  const [from, to] = settings.range ?? [-Infinity, Infinity];
  return { log: settings.log, from, to, better };
}

/** Return the options of a plot of a size. */
export function plotOptions(
  size: { width: number; height: number },
  prepared: Prepared,
  settings: Settings,
  judged: Judgement,
  marks: () => Mark[],
  curves: () => Curve[],
  events: PlotEvents,
): uPlot.Options {
  const [ink, rule] = [colour("--dim"), colour("--rule")];
  const axis: uPlot.Axis = { stroke: ink, grid: { stroke: rule, width: 1 }, ticks: { stroke: rule, size: 4 }, font: TICK_FONT };
  const time = settings.axis === "time";
  const labels: uPlot.Axis = { ...axis, size: 28 };
  if (!time) labels.values = (_, ticks) => tickTextsOf(settings.axis, ticks);
  return {
    ...size,
    ms: 1,
    legend: { show: false },
    padding: [10, 26, 0, 0], // Half of the last text below the x axis is beyond its end.
    series: prepared.series,
    bands: prepared.bands,
    scales: {
      x: { time, range: (_, min, max) => settings.range ?? widened(min, max) },
      y: {
        distr: settings.log ? 3 : 1,
        range: (_, ...inside) => {
          const usual = settings.all || judged.isSetting ? null : robustLimits(curves(), viewOf(settings, judged.better));
          const [min, max] = usual ?? (inside[0] === null ? besides(prepared.data) : inside);
          return settings.log ? logRange(min, max) : yRange(min, max);
        },
      },
    },
    axes: [labels, { ...axis, ...(settings.log && { splits: (_, __, min, max) => logTicks(min, max), filter: (_, ticks) => ticks }), size: (_, texts) => Math.max(LEAST_WIDTH, widthOf(texts ?? []) + 14), values: (_, ticks) => tickTexts(ticks) }],
    cursor: {
      drag: { x: true, y: false, setScale: false, dist: 4 },
      sync: { key: "board", scales: ["x", null], filters: { pub: (type) => type === "mousemove" || type === "mouseleave" } },
      points: { size: 7, show: (plot, index) => hoverPoint(plot, index) },
      dataIdx: nearestIndex,
      bind: {
        dblclick: () => () => (events.reset(), null),
        mousedown: (plot, _, pass) => (event) => (event.shiftKey || event.button === 1 ? pan(plot, event, events) : pass(event)),
      },
    },
    hooks: {
      setSelect: [(plot) => select(plot, events)],
      setCursor: [events.cursor],
      draw: [(plot) => (drawMarks(plot, marks()), drawNonFinite(plot, curves()), drawOutside(plot, curves())), events.drawn],
    },
  };
}

function hoverPoint(plot: uPlot, index: number): HTMLElement {
  const series = plot.series[index]!;
  const dot = document.createElement("div");
  dot.className = series.class === "main" ? "u-cursor-pt" : "u-cursor-pt unseen-point";
  return dot;
}

function nearestIndex(plot: uPlot, index: number, closest: number): number {
  const values = plot.data[index];
  if (index === 0 || !values || (values[closest] !== undefined && values[closest] !== null)) return closest;
  for (let away = 1; away < 400; away++) {
    for (const place of [closest - away, closest + away]) {
      const value = values[place];
      if (value !== undefined && value !== null) return place;
    }
  }
  return closest;
}

function widened(min: number, max: number): [number, number] {
  return min === max ? [min - 1, max + 1] : [min, max];
}

// Between two points there is only the line that joins them.
function besides(data: uPlot.AlignedData): [number | null, number | null] {
  const values = data.slice(1).flatMap((each) => [...each].filter((value) => value !== null && value !== undefined)) as number[];
  return values.length ? [Math.min(...values), Math.max(...values)] : [null, null];
}

function yRange(min: number | null, max: number | null): [number, number] {
  if (min === null || max === null) return [0, 1];
  if (min === max) return [min - (Math.abs(min) * 0.05 || 1), max + (Math.abs(max) * 0.05 || 1)];
  const room = (max - min) * 0.06;
  return [min >= 0 && min < room ? 0 : min - room, max + room];
}

function select(plot: uPlot, events: PlotEvents): void {
  const { left, width } = plot.select;
  if (width < 4) return;
  const [from, to] = [plot.posToVal(left, "x"), plot.posToVal(left + width, "x")];
  plot.setSelect({ left: 0, width: 0, top: 0, height: 0 }, false);
  events.zoom(from, to);
}

function pan(plot: uPlot, begun: MouseEvent, events: PlotEvents): null {
  const { min = 0, max = 1 } = plot.scales["x"]!;
  const perPixel = (max - min) / plot.over.clientWidth;
  const rangeAt = (event: MouseEvent): [number, number] => {
    const shift = (begun.clientX - event.clientX) * perPixel;
    return [min + shift, max + shift];
  };
  const move = (event: MouseEvent): void => void events.pan(...rangeAt(event), false);
  const end = (event: MouseEvent): void => {
    document.removeEventListener("mousemove", move);
    document.removeEventListener("mouseup", end);
    events.pan(...rangeAt(event), true);
  };
  document.addEventListener("mousemove", move);
  document.addEventListener("mouseup", end);
  return null;
}
