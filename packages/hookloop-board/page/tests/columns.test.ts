import { expect, test } from "vitest";
import { allColumns, firstColumns, isEmptyColumn, progressOf, sortRuns, standings } from "../src/runs/columns";
import { makeAnswer, makeRun } from "./runs";

const runs = [
  makeRun({ id: "a", name: "run10", metrics: { "val/loss": 0.5 }, config: { lr: 0.1, seed: 1 } }),
  makeRun({ id: "b", name: "run9", metrics: { "val/loss": "NaN" }, config: { lr: 0.01, seed: 1 } }),
  makeRun({ id: "c", name: "run1", metrics: {}, config: { lr: "auto", seed: 1 } }),
];
const answer = makeAnswer(runs, { differing: ["lr"], metrics: ["val/loss", "train/iter_time"], machine: ["train/iter_time"], better: { "val/loss": "less" } });
const order = (id: string, descending: boolean): string[] =>
  sortRuns(runs, allColumns(answer).find((column) => column.id === id), descending).map((run) => run.id);

test("names sort by their numbers", () => expect(order("name", false)).toEqual(["c", "b", "a"]));

test("what has no value comes last either way", () => {
  expect(order("last:val/loss", false)).toEqual(["a", "b", "c"]);
  expect(order("last:val/loss", true)).toEqual(["a", "b", "c"]);
});

test("numbers come before texts in a mixed column", () => expect(order("config:lr", false)).toEqual(["b", "a", "c"]));

test("at first there are results and only the config keys that differ", () => {
  const first = firstColumns(answer);
  expect(first).toContain("config:lr");
  expect(first).not.toContain("config:seed");
  expect(first).toContain("last:val/loss");
  expect(first).not.toContain("last:train/iter_time");
});

test("progress is by iterations, else by epochs, else not known", () => {
  expect(progressOf(makeRun({ status: "running", iters: 30, total_iters: 60 }))).toBe(0.5);
  expect(progressOf(makeRun({ status: "running", total_iters: null, epochs: 1, total_epochs: 4 }))).toBe(0.25);
  expect(progressOf(makeRun({ total_iters: null, total_epochs: null }))).toBeUndefined();
  expect(progressOf(makeRun({ iters: 90, total_iters: 60 }))).toBe(1);
  expect(progressOf(makeRun({ iters: 57, total_iters: 60 })), "three were left out").toBe(1);
});

test("hostile names are columns like others", () => {
  const odd = makeAnswer([makeRun({ config: { "__proto__x": 1, "<b>": 2, constructor: 3 } })]);
  expect(allColumns(odd).map((column) => column.id)).toEqual(expect.arrayContaining(["config:<b>", "config:constructor"]));
});

const trained = [
  makeRun({ id: "a", main_metric: "val/accuracy", metrics: { "val/accuracy": 0.9, "val/loss": 0.2 }, bests: { "val/accuracy": { value: 0.95, iter: 1, epoch: 1 } } }),
  makeRun({ id: "b", main_metric: "val/accuracy", metrics: { "val/accuracy": 0.5, "val/loss": 0.9 } }),
  makeRun({ id: "c", main_metric: "val/accuracy", metrics: { "val/accuracy": "NaN", "val/loss": 0.2 } }),
];
const judged = makeAnswer(trained, { metrics: ["val/loss", "val/accuracy"], better: { "val/accuracy": "greater", "val/loss": "less" } });
const columnOf = (id: string) => allColumns(judged).find((column) => column.id === id)!;

test("the result and its curve come early, on a phone right after the name", () => {
  expect(firstColumns(judged, true).slice(0, 3)).toEqual(["name", "last:val/accuracy", "curve"]);
  const wide = firstColumns(judged);
  expect(wide.indexOf("curve")).toBeLessThan(wide.indexOf("started"));
  expect(wide.slice(3, 6)).toEqual(["last:val/accuracy", "curve", "best:val/accuracy"]);
});

test("runs that are judged by several metrics have each its own result on a phone", () => {
  const mixed = makeAnswer([...trained, makeRun({ id: "d", main_metric: "val/loss", metrics: { "val/loss": 3 } })], { metrics: judged.metrics, better: judged.better });
  expect(firstColumns(mixed, true).slice(0, 3)).toEqual(["name", "result", "curve"]);
  expect(mixed.runs.map((run) => allColumns(mixed).find(({ id }) => id === "result")!.text(run))).toEqual(["0.9", "0.5", "NaN", "3"]);
});

test("a column in which no run has anything is empty", () => {
  const empty = ["note", "tags", "reason", "curve", "status", "ranks"].filter((id) => isEmptyColumn(columnOf(id), trained));
  expect(empty).toEqual(["note", "tags", "reason"]);
  expect(isEmptyColumn(columnOf("note"), [...trained, makeRun({ note: "x" })])).toBe(false);
});

test("a worse result stands behind a better one, whichever way is better", () => {
  const ranks = (id: string) => Object.fromEntries([...standings(trained, columnOf(id))].map(([run, { rank, share }]) => [run, [rank, share]]));
  expect(ranks("last:val/accuracy")).toEqual({ a: [1, 0], b: [2, 1] });
  expect(ranks("last:val/loss")).toEqual({ a: [1, 0], b: [3, 1], c: [1, 0] });
  expect(ranks("seconds")).toEqual({});
  expect(standings(trained.slice(0, 1), columnOf("last:val/loss")).size).toBe(0);
});
