import { describe, expect, test } from "vitest";
import type { Curve } from "../src/answers";
import { cut, lookUp } from "../src/exported";

const curves = (run: string, metric: string): unknown => ({
  axis: "iter",
  curves: [{ run, metric, reading: 0, count: 4, total: 4, x: [1, 2, 3, 4], y: [5, 6, 7, 8], min: [4, 5, 6, 7], max: [6, 7, 8, 9] }],
  marks: [{ run, x: 2, kind: "resume", text: "resumed" }],
});
const data = {
  exported: "2026-11-18T07:00:00Z",
  answers: {
    "/api/runs": { runs: [] },
    "/api/runs/a/config": { text: "" },
    "/api/runs/a/log": { error: "The log is gone." },
    "/api/curves?run=a&metric=val/loss&axis=iter": curves("a", "val/loss"),
    "/api/curves?run=b&metric=val%2Floss&axis=iter": curves("b", "val/loss"),
  },
};

describe("answers of an exported page", () => {
  test("are found by path, with or without their query", () => {
    expect(lookUp(data, "/api/runs")).toEqual({ runs: [] });
    expect(lookUp(data, "/api/runs/a/config?offset=0&limit=100")).toEqual({ text: "" });
  });
  test("curves of several runs come from one entry each", () => {
    const answer = lookUp(data, "/api/curves?run=a&run=b&metric=val%2Floss&axis=iter&points=500") as { curves: { run: string }[]; marks: unknown[] };
    expect(answer.curves.map((curve) => curve.run)).toEqual(["a", "b"]);
    expect(answer.marks).toHaveLength(2);
  });
  test("a range is cut from what is there", () => {
    const answer = lookUp(data, "/api/curves?run=a&metric=val%2Floss&axis=iter&from=3&to=9") as { curves: unknown[] };
    expect(answer.curves[0]).toMatchObject({ total: 2, x: [2, 3, 4], y: [6, 7, 8], min: [5, 6, 7], max: [7, 8, 9] });
    const between = lookUp(data, "/api/curves?run=a&metric=val%2Floss&axis=iter&from=2.2&to=2.8") as { curves: unknown[] };
    expect(between.curves[0]).toMatchObject({ total: 0, x: [2, 3] });
  });
  test("smoothing is that of the whole curve, also where a part of it is looked at", () => {
    const ask = (more: string): { curves: Curve[] } => lookUp(data, `/api/curves?run=a&metric=val%2Floss&axis=iter&smooth=0.5${more}`) as { curves: Curve[] };
    const whole = ask("").curves[0]!.smooth!;
    expect(ask("&from=3&to=9").curves[0]!.smooth).toEqual(whole.slice(1));
  });
  test("a curve that was not stored is no curve, not an error", () => {
    expect(lookUp(data, "/api/curves?run=x&metric=y&axis=time")).toMatchObject({ curves: [], marks: [] });
  });
  test("what is missing or failed is told", () => {
    expect(() => lookUp(data, "/api/runs/b")).toThrow("not in the exported file");
    expect(() => lookUp(data, "/api/runs/a/config?against=b")).toThrow("not in the exported file");
    expect(() => lookUp(data, "/api/runs/a/config?offset=100")).toThrow("not in the exported file");
    expect(() => lookUp(data, "/api/runs/a/log?limit=1")).toThrow("The log is gone.");
    expect(() => lookUp(data, "/api/__proto__")).toThrow("not in the exported file");
    expect(lookUp(data, "/api/sweeps")).toEqual({ sweeps: [] });
  });
  test("without a range nothing is copied", () => {
    const curve = { run: "a", metric: "m", reading: 0, count: 1, total: 1, x: [1], y: [1] };
    expect(cut(curve, -Infinity, Infinity)).toBe(curve);
  });
});
