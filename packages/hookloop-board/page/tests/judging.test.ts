import { expect, test } from "vitest";
import { byInterest, interest, isSetting } from "../src/judging";

const judged = { machine: ["train/iter_time", "val/fan_speed"], better: {} };

test("results come before losses, and what measures the machine says nothing of a run", () => {
  const metrics = ["train/iter_time", "train/loss", "train_epoch/loss", "val/fan_speed", "val/loss", "val/accuracy", "lr"];
  expect(byInterest(metrics, ["val/accuracy"], judged).slice(0, 3)).toEqual(["val/accuracy", "val/loss", "train/loss"]);
  for (const name of [...judged.machine, "lr"]) expect(interest(name, [], judged)).toBe(0);
  expect(interest("lr", ["lr"], judged)).toBe(5);
});

test("a learning rate is a setting, and a name that only looks like it is not", () => {
  expect(["lr", "lr/backbone", "train/lr", "lrp", "val/clr"].map(isSetting)).toEqual([true, true, true, false, false]);
});
