/** One small chart: one metric of several runs. */

import uPlot from "uplot";
import type { Curve, Mark } from "../answers";
import { fill, h } from "../dom";
import { number, plural, whole } from "../format";
import { swatch } from "../runs/parts";
import { middle, oneLine } from "../text";
import { placeText } from "./axes";
import { markAt } from "./marks";
import { type Outside, outside, wantsLog } from "./limits";
import { tickTexts } from "./ticks";
import { type Judgement, type PlotEvents, plotOptions, prepare, type Prepared, type Settings, viewOf } from "./plot";
import { nearestPoint } from "./series";

export interface ChartEvents extends Omit<PlotEvents, "cursor" | "drawn"> {
  nameOf: (run: string) => string;
  picture: (chart: Chart) => void;
  /** Which values of the metric are better, as far as that is known by now. */
  judge: (metric: string) => Judgement;
  /** Make what stands beside the button for the picture. */
  more?: () => HTMLElement;
  /** Change a setting of all charts. */
  set: (change: { log?: boolean; all?: boolean }) => void;
}

const HEIGHT = 220;
/** Up to so many runs are named of those that have points beyond the limits. */
const MOST_TOLD = 2;

/** A chart with its legend; the cursor of all charts moves together. */
export class Chart {
  readonly element: HTMLElement;
  curves: Curve[] = [];
  marks: Mark[] = [];
  plot: uPlot | null = null;
  private readonly place = h("div", { class: "plot" });
  private readonly legend = h("ul", { class: "legend" });
  private readonly notes = h("p", { class: "chart-notes", role: "note" });
  private readonly beyond = h("p", { class: "chart-beyond", role: "note", "data-testid": "beyond", hidden: true });
  private readonly at = h("span", { class: "dim at" });
  private values: HTMLElement[] = [];
  private prepared: Prepared | null = null;
  private structure = "";
  private told = "";
  private readonly watch = new ResizeObserver(() => this.resize());

  constructor(
    readonly metric: string,
    private readonly settings: Settings,
    private readonly events: ChartEvents,
  ) {
    const save = h("button", { type: "button", class: "quiet small", title: "Save this chart as a picture", onclick: () => events.picture(this) }, "PNG");
    this.element = h(
      "figure",
      { class: "curve", "data-testid": "curve", "data-metric": metric, "data-points": 0 },
      h("figcaption", {}, h("span", { class: "metric", title: metric }, oneLine(metric, 120)), this.at, events.more?.(), save),
      this.place,
      this.notes,
      this.beyond,
      this.legend,
    );
    this.place.tabIndex = 0;
    this.place.setAttribute("role", "img");
    this.place.addEventListener("keydown", (event) => this.key(event));
    this.watch.observe(this.place);
  }

  /** Show curves; where only points were added, the plot takes them without being built again. */
  show(curves: Curve[], marks: Mark[]): void {
    this.curves = curves;
    this.marks = marks;
    this.element.dataset["axis"] = this.settings.axis;
    this.draw();
  }

  /** Whether what is drawn is on the axis that is chosen; its curves may still be on their way. */
  private get isCurrent(): boolean {
    return this.element.dataset["axis"] === this.settings.axis;
  }

  /** Draw again, after a change of settings or colours. */
  draw(rebuild = false): void {
    if (!this.isCurrent) return;
    const { settings, curves } = this;
    this.prepared = prepare(curves, settings);
    const looks = this.prepared.series.map((each) => [each.stroke, each.width]);
    const judged = this.events.judge(this.metric);
    const structure = JSON.stringify([curves.map((curve) => curve.run), looks, settings.axis, settings.log, settings.all, judged, this.prepared.bands.length]);
    if (!this.plot || rebuild || structure !== this.structure) this.build();
    else this.plot.setData(this.prepared.data);
    this.structure = structure;
    const total = curves.reduce((sum, curve) => sum + curve.total, 0);
    this.element.dataset["points"] = String(total);
    this.place.setAttribute("aria-label", `${this.metric}: ${plural(curves.length, "curve")}, ${plural(total, "point")}. ${this.summary()}`);
    this.showNotes();
  }

  /** Show a message instead of curves. */
  tell(text: string): void {
    this.notes.textContent = text;
    this.notes.hidden = false;
  }

  /** Follow the common range while it is being moved. */
  follow(): void {
    const { range } = this.settings;
    if (range && this.isCurrent) this.plot?.setScale("x", { min: range[0], max: range[1] });
  }

  close(): void {
    this.watch.disconnect();
    this.plot?.destroy();
    this.plot = null;
  }

  private build(): void {
    this.plot?.destroy();
    const width = Math.max(120, this.place.clientWidth);
    const options = plotOptions({ width, height: HEIGHT }, this.prepared!, this.settings, this.events.judge(this.metric), () => this.marks, () => this.curves, {
      zoom: (from, to) => this.isCurrent && this.events.zoom(from, to),
      pan: (from, to, done) => this.isCurrent && this.events.pan(from, to, done),
      reset: this.events.reset,
      cursor: (plot) => this.isCurrent && this.showValues(plot),
      drawn: (plot) => this.showBeyond(plot),
    });
    this.plot = new uPlot(options, this.prepared!.data, this.place);
    this.values = this.curves.map(() => h("span", { class: "value" }));
    fill(
      this.legend,
      this.curves.map((curve, index) => {
        const name = this.events.nameOf(curve.run);
        return h("li", {}, swatch(curve.run), h("span", { class: "run-name", title: name }, oneLine(name, 120)), this.values[index]!);
      }),
    );
    this.showValues(this.plot);
  }

  private resize(): void {
    const width = this.place.clientWidth;
    if (this.plot && width > 0 && Math.abs(width - this.plot.width) > 1) this.plot.setSize({ width, height: HEIGHT });
  }

  private showValues(plot: uPlot): void {
    const left = plot.cursor.left ?? -1;
    const x = left >= 0 ? plot.posToVal(left, "x") : null;
    this.at.textContent = x === null ? "" : placeText(this.settings.axis, plot.data[0][plot.cursor.idx ?? 0] ?? x);
    this.curves.forEach((curve, index) => {
      const place = x === null ? lastPoint(curve) : nearestPoint(curve.x, x);
      this.values[index]?.replaceChildren(this.valueText(curve, index, place));
    });
    const mark = markAt(plot, this.marks);
    if (mark) this.tell(`${this.events.nameOf(mark.run)}: ${mark.text}`);
    else if (this.notes.dataset["mark"]) this.showNotes();
    this.notes.dataset["mark"] = mark ? "1" : "";
  }

  private valueText(curve: Curve, index: number, place: number): string {
    if (place < 0) return "–";
    const value = this.prepared?.shown[index]?.[place];
    const text = value === null || value === undefined ? "not finite" : number(value);
    const [low, high] = [curve.min?.[place], curve.max?.[place]];
    const band = low !== undefined && high !== undefined && low !== high ? ` (${number(low)} to ${number(high)})` : "";
    const raw = this.settings.weight > 0 && !band ? ` (${number(curve.y[place])})` : "";
    return text + band + raw;
  }

  private showNotes(): void {
    const odd = this.curves.flatMap((curve) => curve.nonfinite ?? []);
    const hidden = this.prepared?.hidden ?? 0;
    const texts = [
      odd.length > 0 && `${plural(odd.length, "value")} not finite, first ${odd[0]![1]} at ${placeText(this.settings.axis, odd[0]![0])} (×).`,
      hidden > 0 && `${plural(hidden, "value")} at or below zero not shown on the log scale.`,
      this.curves.every((curve) => curve.total === 0) && "No values in this range.",
    ];
    this.notes.textContent = texts.filter(Boolean).join(" ");
    this.notes.hidden = this.notes.textContent === "";
  }

  /** Tell what the axis leaves out, and offer to show it. */
  private showBeyond(plot: uPlot): void {
    const { settings, curves } = this;
    const judged = this.events.judge(this.metric);
    const view = viewOf(settings, judged.better);
    const { min, max } = plot.scales["y"] ?? {};
    const hasLimits = typeof min === "number" && typeof max === "number";
    const left = hasLimits && !settings.all ? outside(curves, [min, max], view) : [];
    const isWide = left.length === 0 && !settings.log && !judged.isSetting && !judged.isOfMachine && wantsLog(curves, view);
    const now = JSON.stringify([left, isWide, settings.log]);
    if (now === this.told) return; // It is drawn while the mouse is over it.
    this.told = now;
    this.beyond.hidden = left.length === 0 && !isWide;
    this.element.dataset["beyond"] = String(left.reduce((sum, one) => sum + one.above + one.below, 0));
    const button = (label: string, change: { log?: boolean; all?: boolean }): HTMLElement =>
      h("button", { type: "button", class: "small", onclick: () => this.events.set(change) }, label);
    fill(
      this.beyond,
      left.length > MOST_TOLD
        ? h("span", {}, `${plural(left.length, "run")}: ${beyondText(together(left))} `)
        : left.map((one) => h("span", {}, swatch(one.run), `${middle(this.events.nameOf(one.run), 32)}: ${beyondText(one)} `)),
      isWide && h("span", {}, "The values lie over many powers of ten. "),
      !settings.log && button("Log scale", { log: true }),
      left.length > 0 && button("Show all", { all: true }),
    );
  }

  private summary(): string {
    return this.curves.map((curve) => `${this.events.nameOf(curve.run)} last ${number(curve.y.at(-1))}`).slice(0, 8).join("; ");
  }

  private key(event: KeyboardEvent): void {
    const plot = this.plot;
    const { min, max } = plot?.scales["x"] ?? {};
    if (!plot || !this.isCurrent || min === undefined || max === undefined || event.ctrlKey || event.metaKey) return;
    const width = max - min;
    const way = event.key === "ArrowLeft" ? -1 : 1;
    if (event.key.startsWith("Arrow") && (event.key === "ArrowLeft" || event.key === "ArrowRight")) {
      if (event.shiftKey) this.events.pan(min + way * width * 0.2, max + way * width * 0.2, true);
      else this.step(plot, way);
    } else if (event.key === "+" || event.key === "=") this.events.zoom(min + width * 0.2, max - width * 0.2);
    else if (event.key === "-") this.events.zoom(min - width * 0.3, max + width * 0.3);
    else if (event.key === "0" || event.key === "Escape") this.events.reset();
    else return;
    event.preventDefault();
  }

  private step(plot: uPlot, way: number): void {
    const xs = plot.data[0];
    const now = plot.cursor.idx ?? (way > 0 ? -1 : xs.length);
    const x = xs[Math.max(0, Math.min(xs.length - 1, now + way))];
    if (x !== undefined) plot.setCursor({ left: plot.valToPos(x, "x"), top: plot.over.clientHeight / 2 });
  }
}

function together(all: Outside[]): Outside {
  const sum = (part: "above" | "below"): number => all.reduce((total, one) => total + one[part], 0);
  const above = sum("above");
  const values = all.filter((one) => above === 0 || one.above > 0).map((one) => one.farthest);
  return { run: "", above, below: sum("below"), farthest: above > 0 ? Math.max(...values) : Math.min(...values) };
}

/** Return how many points lie beyond the limits: 3 points above, up to 1.2e9. */
export function beyondText({ above, below, farthest }: Outside): string {
  const parts = [above > 0 && `${plural(above, "point")} above`, below > 0 && `${above > 0 ? whole(below) : plural(below, "point")} below`];
  return `${parts.filter(Boolean).join(", ")}, ${above > 0 ? "up" : "down"} to ${tickTexts([farthest])[0]}`;
}

function lastPoint(curve: Curve): number {
  let place = curve.y.length - 1;
  while (place > 0 && curve.y[place] === null) place -= 1;
  return place;
}
