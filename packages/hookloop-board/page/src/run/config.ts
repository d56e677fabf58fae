/** The config of a run, where each value came from, and how it differs from another run's. */

import type { Config, ConfigValue } from "../answers";
import { get, query, runPath } from "../api";
import { checkbox, fill, h } from "../dom";
import { plural } from "../format";
import { valueText } from "../text";
import { load } from "../view";
import { againstChoice } from "./against";
import { table } from "./tables";
import type { Part } from "./view";

/** Show the config. */
export function showConfig(part: Part): void {
  let other = "";
  let config: Config | null = null;
  let onlyDifferent = false;
  const search = h("input", { type: "search", placeholder: "search keys and values", "aria-label": "Search the config", oninput: show });
  const different = checkbox("Only what differs", false, (on) => ((onlyDifferent = on), show()));
  different.hidden = true;
  const told = h("span", { class: "dim", role: "status" });
  const list = h("div", {});
  const text = h("details", { class: "box" });
  const against = againstChoice(part, (run) => {
    other = run;
    different.hidden = run === "";
    onlyDifferent = run !== "";
    different.querySelector("input")!.checked = onlyDifferent;
    ask();
  });
  const body = h("div", {}, list, text);
  const wait = h("div", {});
  fill(part.place, h("div", { class: "toolbar" }, search, against, different, told), wait);
  ask();

  function ask(): void {
    const path = query(runPath(part.run, "config"), { against: other || undefined });
    void load(
      wait,
      "the config",
      (signal) => get<Config>(path, signal),
      (answer) => {
        config = answer;
        show();
        return body;
      },
      part.signal,
    );
  }

  function show(): void {
    if (!config) return;
    const wanted = search.value.toLowerCase();
    const rows = config.values.filter((each) => matches(each, wanted) && (!onlyDifferent || each.differs));
    const heads = other ? ["key", "value", "the other run", "from"] : ["key", "value", "from"];
    told.textContent = plural(rows.length, "value");
    fill(list, rows.length ? table("Config", heads, rows.map((each) => row(each, other !== ""))) : h("p", { class: "dim" }, onlyDifferent ? "The two configs are the same here." : "No key or value matches."));
    fill(text, h("summary", {}, "The file as it was written"), h("pre", {}, config.text));
  }
}

function row(each: ConfigValue, compared: boolean): (Node | string)[] {
  const value = h("code", { class: each.differs ? "differs" : null }, valueText(each.value, 2000));
  const source = each.source ?? "";
  if (!compared) return [h("code", {}, each.key), value, source];
  const other = "other" in each ? h("code", { class: each.differs ? "differs" : null }, valueText(each.other, 2000)) : h("span", { class: "dim" }, "not set");
  return [h("code", {}, each.key), value, other, source];
}

function matches(each: ConfigValue, wanted: string): boolean {
  return each.key.toLowerCase().includes(wanted) || valueText(each.value, 2000).toLowerCase().includes(wanted);
}
