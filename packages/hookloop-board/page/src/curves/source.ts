/** The curves that are loaded, kept up by events. */

import type { Curve, Curves, Mark } from "../answers";
import { get, query } from "../api";
import type { CurvesEvent } from "../live";
import type { Settings } from "./plot";
import { continued, overgrown, pointsFor } from "./series";

const RUNS_PER_REQUEST = 40;

/** Load curves of several runs and metrics. */
export async function loadCurves(
  runs: string[],
  metrics: string[],
  settings: Settings,
  options: { from?: number | undefined; to?: number | undefined; points: number; signal: AbortSignal },
): Promise<Curves> {
  const { from, to, points, signal } = options;
  const { weight } = settings;
  const parts: Promise<Curves>[] = [];
  for (let begin = 0; begin < runs.length; begin += RUNS_PER_REQUEST) {
    const run = runs.slice(begin, begin + RUNS_PER_REQUEST);
    parts.push(get<Curves>(query("/api/curves", { run, metric: metrics, axis: settings.axis, from, to, points, smooth: weight || undefined }), signal));
  }
  const found = await Promise.all(parts);
  const reading = found.map((part) => part.reading ?? 1);
  return {
    axis: settings.axis,
    curves: found.flatMap((part) => part.curves.map((curve) => ({ ...curve, weight }))),
    marks: found.flatMap((part) => part.marks),
    left_out: found.flatMap((part) => part.left_out ?? []),
    reading: reading.reduce((sum, share) => sum + share, 0) / Math.max(1, reading.length),
  };
}

/** What is known of the curves, by metric and run. */
export class Source {
  private readonly curves = new Map<string, Map<string, Curve>>();
  private marks: Mark[] = [];

  constructor(
    private runs: string[],
    private readonly settings: Settings,
  ) {}

  /** Forget everything, for other runs, another axis or another range. */
  clear(runs: string[]): void {
    this.runs = runs;
    this.curves.clear();
    this.marks = [];
  }

  /** Load metrics in the range of the settings. */
  async load(metrics: string[], signal: AbortSignal): Promise<Curves> {
    const [from, to] = this.settings.range ?? [];
    const answer = await loadCurves(this.runs, metrics, this.settings, { from, to, points: this.points, signal });
    for (const metric of metrics) this.curves.set(metric, new Map());
    for (const curve of answer.curves) this.curves.get(curve.metric)?.set(curve.run, curve);
    this.addMarks(answer.marks);
    return answer;
  }

  /** Return the curves of a metric in the order of the runs; nothing while it is not loaded. */
  of(metric: string): Curve[] | null {
    const found = this.curves.get(metric);
    if (!found) return null;
    return this.runs.map((run) => found.get(run)).filter((curve) => curve !== undefined && curve.x.length > 0) as Curve[];
  }

  /** Return the marks of all runs. */
  allMarks(): Mark[] {
    return this.marks;
  }

  /** Add what is new in a run; returns the metrics that changed. */
  async follow(event: CurvesEvent, signal: AbortSignal): Promise<string[]> {
    if (!this.runs.includes(event.run)) return [];
    const metrics = event.metrics.filter((metric) => this.curves.has(metric));
    const { range } = this.settings;
    const ends = metrics.map((metric) => this.curves.get(metric)?.get(event.run)?.x.at(-1));
    if (metrics.length === 0 || (range && ends.every((end) => end !== undefined && end > range[1]))) return [];
    const known = ends.filter((end) => end !== undefined);
    const from = known.length < ends.length ? range?.[0] : Math.min(...known);
    const answer = await loadCurves([event.run], metrics, this.settings, { from, to: range?.[1], points: this.points, signal });
    // After a resume or a return, the file is another one: then metrics that were not written since are shorter, too.
    const rewritten = answer.curves.some((curve) => (this.curves.get(curve.metric)?.get(curve.run)?.reading ?? curve.reading) !== curve.reading);
    const stale = rewritten ? [...this.curves.keys()] : this.append(answer.curves);
    if (rewritten) this.marks = this.marks.filter((mark) => mark.run !== event.run);
    this.addMarks(answer.marks);
    if (stale.length) await this.reload(event.run, stale, signal);
    return rewritten ? stale : metrics;
  }

  private append(fresh: Curve[]): string[] {
    const stale: string[] = [];
    for (const curve of fresh) {
      const old = this.curves.get(curve.metric)?.get(curve.run);
      const next = old ? continued(old, curve) : curve;
      if (next === null || overgrown(next, this.points)) stale.push(curve.metric);
      else this.curves.get(curve.metric)?.set(curve.run, next);
    }
    return stale;
  }

  private async reload(run: string, metrics: string[], signal: AbortSignal): Promise<void> {
    const [from, to] = this.settings.range ?? [];
    const answer = await loadCurves([run], metrics, this.settings, { from, to, points: this.points, signal });
    for (const metric of metrics) this.curves.get(metric)?.delete(run);
    for (const curve of answer.curves) this.curves.get(curve.metric)?.set(run, curve);
    this.addMarks(answer.marks);
  }

  private get points(): number {
    return pointsFor(this.runs.length);
  }

  private addMarks(marks: Mark[]): void {
    const known = new Set(this.marks.map((mark) => JSON.stringify(mark)));
    this.marks.push(...marks.filter((mark) => !known.has(JSON.stringify(mark))));
  }
}
