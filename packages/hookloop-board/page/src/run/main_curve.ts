/** The curves by which a run is judged, above its overview; they follow the training. */

import { isAbort } from "../api";
import type { RunDetails } from "../answers";
import { Chart } from "../curves/chart";
import { savePicture } from "../curves/picture";
import { judgementOf, type Settings } from "../curves/plot";
import { Source } from "../curves/source";
import { atMost, fill, h } from "../dom";
import { isResult } from "../judging";
import type { CurvesEvent } from "../live";
import { curvesHash } from "../routes";
import { themeChanged } from "../theme";
import type { Part } from "./view";

/** Return the metrics that the overview draws: the main one, and the loss of the training. */
export function mainMetrics(run: RunDetails): string[] {
  const losses = ["train/loss", "train_epoch/loss"].filter((name) => name in run.metrics).slice(0, 1);
  const results = Object.keys(run.metrics).filter((name) => isResult(name, run));
  const found = [...new Set([...(run.main_metric === null ? [] : [run.main_metric]), ...losses])].filter((name) => name in run.metrics);
  return found.length ? found : results.slice(0, 1);
}

/** Show them in an element. */
export function mainCurves(part: Part): HTMLElement {
  const settings: Settings = { axis: "iter", weight: 0, log: false, all: false, range: null };
  const source = new Source([part.run], settings);
  const place = h("div", { class: "chart-grid main-curves", "data-testid": "main-curves" });
  const charts = new Map<string, Chart>();
  let waiting: CurvesEvent[] = [];
  const followSoon = atMost(400, () => void follow());
  const leave = [
    part.board.live.curves.add((event) => {
      if (event.run !== part.run) return;
      waiting.push(event);
      followSoon();
    }),
    part.board.live.again.add(() => void load([...charts.keys()])),
    themeChanged.add(() => charts.forEach((chart) => chart.draw(true))),
  ];
  part.signal.addEventListener("abort", () => {
    leave.forEach((call) => call());
    followSoon.cancel();
    charts.forEach((chart) => chart.close());
  });
  part.onChange(lay);
  lay();
  return place;

  function lay(): void {
    const metrics = mainMetrics(part.details());
    if (metrics.join("\n") === [...charts.keys()].join("\n")) return;
    for (const [metric, chart] of charts) {
      chart.close();
      charts.delete(metric);
    }
    for (const metric of metrics) charts.set(metric, make(metric));
    fill(place, [...charts.values()].map((chart) => chart.element));
    void load(metrics);
  }

  function make(metric: string): Chart {
    const zoom = (from: number, to: number, done = true): void => {
      settings.range = [from, to];
      charts.forEach((chart) => chart.follow());
      if (done) void load([...charts.keys()]);
    };
    const nameOf = (): string => part.details().name;
    return new Chart(metric, settings, {
      zoom: (from, to) => zoom(from, to),
      pan: zoom,
      reset: () => {
        settings.range = null;
        void load([...charts.keys()]);
      },
      nameOf,
      picture: (chart) => savePicture([chart], nameOf),
      judge: (name) => judgementOf(name, part.details()),
      set: (change) => {
        Object.assign(settings, change);
        charts.forEach((chart) => chart.draw());
      },
      more: () => h("a", { class: "small", href: curvesHash([part.run]) }, "All curves"),
    });
  }

  async function load(metrics: string[]): Promise<void> {
    try {
      const { reading = 1 } = await source.load(metrics, part.signal);
      draw(metrics);
      if (reading < 1) await load(metrics);
    } catch (error) {
      tell(error);
    }
  }

  async function follow(): Promise<void> {
    const events = waiting;
    waiting = [];
    try {
      for (const event of events) draw(await source.follow(event, part.signal));
    } catch (error) {
      tell(error);
    }
  }

  function draw(metrics: string[]): void {
    for (const metric of metrics) {
      const curves = source.of(metric);
      if (curves) charts.get(metric)?.show(curves, source.allMarks());
    }
  }

  function tell(error: unknown): void {
    if (isAbort(error) || part.signal.aborted) return;
    charts.forEach((chart) => chart.tell(error instanceof Error ? error.message : String(error)));
  }
}
