/** Answers that an exported page carries with it, instead of a server. */

import type { Curve, Curves, Mark } from "./answers";
import { smooth } from "./curves/smoothing";

export interface ExportedData {
  exported: string;
  answers: Record<string, unknown>;
}

/** Read the data of an exported page, or nothing on a page with a server. */
export function readExported(page: Document): ExportedData | null {
  const holder = page.getElementById("board-data");
  return holder?.textContent ? (JSON.parse(holder.textContent) as ExportedData) : null;
}

/** Return the answer to a path; what was not written into the file is an error. */
export function lookUp(data: ExportedData, path: string): unknown {
  const [place = "", query = ""] = path.split("?", 2);
  if (place === "/api/curves") return joinCurves(data, new URLSearchParams(query));
  // An answer without its query is the right one only if the query asks for nothing else.
  const keys = asksForMore(new URLSearchParams(query)) ? [path] : [path, place];
  for (const key of keys) {
    if (Object.hasOwn(data.answers, key)) return checked(data.answers[key]);
  }
  if (place === "/api/sweeps") return { sweeps: [] };
  throw new Error("This is not in the exported file. Open the board with “hookloop board” to see it.");
}

function asksForMore(query: URLSearchParams): boolean {
  const offset = query.get("offset") ?? "0";
  return offset !== "0" || ["against", "sort", "file", "before"].some((name) => query.has(name));
}

// What the server could not answer when it wrote the file is there with its reason.
function checked(answer: unknown): unknown {
  const { error } = (answer ?? {}) as { error?: unknown };
  if (typeof error === "string") throw new Error(error);
  return answer;
}

function joinCurves(data: ExportedData, query: URLSearchParams): Curves {
  const axis = query.get("axis") ?? "iter";
  const [from, to] = [limit(query.get("from"), -Infinity), limit(query.get("to"), Infinity)];
  const weight = limit(query.get("smooth"), 0);
  const curves: Curve[] = [];
  const marks = new Map<string, Mark>();
  const leftOut = new Map<string, { run: string; text: string }>();
  for (const run of query.getAll("run")) {
    for (const metric of query.getAll("metric")) {
      const found = storedCurves(data, run, metric, axis);
      curves.push(...(found?.curves ?? []).map((curve) => cut(weight ? { ...curve, smooth: smooth(curve.y, weight) } : curve, from, to)));
      for (const one of found?.left_out ?? []) leftOut.set(one.run, one);
      for (const mark of found?.marks ?? []) marks.set(JSON.stringify(mark), mark);
    }
  }
  return { axis, curves, marks: [...marks.values()], left_out: [...leftOut.values()] };
}

function limit(text: string | null, otherwise: number): number {
  return text === null || text === "" ? otherwise : Number(text);
}

function storedCurves(data: ExportedData, run: string, metric: string, axis: string): Curves | undefined {
  const plain = `/api/curves?run=${run}&metric=${metric}&axis=${axis}`;
  const keys = [plain, `/api/curves?run=${run}&metric=${encodeURIComponent(metric)}&axis=${axis}`];
  const key = keys.find((name) => Object.hasOwn(data.answers, name));
  return key === undefined ? undefined : (checked(data.answers[key]) as Curves);
}

/** Return the part of a curve in a range, with the points on both sides of it, as the server does. */
export function cut(curve: Curve, from: number, to: number): Curve {
  if (from === -Infinity && to === Infinity) return curve;
  const first = curve.x.findIndex((x) => x >= from);
  const after = curve.x.findIndex((x) => x > to);
  const [begin, end] = [first < 0 ? curve.x.length : first, after < 0 ? curve.x.length : after];
  const keep = <T>(values: T[]): T[] => values.slice(Math.max(0, begin - 1), end + 1);
  const part: Curve = { ...curve, total: end - begin, x: keep(curve.x), y: keep(curve.y) };
  if (curve.min) part.min = keep(curve.min);
  if (curve.max) part.max = keep(curve.max);
  if (curve.smooth) part.smooth = keep(curve.smooth);
  return part;
}
