/** The checkpoints of a run: what they hold, whether they are whole, and what to do with them. */

import type { Checkpoint } from "../answers";
import { exported, get, post, runPath } from "../api";
import { type Child, fill, h, keepingFocus } from "../dom";
import { ago, bytes, moment, number } from "../format";
import { byInterest, isResult } from "../judging";
import { oneLine } from "../text";
import { empty, load } from "../view";
import { copyable } from "./copying";
import type { Part } from "./view";

const STATES: Record<Checkpoint["state"], string> = { ok: "whole", damaged: "damaged", missing: "missing", unchecked: "not checked" };

interface Verified {
  state: Checkpoint["state"];
  detail: string;
}

/** Show the checkpoints; new ones appear by themselves. */
export function showCheckpoints(part: Part): void {
  const verified = new Map<string, Verified>();
  const opened = new Set<string>();
  let shown = "";
  const ask = (signal: AbortSignal): Promise<{ checkpoints: Checkpoint[] }> => get(runPath(part.run, "checkpoints"), signal);
  const place = h("div", {});
  const told = h("p", { class: "unseen", role: "status" });
  fill(part.place, told, place);
  void load(place, "the checkpoints", ask, ({ checkpoints }) => content(checkpoints), part.signal);
  part.onChange(() => void refresh());

  async function refresh(): Promise<void> {
    const { checkpoints } = await ask(part.signal).catch(() => ({ checkpoints: null }));
    if (checkpoints && JSON.stringify(checkpoints) !== shown) keepingFocus(place, () => fill(place, content(checkpoints)));
  }

  function content(checkpoints: Checkpoint[]): Child {
    shown = JSON.stringify(checkpoints);
    if (checkpoints.length === 0) {
      return empty("There are no checkpoints yet.", "The hook ", h("code", {}, "SaveCheckpoint"), " writes them; a running training can be asked to save above.");
    }
    const metrics = [...new Set(checkpoints.flatMap((each) => Object.keys(each.metrics)))].filter((name) => isResult(name, part.details()));
    const main = part.details().main_metric;
    const best = byInterest(metrics, main === null ? [] : [main], part.details()).slice(0, 6);
    const heads = ["name", "iteration", "epoch", "size", "written", "state", "commands", ...best];
    const numbers = (index: number): boolean => (index > 0 && index < 4) || index > 6;
    return h(
      "div",
      { class: "scroll", tabindex: "0", role: "region", "aria-label": "Checkpoints" },
      h(
        "table",
        { class: "plain checkpoints" },
        h("caption", { class: "unseen" }, "Checkpoints"),
        h("thead", {}, h("tr", {}, heads.map((head, index) => h("th", { scope: "col", class: numbers(index) ? "is-number" : null }, head)))),
        checkpoints.map((each) => rows(each, best)),
      ),
    );
  }

  function rows(each: Checkpoint, metrics: string[]): HTMLElement {
    const commands = h("tr", { class: "commands", hidden: !opened.has(each.name) });
    commands.append(h("td", { colspan: metrics.length + 7 }, Object.entries(each.commands).map(([name, command]) => copyable(name, command, each.name))));
    const toggle = h(
      "button",
      {
        type: "button",
        class: "small",
        "data-keep": `commands/${each.name}`,
        "aria-expanded": String(!commands.hidden),
        "aria-label": `Commands of ${each.name}`,
        onclick: () => {
          commands.hidden = !commands.hidden;
          if (commands.hidden) opened.delete(each.name);
          else opened.add(each.name);
          toggle.setAttribute("aria-expanded", String(!commands.hidden));
        },
      },
      "Commands",
    );
    const row = h(
      "tr",
      { "data-testid": "checkpoint-row", "data-name": each.name },
      h("th", { scope: "row" }, h("code", {}, oneLine(each.name)), marks(each)),
      h("td", { class: "is-number" }, number(each.iter)),
      h("td", { class: "is-number" }, number(each.epoch)),
      h("td", { class: "is-number" }, bytes(each.size)),
      h("td", {}, h("time", { title: moment(each.time), datetime: each.time }, ago(each.time))),
      h("td", {}, state(each)),
      h("td", {}, Object.keys(each.commands).length ? toggle : h("span", { class: "dim" }, "need a config")),
      metrics.map((name) => h("td", { class: "is-number" }, name in each.metrics ? number(each.metrics[name]) : "")),
    );
    return h("tbody", {}, row, commands);
  }

  function state(each: Checkpoint): HTMLElement {
    const known = verified.get(each.name);
    const now = known?.state ?? each.state;
    const place = h("span", { class: "row" }, h("span", { class: "pill", "data-status": now, title: known?.detail ?? null }, STATES[now] ?? now));
    if (exported || now === "missing") return place;
    const button = h("button", { type: "button", class: "small", "data-keep": `verify/${each.name}`, "aria-label": `Verify ${each.name}`, onclick: () => void verify() }, "Verify");
    place.append(button);
    if (known?.detail && known.state !== "ok") place.append(h("span", { class: "dim" }, known.detail));
    return place;

    async function verify(): Promise<void> {
      if (button.getAttribute("aria-disabled")) return;
      button.setAttribute("aria-disabled", "true"); // One that is disabled would lose the focus.
      button.textContent = "Reading …";
      try {
        verified.set(each.name, await post<Verified>(runPath(part.run, "checkpoints", "verify"), { name: each.name }));
      } catch (error) {
        verified.set(each.name, { state: each.state, detail: error instanceof Error ? error.message : String(error) });
      }
      keepingFocus(part.place, () => place.replaceWith(state(each)));
      const { state: found, detail } = verified.get(each.name)!;
      told.textContent = `${each.name}: ${STATES[found] ?? found}, ${detail}`;
    }
  }
}

function marks(each: Checkpoint): Child {
  return [
    each.is_last && h("span", { class: "mark" }, "last"),
    each.best_of.map((metric) => h("span", { class: "mark best" }, `best ${oneLine(metric, 60)}`)),
    each.forever && h("span", { class: "mark" }, "kept forever"),
  ];
}
