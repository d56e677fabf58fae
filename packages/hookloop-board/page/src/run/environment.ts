/** Where and from what a run was started. */

import type { Environment, Start } from "../answers";
import { get, query, runPath } from "../api";
import { type Child, fill, h } from "../dom";
import { moment, number } from "../format";
import { valueText } from "../text";
import { empty, load } from "../view";
import { againstChoice } from "./against";
import { box, facts, table } from "./tables";
import type { Part } from "./view";

/** Show the environment of each start, and how it differs from another run's. */
export function showEnvironment(part: Part): void {
  const place = h("div", {});
  fill(part.place, h("div", { class: "toolbar" }, againstChoice(part, ask)), place);
  ask("");

  function ask(other: string): void {
    const path = query(runPath(part.run, "environment"), { against: other || undefined });
    void load(place, "the environment", (signal) => get<Environment>(path, signal), (answer) => content(answer, other !== ""), part.signal);
  }
}

function content(answer: Environment, compared: boolean): Child {
  if (answer.starts.length === 0 && !answer.source) return empty("The run recorded no environment.");
  return [
    compared &&
      box(
        "Differences to the other run",
        answer.differences.length
          ? table("Differences", ["what", "this run", "the other run"], answer.differences.map((each) => [each.key, valueText(each.value), valueText(each.other)]))
          : h("p", { class: "dim" }, "None."),
      ),
    answer.source && sourceBox(answer.source),
    answer.starts.map((start, index) => box(index ? `Resume at iteration ${number(start.iter)}` : "Start", facts(rows(start)))),
  ];
}

function sourceBox(source: NonNullable<Environment["source"]>): HTMLElement {
  return box(
    "Source",
    facts([
      ["commit", source.commit ? h("code", {}, source.commit) : "not known"],
      ["changes that were not committed", source.dirty === null || source.dirty === undefined ? "not known" : source.dirty ? "yes" : "no"],
      ["copy of the source", source.zip ? "in the run directory" : "none"],
    ]),
  );
}

function rows(start: Start): [string, Child][] {
  const shown: [string, Child][] = [];
  const add = (name: string, value: unknown): void => {
    if (value === null || value === undefined || value === "") return;
    if (name === "time") shown.push([name, moment(String(value))]);
    else if (name === "command" && Array.isArray(value)) shown.push([name, h("code", {}, value.join(" "))]);
    else if (typeof value === "object" && !Array.isArray(value) && Object.keys(value).length > 8) {
      const list = Object.entries(value).map(([key, each]): [string, Child] => [key, valueText(each, 2000)]);
      shown.push([name, h("details", {}, h("summary", {}, `${list.length} of them`), facts(list))]);
    } else if (typeof value === "object" && !Array.isArray(value)) {
      for (const [key, each] of Object.entries(value)) add(`${name}.${key}`, each);
    } else shown.push([name, valueText(value, 2000)]);
  };
  for (const [name, value] of Object.entries(start)) add(name, value);
  return shown;
}
