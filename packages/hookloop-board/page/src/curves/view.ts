/** The view of curves: any metrics of any runs together. */

import { isAbort } from "../api";
import { separate } from "../colours";
import { atMost, fill, h, later } from "../dom";
import { plural } from "../format";
import type { CurvesEvent } from "../live";
import { keepInAddress } from "../routes";
import { firstRuns } from "../runs/selection";
import { themeChanged } from "../theme";
import { type Board, empty, failure, type View, waiting } from "../view";
import { addressOf } from "./address";
import { type Axis, placeText, readAxis } from "./axes";
import { Chart } from "./chart";
import { groupMetrics } from "./groups";
import { listMarks } from "./marks";
import { savePicture, saveTable } from "./picture";
import { judgementOf, type Settings } from "./plot";
import { sidebar } from "./sidebar";
import { weightAt } from "./smoothing";
import { Source } from "./source";
import { Told } from "./told";
import { toolbar } from "./toolbar";

/** Open the curves; the address holds runs, metrics and settings. */
export function openCurves(board: Board, query: URLSearchParams): View {
  const view = new CurvesView(board, query);
  return { element: view.element, title: "Curves", close: () => view.close() };
}

class CurvesView {
  readonly element: HTMLElement;
  private readonly settings: Settings;
  private smoothing: number;
  private runs: string[];
  private metrics: string[] | null;
  private readonly charts = new Map<string, Chart>();
  private readonly inSight = new Set<string>();
  private readonly wanted = new Set<string>();
  private readonly source: Source;
  private readonly main = h("div", { class: "charts" });
  private readonly told = new Told();
  private readonly machine = h("details", { class: "machine", "data-testid": "machine" });
  private readonly markList = h("details", { class: "mark-list", hidden: true });
  private readonly bar: ReturnType<typeof toolbar>;
  private readonly side: ReturnType<typeof sidebar>;
  private readonly leave: (() => void)[];
  private stop = new AbortController();
  private order = "";
  private readonly events = new Map<string, CurvesEvent>();
  private readonly loadSoon = atMost(30, () => void this.load());
  private readonly smoothSoon = later(250, () => this.reload());
  private readonly followSoon = atMost(250, () => void this.follow());
  private readonly sight = new IntersectionObserver((seen) => this.seen(seen), { rootMargin: "500px" });

  constructor(
    private readonly board: Board,
    query: URLSearchParams,
  ) {
    const [from, to] = [query.get("from"), query.get("to")];
    this.smoothing = Math.max(0, Math.min(99, Number(query.get("smooth") ?? 0) || 0));
    this.settings = {
      axis: readAxis(query.get("axis")),
      weight: weightAt(this.smoothing),
      log: query.has("log"),
      all: query.has("all"),
      range: from !== null && to !== null && Number(from) < Number(to) ? [Number(from), Number(to)] : null,
    };
    this.runs = [...new Set(query.getAll("run"))];
    this.metrics = query.has("metric") ? query.getAll("metric") : null;
    this.source = new Source(this.runs, this.settings);
    this.bar = toolbar(this.settings, this.toolbarOptions());
    this.side = sidebar(board.store, {
      runs: () => this.runs,
      metrics: () => this.allMetrics(),
      isOfMachine: (metric) => this.isOfMachine(metric),
      isHidden: (metric) => this.metrics !== null && !this.metrics.includes(metric),
      setRuns: (runs) => this.choose(runs, this.metrics),
      setMetrics: (metrics) => this.choose(this.runs, metrics),
    });
    this.element = h(
      "section",
      { class: "view curves", "aria-label": "Curves" },
      h("h1", { class: "unseen" }, "Curves"),
      this.bar.element,
      h("div", { class: "with-side" }, this.side.element, h("div", { class: "chart-side" }, this.told.element, this.markList, this.main)),
    );
    this.leave = [
      board.store.changed.add(() => this.show()),
      board.live.curves.add((event) => this.note(event)),
      board.live.again.add(() => this.reload()),
      themeChanged.add(() => this.charts.forEach((chart) => chart.draw(true))),
    ];
    this.show();
  }

  close(): void {
    this.leave.forEach((call) => call());
    this.loadSoon.cancel();
    this.followSoon.cancel();
    this.smoothSoon.cancel();
    this.stop.abort();
    this.sight.disconnect();
    this.charts.forEach((chart) => chart.close());
  }

  private toolbarOptions(): Parameters<typeof toolbar>[1] {
    return {
      smoothing: this.smoothing,
      setAxis: (axis: Axis) => {
        this.settings.axis = axis;
        this.settings.range = null;
        this.reload();
      },
      setSmoothing: (place) => {
        this.smoothing = place;
        this.settings.weight = weightAt(place);
        this.redraw();
        this.smoothSoon();
      },
      setLog: (log) => this.set({ log }),
      setAll: (all) => this.set({ all }),
      reset: () => this.zoom(null),
      png: () => void this.savePicture(),
      csv: () => saveTable(this.runs, [...this.charts.keys()], this.settings, [...this.charts.values()], (run) => this.board.store.nameOf(run)),
    };
  }

  private set(change: { log?: boolean; all?: boolean }): void {
    Object.assign(this.settings, change);
    this.bar.show();
    this.redraw();
  }

  /** Bring choice and charts up to date; the curves follow by themselves. */
  private show(): void {
    const { store } = this.board;
    if (!store.answer) return fill(this.main, store.error ? failure(store.error, () => void store.load()) : waiting("the runs"));
    if (store.runs.length === 0) return fill(this.main, empty("There are no runs yet.", "Start one with “hookloop train config.yaml”."));
    this.leaveOutUnknown();
    if (this.runs.length === 0 && this.order === "") this.source.clear((this.runs = firstRuns(store.runs)));
    this.side.show();
    const all = this.allMetrics();
    const metrics = this.metrics === null ? all : this.metrics.filter((name) => all.includes(name));
    const order = JSON.stringify([metrics, metrics.filter((name) => this.isOfMachine(name))]);
    if (order === this.order && this.main.childElementCount) return;
    this.order = order;
    this.layOut(metrics);
  }

  private leaveOutUnknown(): void {
    const known = this.runs.filter((run) => this.board.store.find(run));
    const left = this.runs.length - known.length;
    if (left === 0) return;
    this.runs = known;
    this.source.clear(known);
    if (this.order !== "") this.reload();
    this.told.deleted(left);
  }

  private allMetrics(): string[] {
    const names = new Set<string>();
    for (const run of this.runs) for (const name of Object.keys(this.board.store.find(run)?.metrics ?? {})) names.add(name);
    return [...names];
  }

  private layOut(metrics: string[]): void {
    separate(this.runs);
    for (const [metric, chart] of this.charts) if (!metrics.includes(metric)) this.drop(metric, chart);
    if (metrics.length === 0) {
      return fill(this.main, empty(this.runs.length ? "These runs have no such metrics yet." : "No run is chosen.", "Choose runs and metrics at the side."));
    }
    const machine = metrics.filter((name) => this.isOfMachine(name));
    const results = metrics.filter((name) => !machine.includes(name));
    // Whoever chose nothing else wants to see them.
    if (results.length === 0) this.machine.open = true;
    fill(this.machine, h("summary", {}, "The machine", h("span", { class: "dim" }, ` times, memory and the like: ${plural(machine.length, "metric")}`)), this.groups(machine));
    fill(this.main, this.groups(results), machine.length > 0 && this.machine);
  }

  private groups(metrics: string[]): HTMLElement[] {
    return groupMetrics(metrics).map((group) =>
      h(
        "section",
        { class: "group", "aria-label": group.name },
        h("h2", {}, group.name, group.about && h("span", { class: "dim" }, ` ${group.about}`)),
        h("div", { class: "chart-grid" }, group.metrics.map((metric) => this.chart(metric).element)),
      ),
    );
  }

  private isOfMachine(metric: string): boolean {
    return this.board.store.judged.machine.includes(metric);
  }

  private chart(metric: string): Chart {
    const known = this.charts.get(metric);
    if (known) return known;
    const chart = new Chart(metric, this.settings, {
      zoom: (from, to) => this.zoom([from, to]),
      pan: (from, to, done) => this.zoom([from, to], !done),
      reset: () => this.zoom(null),
      nameOf: (run) => this.board.store.nameOf(run),
      picture: (one) => savePicture([one], (run) => this.board.store.nameOf(run)),
      judge: (name) => judgementOf(name, this.board.store.judged),
      set: (change) => this.set(change),
    });
    this.charts.set(metric, chart);
    this.sight.observe(chart.element);
    return chart;
  }

  private drop(metric: string, chart: Chart): void {
    this.sight.unobserve(chart.element);
    this.inSight.delete(metric);
    this.charts.delete(metric);
    chart.close();
  }

  private seen(entries: IntersectionObserverEntry[]): void {
    for (const { target, isIntersecting } of entries) {
      const metric = [...this.charts.values()].find((chart) => chart.element === target)?.metric;
      if (metric === undefined) continue;
      if (isIntersecting) this.inSight.add(metric);
      else this.inSight.delete(metric);
      if (isIntersecting && this.source.of(metric) === null) this.wanted.add(metric);
    }
    if (this.wanted.size) this.loadSoon();
  }

  private async load(): Promise<void> {
    const metrics = [...this.wanted].filter((metric) => this.charts.has(metric));
    this.wanted.clear();
    if (metrics.length === 0 || this.runs.length === 0) return;
    const { signal } = this.stop;
    try {
      const { reading = 1, left_out: out = [] } = await this.source.load(metrics, signal);
      this.told.reading(reading);
      this.told.leftOut(out.map(({ run, text }) => ({ name: this.board.store.nameOf(run), text })));
      this.draw(metrics);
      if (reading >= 1) return;
      metrics.forEach((metric) => this.wanted.add(metric));
      this.loadSoon();
    } catch (error) {
      if (!isAbort(error)) this.told.problem(error, () => this.reload());
    }
  }

  /** Save all charts, also those that nobody has scrolled to. */
  private async savePicture(): Promise<void> {
    const shown = [...this.charts.values()].filter((chart) => this.machine.open || !this.isOfMachine(chart.metric));
    shown.filter(({ metric }) => this.source.of(metric) === null).forEach(({ metric }) => this.wanted.add(metric));
    await this.load();
    savePicture(shown.filter((chart) => chart.curves.length), (run) => this.board.store.nameOf(run));
  }

  private draw(metrics: string[]): void {
    const marks = this.source.allMarks();
    for (const metric of metrics) {
      const curves = this.source.of(metric);
      if (curves) this.charts.get(metric)?.show(curves, marks);
    }
    listMarks(this.markList, marks, (mark) => `${this.board.store.nameOf(mark.run)}, ${placeText(this.settings.axis, mark.x)}: ${mark.text}`);
  }

  private note(event: CurvesEvent): void {
    const before = this.events.get(event.run);
    this.events.set(event.run, { ...event, metrics: [...new Set([...(before?.metrics ?? []), ...event.metrics])] });
    this.followSoon();
  }

  private async follow(): Promise<void> {
    const events = [...this.events.values()];
    this.events.clear();
    try {
      for (const event of events) this.draw(await this.source.follow(event, this.stop.signal));
    } catch (error) {
      if (!isAbort(error)) this.told.problem(error, () => this.reload());
    }
  }

  private choose(runs: string[], metrics: string[] | null): void {
    const other = runs.join() !== this.runs.join();
    this.runs = runs;
    this.metrics = metrics;
    if (other) {
      separate(runs);
      this.reload();
    } else this.remember();
    this.show();
  }

  private zoom(range: [number, number] | null, moving = false): void {
    this.settings.range = range;
    if (range) this.charts.forEach((chart) => chart.follow());
    if (!moving) this.reload();
  }

  private redraw(): void {
    this.charts.forEach((chart) => chart.plot && chart.draw());
    this.remember();
  }

  // What is drawn stays until the new curves are there.
  private reload(): void {
    this.stop.abort();
    this.stop = new AbortController();
    this.source.clear(this.runs);
    this.inSight.forEach((metric) => this.wanted.add(metric));
    this.loadSoon();
    this.bar.show();
    this.remember();
  }

  private remember(): void {
    keepInAddress("curves", addressOf(this.runs, this.metrics, this.settings, this.smoothing));
  }
}
