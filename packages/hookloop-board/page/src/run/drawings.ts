/** Histograms and confusion matrices. */

import { h, style, svg } from "../dom";
import { number, percent } from "../format";
import { oneLine } from "../text";
import { colour } from "../theme";
import { empty } from "../view";

const MOST_IN_TABLE = 40;

/** Draw a histogram as bars, with the numbers for whom hovers. */
export function drawHistogram({ edges, counts }: { edges: number[]; counts: number[] }, label: string): Element {
  const most = Math.max(...counts, 0);
  const [first, last] = [edges[0], edges.at(-1)];
  if (first === undefined || last === undefined || most <= 0 || last <= first) return empty("The histogram has no values.");
  const [width, height] = [480, 180];
  const x = (edge: number): number => ((edge - first) / (last - first)) * width;
  const bars = counts.map((count, index) => {
    const [from, to] = [edges[index]!, edges[index + 1]!];
    const tall = (count / most) * (height - 4);
    const bar = svg("rect", { x: x(from), y: height - tall, width: Math.max(0.5, x(to) - x(from) - 0.5), height: tall, class: "bar" });
    bar.append(svg("title", {}, `${number(from)} to ${number(to)}: ${number(count)}`));
    return bar;
  });
  const text = (at: number, anchor: string, edge: number): SVGElement => svg("text", { x: at, y: height + 16, "text-anchor": anchor }, number(edge));
  return svg(
    "svg",
    { viewBox: `0 0 ${width} ${height + 22}`, role: "img", "aria-label": `${label}: ${counts.length} bars from ${number(first)} to ${number(last)}, highest ${number(most)}`, class: "histogram" },
    bars,
    svg("line", { x1: 0, x2: width, y1: height, y2: height, class: "rule" }),
    text(0, "start", first),
    text(width / 2, "middle", (first + last) / 2),
    text(width, "end", last),
  );
}

/** Show a confusion matrix: true labels down, predicted ones across, shaded by the share of the row. */
export function drawConfusion({ labels, matrix }: { labels: string[]; matrix: number[][] }, label: string): HTMLElement {
  if (matrix.length === 0) return empty("The matrix is empty.");
  if (matrix.length > MOST_IN_TABLE) return drawLargeMatrix(matrix, label);
  const name = (index: number): string => oneLine(String(labels[index] ?? index), 24);
  const rows = matrix.map((row, index) => {
    const sum = row.reduce((total, count) => total + count, 0);
    const cells = row.map((count, column) => {
      const share = sum ? count / sum : 0;
      const title = `true ${name(index)}, predicted ${name(column)}: ${number(count)} (${percent(share)})`;
      const cell = h("td", { class: index === column ? "hit" : "miss", title }, count ? number(count) : "");
      return style(cell, { "--heat": `${Math.round(share * 70)}%` });
    });
    return h("tr", {}, h("th", { scope: "row" }, name(index)), cells);
  });
  return h(
    "div",
    { class: "scroll", tabindex: "0", role: "region", "aria-label": label },
    h(
      "table",
      { class: "confusion" },
      h("caption", {}, "true labels down, predicted across"),
      h("thead", {}, h("tr", {}, h("td", {}), matrix.map((_, index) => h("th", { scope: "col" }, name(index))))),
      h("tbody", {}, rows),
    ),
  );
}

function drawLargeMatrix(matrix: number[][], label: string): HTMLElement {
  const size = matrix.length;
  const dot = Math.max(1, Math.floor(480 / size));
  const canvas = h("canvas", { width: size * dot, height: size * dot, role: "img", "aria-label": `${label}: ${size} labels`, class: "matrix" });
  const pen = canvas.getContext("2d")!;
  pen.fillStyle = colour("--paper");
  pen.fillRect(0, 0, canvas.width, canvas.height);
  matrix.forEach((row, index) => {
    const sum = row.reduce((total, count) => total + count, 0) || 1;
    row.forEach((count, column) => {
      pen.globalAlpha = Math.sqrt(count / sum);
      pen.fillStyle = colour(index === column ? "--accent" : "--bad");
      pen.fillRect(column * dot, index * dot, dot, dot);
    });
  });
  return canvas;
}
