/** Asking a running training for something, with a confirmation and its answer. */

import type { Run } from "../answers";
import { exported, post, runPath } from "../api";
import { type Child, fill, h } from "../dom";
import { valueText } from "../text";
import type { Board } from "../view";
import { cellText } from "./tables";

interface Answer {
  answered?: boolean;
  done?: boolean;
  reason?: string;
  [name: string]: unknown;
}

type Deed = "save" | "validate" | "stop" | "set";

const DEEDS: Record<Deed, { label: string; question: string; yes: string; asking: string }> = {
  save: { label: "Save", question: "Save a checkpoint after the current iteration?", yes: "Save", asking: "Asking for a checkpoint" },
  validate: { label: "Validate", question: "Validate after the current iteration?", yes: "Validate", asking: "Asking for a validation" },
  stop: { label: "Stop", question: "Stop the training in order? It saves a checkpoint and can be continued later.", yes: "Stop the training", asking: "Asking to stop" },
  set: { label: "Set a value", question: "Change a value of the running training? The change is written down in the run.", yes: "Set", asking: "Asking to set the value" },
};

/** The buttons that ask a run; hidden where asking is not possible. */
export class AskPanel {
  readonly element = h("div", { class: "ask", hidden: true });
  private readonly answer = h("p", { class: "answer", role: "status", "data-testid": "ask-answer", hidden: true });
  private readonly buttons = h(
    "div",
    { class: "row", role: "group", "aria-label": "Ask the running training" },
    (Object.keys(DEEDS) as Deed[]).map((deed) =>
      h("button", { type: "button", "data-testid": `ask-${deed}`, class: deed === "stop" ? "danger" : null, onclick: () => this.open(deed) }, DEEDS[deed].label),
    ),
  );
  private run: Run | null = null;
  readonly close: () => void;

  constructor(
    private readonly board: Board,
    private readonly id: string,
  ) {
    this.element.append(this.buttons, this.answer);
    this.close = board.store.changed.add(() => this.run && this.show(this.run));
  }

  /** Show the buttons while the run can answer. */
  show(run: Run): void {
    this.run = run;
    this.buttons.hidden = exported !== null || !this.board.store.canChange || run.status !== "running";
    this.element.hidden = this.buttons.hidden && this.answer.hidden;
  }

  private open(deed: Deed): void {
    const words = DEEDS[deed];
    const fields = deed === "set" ? this.fields() : null;
    const dialog = h("dialog", { "aria-labelledby": "ask-title" });
    const form = h(
      "form",
      {
        method: "dialog",
        onsubmit: (event: Event) => {
          event.preventDefault();
          dialog.close();
          void this.send(deed, fields?.read());
        },
      },
      h("h2", { id: "ask-title" }, words.label),
      h("p", {}, words.question),
      h("p", { class: "dim" }, `Run: ${this.run?.name ?? this.id}`),
      fields?.element,
      h(
        "div",
        { class: "row end" },
        h("button", { type: "button", onclick: () => dialog.close() }, "Cancel"),
        h("button", { type: "submit", class: deed === "stop" ? "danger" : "main", "data-testid": "ask-confirm" }, words.yes),
      ),
    );
    dialog.append(form);
    dialog.addEventListener("close", () => dialog.remove());
    document.body.append(dialog);
    dialog.showModal();
  }

  private fields(): { element: Child; read: () => Record<string, number> } {
    const numbers = Object.entries(this.run?.config ?? {}).filter(([, value]) => typeof value === "number");
    const key = h("input", { name: "key", required: true, list: "ask-keys", autocomplete: "off", placeholder: "optimizer.lr", "data-testid": "ask-key" });
    const value = h("input", { name: "value", type: "number", step: "any", required: true, "data-testid": "ask-value" });
    key.addEventListener("change", () => {
      const known = this.run?.config[key.value];
      if (value.value === "" && typeof known === "number") value.placeholder = `now ${known}`;
    });
    const list = h("datalist", { id: "ask-keys" }, numbers.map(([name]) => h("option", { value: name })));
    const element = h("div", { class: "row" }, h("label", { class: "field" }, h("span", {}, "Key"), key), h("label", { class: "field" }, h("span", {}, "New value"), value), list);
    return { element, read: () => ({ [key.value.trim()]: Number(value.value) }) };
  }

  private async send(deed: Deed, settings: Record<string, number> = {}): Promise<void> {
    this.tell("asking", `${DEEDS[deed].asking} … it answers between two iterations.`);
    try {
      const answer = await post<Answer>(runPath(this.id, "ask"), { do: deed, settings });
      this.tell(answer.done ? "done" : "refused", answerText(deed, answer));
    } catch (error) {
      this.tell("refused", error instanceof Error ? error.message : String(error));
    }
  }

  private tell(state: string, text: string): void {
    this.answer.hidden = this.element.hidden = false;
    this.answer.dataset["state"] = state;
    fill(this.answer, text);
  }
}

const NAMES: Record<string, string> = { iter: "iteration" };

function changeText(change: unknown): string {
  const { key, old, new: now } = (change ?? {}) as Record<string, unknown>;
  return key === undefined ? valueText(change) : `${valueText(key)} from ${cellText(old)} to ${cellText(now)}`;
}

/** Return an answer of a run in words. */
export function answerText(deed: Deed, answer: Answer): string {
  const { id: _, do: __, answered, done, reason: given, ...more } = answer;
  const reason = given?.replace(/\.$/, "");
  const facts = Object.entries(more)
    .filter(([, value]) => value !== null && value !== "" && typeof value !== "boolean")
    .map(([name, value]) => (Array.isArray(value) ? value.map(changeText).join(", ") : `${NAMES[name] ?? name.replaceAll("_", " ")} ${valueText(value)}`))
    .filter((text) => text !== "")
    .join(", ");
  const what = { save: "saved", validate: "validated", stop: "stopping", set: "set" }[deed];
  if (done) return `Done: ${what}${reason ? `, ${reason}` : ""}${facts ? ` (${facts})` : ""}.`;
  if (answered === false) return `No answer: ${reason ?? "the run did not answer in time"}.`;
  return `Not done: ${reason ?? "the run gave no reason"}.`;
}
