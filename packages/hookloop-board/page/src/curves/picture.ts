/** Charts as a picture file and curves as a table file. */

import { address, exported, query } from "../api";
import { look } from "../colours";
import { download, h } from "../dom";
import { colour } from "../theme";
import { fileName, oneLine, visible } from "../text";
import type { Chart } from "./chart";
import type { Settings } from "./plot";

const LINE = 18;

/** Save charts as one PNG: each with its title, below them the names of the runs. */
export function savePicture(charts: Chart[], nameOf: (run: string) => string): void {
  const drawn = charts.filter((chart) => chart.plot !== null);
  const first = drawn[0]?.plot;
  if (!first) return;
  const dot = devicePixelRatio;
  const across = drawn.length === 1 ? 1 : Math.min(3, drawn.length);
  const width = Math.max(...drawn.map((chart) => chart.plot!.width)) + 16;
  const height = first.height + LINE + 16;
  const runs = [...new Set(drawn.flatMap((chart) => chart.curves.map((curve) => curve.run)))];
  const rows = Math.ceil(drawn.length / across);
  const canvas = h("canvas", { width: Math.round(across * width * dot), height: Math.round((rows * height + runs.length * LINE + 16) * dot) });
  const pen = canvas.getContext("2d")!;
  pen.fillStyle = colour("--paper");
  pen.fillRect(0, 0, canvas.width, canvas.height);
  pen.scale(dot, dot);
  drawn.forEach((chart, index) => {
    const [left, top] = [(index % across) * width + 8, Math.floor(index / across) * height + 8];
    pen.fillStyle = colour("--ink");
    pen.font = "600 13px system-ui, sans-serif";
    pen.fillText(visible(oneLine(chart.metric, 60)), left + 4, top + 13, width - 24);
    pen.drawImage(chart.plot!.ctx.canvas, left, top + LINE, chart.plot!.width, chart.plot!.height);
  });
  runs.forEach((run, index) => drawName(pen, run, nameOf(run), rows * height + index * LINE + 8));
  canvas.toBlob((blob) => blob && download(fileName(drawn.length === 1 ? drawn[0]!.metric : "curves", "png"), blob));
}

function drawName(pen: CanvasRenderingContext2D, run: string, name: string, top: number): void {
  const { colour: hue, dash } = look(run);
  pen.strokeStyle = hue;
  pen.lineWidth = 2.5;
  pen.setLineDash(dash);
  pen.beginPath();
  pen.moveTo(12, top + 8);
  pen.lineTo(36, top + 8);
  pen.stroke();
  pen.fillStyle = colour("--ink");
  pen.font = "12px system-ui, sans-serif";
  pen.fillText(visible(oneLine(name, 100)), 44, top + 12);
}

/** Save curves as CSV: every point from the server, or the points that an exported page has. */
export function saveTable(runs: string[], metrics: string[], settings: Settings, charts: Chart[], nameOf: (run: string) => string): void {
  if (exported) {
    const text = tableText(charts, settings.axis, nameOf);
    return download("curves.csv", new Blob([text], { type: "text/csv" }));
  }
  const [from, to] = settings.range ?? [];
  const path = query("/api/curves.csv", { run: runs, metric: metrics, axis: settings.axis, from, to });
  h("a", { href: address(path), download: "curves.csv" }).click();
}

function tableText(charts: Chart[], axis: string, nameOf: (run: string) => string): string {
  const rows = charts.flatMap((chart) =>
    chart.curves.flatMap((curve) => curve.x.map((x, index) => [nameOf(curve.run), curve.metric, x, curve.y[index] ?? ""])),
  );
  return [["run", "metric", axis, "value"], ...rows].map((row) => row.map(csvCell).join(",")).join("\n") + "\n";
}

/** Return a cell of a CSV file; a text that a spreadsheet would take for a formula is kept a text. */
export function csvCell(value: unknown): string {
  if (typeof value === "number") return String(value);
  let text = String(value);
  if (/^[=+\-@\t\r]/.test(text)) text = `'${text}`;
  return /[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
