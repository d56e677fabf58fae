/** Small curves in the table of runs: each run's main metric, read for the rows in sight. */

import { isAbort } from "../api";
import type { Curve, Judged, Run } from "../answers";
import { robustLimits } from "../curves/limits";
import { loadCurves } from "../curves/source";
import { atMost, fill, svg } from "../dom";
import { number, plural } from "../format";
import { groupBy } from "../lists";

const WIDTH = 104;
const HEIGHT = 26;
const EDGE = 4;
/** As many points as a small curve can show. */
const POINTS = 60;
/** Milliseconds between two questions, while runs are trained. */
const PAUSE = 1500;

interface Kept {
  /** What the run was like when its curve was read. */
  state: string;
  curve: Curve | null;
}

/** The small curves; `draw` makes one that fills itself. */
export class Sparks {
  private readonly kept = new Map<string, Kept>();
  private readonly places = new Map<string, { run: Run; place: SVGSVGElement }>();
  private readonly wanted = new Map<string, Run>();
  private readonly stop = new AbortController();
  private readonly soon = atMost(60, () => void this.load());
  private readonly later = atMost(PAUSE, () => void this.load());

  constructor(private readonly judged: () => Judged) {}

  /** Return the small curve of a run; it is drawn as soon as it is read. */
  draw(run: Run): Element | string {
    if (run.main_metric === null) return "";
    const place = svg("svg", { class: "spark", viewBox: `0 0 ${WIDTH} ${HEIGHT}`, width: WIDTH, height: HEIGHT, role: "img", "aria-label": `${run.main_metric}: no curve yet` });
    this.places.set(run.id, { run, place });
    const kept = this.kept.get(run.id);
    if (kept) this.show(run, place, kept.curve);
    if (kept?.state === stateOf(run)) return place;
    this.wanted.set(run.id, run);
    if (kept) this.later();
    else this.soon();
    return place;
  }

  close(): void {
    this.stop.abort();
    this.soon.cancel();
    this.later.cancel();
  }

  private async load(): Promise<void> {
    // A row that has been scrolled out of sight is not read.
    const runs = [...this.wanted.values()].filter(({ id }) => this.places.get(id)?.place.isConnected);
    this.wanted.clear();
    const settings = { axis: "iter", weight: 0, log: false, all: false, range: null } as const;
    for (const [metric, members] of groupBy(runs, (run) => run.main_metric!)) {
      try {
        const { signal } = this.stop;
        const { curves, reading = 1 } = await loadCurves(members.map(({ id }) => id), [metric], settings, { points: POINTS, signal });
        const found = new Map(curves.map((curve) => [curve.run, curve]));
        for (const run of members) this.put(run, found.get(run.id) ?? null, reading >= 1);
        if (reading < 1) this.later();
      } catch (error) {
        if (isAbort(error)) return;
        // The table says what is wrong with the server; the curves come with its next answer.
      }
    }
  }

  private put(run: Run, curve: Curve | null, isWhole: boolean): void {
    this.kept.set(run.id, { state: isWhole ? stateOf(run) : "", curve });
    if (!isWhole) this.wanted.set(run.id, run);
    const shown = this.places.get(run.id);
    if (shown) this.show(shown.run, shown.place, curve);
  }

  private show(run: Run, place: SVGSVGElement, curve: Curve | null): void {
    if (!curve || curve.x.length === 0) return;
    const picture = sparkPath(curve, this.judged().better[curve.metric] ?? null);
    const odd = curve.nonfinite?.length ?? 0;
    const label = `${curve.metric}, ${plural(curve.total, "value")}: from ${number(curve.y[0])} to ${number(curve.y.at(-1) ?? "not finite")}${odd ? `, ${odd} not finite` : ""}`;
    place.setAttribute("aria-label", label);
    const last = picture.last;
    fill(
      place,
      svg("title", {}, label),
      picture.paths.map((points) => svg("polyline", { points })),
      last && svg("circle", { cx: last[0], cy: last[1], r: 2.5, class: picture.isOdd ? "odd" : null }),
    );
    place.dataset["points"] = String(curve.x.length);
    place.dataset["run"] = run.id;
  }
}

function stateOf(run: Run): string {
  return `${run.main_metric} ${run.iters} ${run.status}`;
}

/** Return the lines of a small curve, interrupted by gaps, and where it ends. */
export function sparkPath(curve: Curve, better: "greater" | "less" | null): { paths: string[]; last: [number, number] | null; isOdd: boolean } {
  const known = curve.y.filter((value) => value !== null) as number[];
  const limits = robustLimits([curve], { log: false, from: -Infinity, to: Infinity, better });
  const [low, high] = limits ?? [Math.min(...known), Math.max(...known)];
  const [first, end] = [curve.x[0]!, curve.x.at(-1)!];
  const across = (x: number): number => EDGE + (end > first ? (x - first) / (end - first) : 0.5) * (WIDTH - 2 * EDGE);
  const up = (y: number): number => EDGE + (1 - Math.max(0, Math.min(1, high > low ? (y - low) / (high - low) : 0.5))) * (HEIGHT - 2 * EDGE);
  const paths: string[][] = [[]];
  let last: [number, number] | null = null;
  curve.x.forEach((x, index) => {
    const y = curve.y[index];
    if (y === null || y === undefined) return void paths.push([]);
    last = [round(across(x)), round(up(y))];
    paths.at(-1)!.push(last.join(","));
  });
  return { paths: paths.filter((points) => points.length > 1).map((points) => points.join(" ")), last, isOdd: curve.y.at(-1) === null };
}

function round(value: number): number {
  return Math.round(value * 10) / 10;
}
