import { describe, expect, test } from "vitest";
import { readFilter, words } from "../src/runs/filter";
import { makeRun } from "./runs";

const runs = [
  makeRun({ name: "small", status: "running", config: { "optimizer.lr": 0.001, "model.name": "Net" }, metrics: { "val/accuracy": 0.9 }, tags: ["baseline"] }),
  makeRun({ name: "large one", config: { "optimizer.lr": 0.1 }, metrics: { "val/accuracy": "NaN" }, bests: { "val/accuracy": { value: 0.95, iter: 1, epoch: 1 } }, note: "diverged" }),
  makeRun({ name: "foreign", status: "dead", seconds: null }),
];

const found = (text: string): string[] => runs.filter(readFilter(text, runs).test).map((run) => run.name);

describe("filter", () => {
  test.each([
    ["", ["small", "large one", "foreign"]],
    ["LARGE", ["large one"]],
    ["diverged", ["large one"]],
    ['"large one"', ["large one"]],
    ["-large", ["small", "foreign"]],
    ["lr<0.01", ["small"]],
    ["optimizer.lr>=1e-1", ["large one"]],
    ["status=running", ["small"]],
    ["status!=running", ["large one", "foreign"]],
    ["accuracy>0.5", ["small"]],
    ["best:val/accuracy>0.9", ["large one"]],
    ["tag=baseline", ["small"]],
    ["tag!=baseline", ["large one", "foreign"]],
    ["name~ar", ["large one"]],
    ["model.name=net", ["small"]],
    ["lr<1 status=running", ["small"]],
    ["seconds=null", ["foreign"]],
    ["name<5", []],
  ])("%s", (text, names) => expect(found(text)).toEqual(names));

  test("a name that no run has is told, with the nearest", () => {
    const filter = readFilter("acuracy>0.5", runs);
    expect(filter.problem).toBe("No run has “acuracy”. Did you mean “accuracy”?");
    expect(runs.filter(filter.test)).toEqual([]);
  });

  test("a text that looks like a pattern is only a text", () => expect(found("(.*")).toEqual([]));

  test("words keep what is quoted together", () => expect(words('a "b c" note="x y"')).toEqual(["a", "b c", "note=x y"]));
});
