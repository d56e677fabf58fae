import { expect, test } from "vitest";
import { byInterest, interest, isAboutSpeed } from "../src/judging";

test("results come before losses, and speed says nothing of a run", () => {
  const metrics = ["train/iter_time", "train/loss", "train_epoch/loss", "val/loss", "val/accuracy", "lr"];
  expect(byInterest(metrics, ["val/accuracy"]).slice(0, 3)).toEqual(["val/accuracy", "val/loss", "train/loss"]);
  for (const name of ["train/time_per_sample", "train/memory/rss", "train/samples_per_second", "lr"]) {
    expect(isAboutSpeed(name)).toBe(true);
    expect(interest(name, [])).toBe(0);
  }
  expect(interest("lr", ["lr"])).toBe(5);
});
