/** Metrics in groups by the first part of their name. */

import { isSetting } from "../judging";
import { groupBy } from "../lists";

export interface Group {
  name: string;
  about: string;
  metrics: string[];
}

const ORDER = ["train", "train_epoch", "val", "test"];
const ABOUT: Record<string, string> = {
  train: "means over intervals",
  train_epoch: "means over epochs",
  val: "validation",
  test: "test",
};

/** Return the metrics in groups; training and validation first, what has no group under “other” last. */
export function groupMetrics(metrics: string[]): Group[] {
  const groups = groupBy(metrics, (name) => (name.includes("/") ? name.slice(0, name.indexOf("/")) : ""));
  return [...groups]
    .map(([name, members]) => ({
      name: name || "other",
      about: ABOUT[name] ?? "",
      metrics: members.sort((one, other) => weight(one) - weight(other) || one.localeCompare(other)),
    }))
    .sort((one, other) => place(one.name) - place(other.name) || one.name.localeCompare(other.name));
}

function place(group: string): number {
  const known = ORDER.indexOf(group);
  return known >= 0 ? known : group === "other" ? 99 : 50;
}

// What a training is judged by comes before what it was set to.
function weight(metric: string): number {
  if (/(^|\/)loss$/.test(metric)) return 0;
  return isSetting(metric) ? 2 : 1;
}
