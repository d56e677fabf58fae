import { expect, test } from "vitest";
import { allColumns, firstColumns, progressOf, sortRuns } from "../src/runs/columns";
import { makeAnswer, makeRun } from "./runs";

const runs = [
  makeRun({ id: "a", name: "run10", metrics: { "val/loss": 0.5 }, config: { lr: 0.1, seed: 1 } }),
  makeRun({ id: "b", name: "run9", metrics: { "val/loss": "NaN" }, config: { lr: 0.01, seed: 1 } }),
  makeRun({ id: "c", name: "run1", metrics: {}, config: { lr: "auto", seed: 1 } }),
];
const answer = makeAnswer(runs, { differing: ["lr"], metrics: ["val/loss", "train/iter_time"] });
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
