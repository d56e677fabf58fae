/** What all views share: how they begin and end, and what they show while there is nothing to show. */

import { isAbort, Refused } from "./api";
import { type Child, fill, h } from "./dom";
import type { Live } from "./live";
import type { Store } from "./store";

export interface Board {
  live: Live;
  store: Store;
}

/** A view on the page; `close` ends what it started. */
export interface View {
  element: HTMLElement;
  title: string;
  close?: () => void;
}

/** Show that something is on its way. */
export function waiting(what: string): HTMLElement {
  return h("p", { class: "state", role: "status" }, `Loading ${what} …`);
}

/** Show that there is nothing, and what would bring something. */
export function empty(title: string, ...hints: Child[]): HTMLElement {
  return h("div", { class: "state empty" }, h("p", { class: "strong" }, title), hints.length ? h("p", {}, hints) : null);
}

/** Show an error with what to do. */
export function failure(error: unknown, again?: () => void): HTMLElement {
  const text = error instanceof Error ? error.message : String(error);
  const hint =
    error instanceof Refused && (error.status === 401 || error.status === 403)
      ? "Open the address that “hookloop board” printed, with its token."
      : null;
  return h(
    "div",
    { class: "state problem", role: "alert" },
    h("p", { class: "strong" }, text),
    hint && h("p", {}, hint),
    again && h("p", {}, h("button", { type: "button", onclick: again }, "Try again")),
  );
}

/** Load something into an element: first waiting, then what `show` makes of it, or the error. */
export async function load<T>(
  place: HTMLElement,
  what: string,
  ask: (signal: AbortSignal) => Promise<T>,
  show: (answer: T) => Child,
  signal: AbortSignal,
): Promise<void> {
  fill(place, waiting(what));
  try {
    const answer = await ask(signal);
    if (!signal.aborted) fill(place, show(answer));
  } catch (error) {
    if (isAbort(error) || signal.aborted) return;
    fill(place, failure(error, () => void load(place, what, ask, show, signal)));
  }
}
