/** Marks on charts: resumes, ways back, intended changes, and values that are not finite. */

import type uPlot from "uplot";
import type { Curve, Mark } from "../answers";
import { look } from "../colours";
import { fill, h } from "../dom";

const NEAR = 6;

/** Draw the marks of a chart, each in the colour of its run. */
export function drawMarks(plot: uPlot, marks: Mark[]): void {
  const { ctx, bbox } = plot;
  const dot = devicePixelRatio;
  ctx.save();
  ctx.lineWidth = dot;
  for (const mark of marks) {
    const x = plot.valToPos(mark.x, "x", true);
    if (!(x >= bbox.left && x <= bbox.left + bbox.width)) continue;
    ctx.strokeStyle = ctx.fillStyle = look(mark.run).colour;
    ctx.setLineDash([4 * dot, 4 * dot]);
    ctx.globalAlpha = 0.7;
    line(ctx, x, bbox.top, bbox.top + bbox.height);
    ctx.globalAlpha = 1;
    flag(ctx, x, bbox.top, mark.kind, dot);
  }
  ctx.restore();
}

function line(ctx: CanvasRenderingContext2D, x: number, top: number, bottom: number): void {
  ctx.beginPath();
  ctx.moveTo(x, top);
  ctx.lineTo(x, bottom);
  ctx.stroke();
}

// A resume is a triangle, a change a diamond, a way back an arrow to the left: shapes, so that colour is not needed to tell
// them apart.
function flag(ctx: CanvasRenderingContext2D, x: number, top: number, kind: string, dot: number): void {
  const size = 5 * dot;
  const change = kind === "change";
  ctx.beginPath();
  if (kind === "rewind") {
    ctx.moveTo(x + size, top);
    ctx.lineTo(x + size, top + size * 2);
    ctx.lineTo(x - size, top + size);
    ctx.closePath();
    return ctx.fill();
  }
  ctx.moveTo(x - size, top);
  ctx.lineTo(x + size, top);
  ctx.lineTo(x, top + size * 1.4);
  if (change) ctx.lineTo(x - size, top);
  ctx.closePath();
  if (change) {
    ctx.moveTo(x - size, top);
    ctx.lineTo(x, top - size * 1.4);
    ctx.lineTo(x + size, top);
  }
  ctx.fill();
}

/** Draw a small cross at the bottom for each value that is not finite. */
export function drawNonFinite(plot: uPlot, curves: Curve[]): void {
  const { ctx, bbox } = plot;
  const size = 3.5 * devicePixelRatio;
  const y = bbox.top + bbox.height - 2 * size;
  ctx.save();
  ctx.lineWidth = 1.5 * devicePixelRatio;
  for (const curve of curves) {
    ctx.strokeStyle = look(curve.run).colour;
    for (const [at] of curve.nonfinite ?? []) {
      const x = plot.valToPos(at, "x", true);
      if (!(x >= bbox.left && x <= bbox.left + bbox.width)) continue;
      ctx.beginPath();
      ctx.moveTo(x - size, y - size);
      ctx.lineTo(x + size, y + size);
      ctx.moveTo(x + size, y - size);
      ctx.lineTo(x - size, y + size);
      ctx.stroke();
    }
  }
  ctx.restore();
}

/** Draw a small triangle at the edge for each point beyond the limits of the axis. */
export function drawOutside(plot: uPlot, curves: Curve[]): void {
  const { ctx, bbox } = plot;
  const { min, max } = plot.scales["y"] ?? {};
  if (min === undefined || max === undefined || min === null || max === null) return;
  const size = 4 * devicePixelRatio;
  ctx.save();
  for (const curve of curves) {
    ctx.fillStyle = look(curve.run).colour;
    let [last, lastWay] = [-Infinity, 0];
    curve.x.forEach((at, index) => {
      const [low, high] = [curve.min?.[index] ?? curve.y[index], curve.max?.[index] ?? curve.y[index]];
      const way = typeof high === "number" && high > max ? 1 : typeof low === "number" && low < min && !(plot.scales["y"]!.distr === 3 && low <= 0) ? -1 : 0;
      if (way === 0) return;
      const x = plot.valToPos(at, "x", true);
      const isInside = x >= bbox.left && x <= bbox.left + bbox.width;
      if (!isInside || (way === lastWay && x - last < size)) return;
      [last, lastWay] = [x, way];
      const tip = way > 0 ? bbox.top + 1 : bbox.top + bbox.height - 1;
      ctx.beginPath();
      ctx.moveTo(x, tip);
      ctx.lineTo(x - size, tip + way * size * 1.6);
      ctx.lineTo(x + size, tip + way * size * 1.6);
      ctx.closePath();
      ctx.fill();
    });
  }
  ctx.restore();
}

/** Return the mark under the cursor. */
export function markAt(plot: uPlot, marks: Mark[]): Mark | undefined {
  const left = plot.cursor.left ?? -1;
  if (left < 0) return undefined;
  return marks.find((mark) => Math.abs(plot.valToPos(mark.x, "x") - left) <= NEAR);
}

/** List the marks as text, for whom cannot point at them. */
export function listMarks(place: HTMLElement, marks: Mark[], text: (mark: Mark) => string): void {
  place.hidden = marks.length === 0;
  fill(place, h("summary", {}, `Resumes, returns and changes (${marks.length})`), h("ul", {}, marks.map((mark) => h("li", {}, text(mark)))));
}
