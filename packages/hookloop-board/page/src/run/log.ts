/** The log of a run: its end, what comes, and what came before. */

import type { LogPart } from "../answers";
import { exported, get, isAbort, query, runPath } from "../api";
import { checkbox, fill, h } from "../dom";
import { bytes } from "../format";
import { visible } from "../text";
import { empty, failure, waiting } from "../view";
import type { Part } from "./view";

const PIECE = 65_536;
const LOOK = 2000;
const MOST_SHOWN = 4_000_000;

/** Show the log. */
export function showLog(part: Part): void {
  let follow = true;
  let busy = false;
  let held: { begin: number; end: number } | null = null;
  const text = h("pre", { class: "log", tabindex: "0", role: "log", "aria-label": "Log", onscroll: watchScroll });
  const told = h("span", { class: "dim", role: "status" });
  const earlier = h("button", { type: "button", onclick: () => void loadEarlier() }, "Load earlier");
  const follows = checkbox("Follow", true, (on) => ((follow = on), on && toEnd()));
  const place = h("div", {}, waiting("the log"));
  fill(part.place, h("div", { class: "toolbar" }, earlier, exported ? null : follows, told), place);
  void begin();
  if (!exported) {
    const timer = window.setInterval(() => part.details().status === "running" && void loadNew(), LOOK);
    part.signal.addEventListener("abort", () => window.clearInterval(timer));
    // The last lines of a run come with its end.
    part.onChange(() => void loadNew());
  }

  function ask(where: { before?: number; after?: number } = {}): Promise<LogPart> {
    return get<LogPart>(query(runPath(part.run, "log"), { ...where, limit: PIECE }), part.signal);
  }

  async function begin(): Promise<void> {
    try {
      const tail = await ask();
      if (tail.size === 0) return fill(place, empty("The log is empty."));
      held = { begin: tail.begin, end: tail.end };
      text.textContent = visible(tail.text);
      fill(place, text);
      tell(tail.size);
      toEnd();
    } catch (error) {
      if (!isAbort(error)) fill(place, failure(error, () => void begin()));
    }
  }

  async function loadEarlier(): Promise<void> {
    if (!held || held.begin === 0) return;
    const piece = await ask({ before: held.begin }).catch(report);
    if (!piece) return;
    const height = text.scrollHeight;
    text.prepend(visible(piece.text));
    text.scrollTop += text.scrollHeight - height;
    held.begin = piece.begin;
    tell(piece.size);
  }

  async function loadNew(): Promise<void> {
    if (!follow || busy || document.hidden) return;
    if (!held) return begin();
    busy = true;
    try {
      const piece = await ask({ after: held.end });
      const { begin: from, end, size } = piece;
      // It was written again, or so much came that its end says more than all of it.
      if (from !== held.end || size - from > PIECE || (text.textContent?.length ?? 0) > MOST_SHOWN) return await begin();
      if (end === from) return;
      text.append(visible(piece.text));
      held.end = end;
      tell(size);
      toEnd();
    } catch (error) {
      report(error);
    } finally {
      busy = false;
    }
  }

  function report(error: unknown): void {
    if (!isAbort(error)) told.textContent = error instanceof Error ? error.message : String(error);
  }

  function tell(size: number): void {
    earlier.disabled = exported !== null || !held || held.begin === 0;
    told.textContent = held && held.begin > 0 ? `the last ${bytes(held.end - held.begin)} of ${bytes(size)}` : bytes(size);
  }

  function toEnd(): void {
    if (follow) text.scrollTop = text.scrollHeight;
  }

  function watchScroll(): void {
    const atEnd = text.scrollTop + text.clientHeight >= text.scrollHeight - 40;
    if (atEnd === follow) return;
    follow = atEnd;
    follows.querySelector("input")!.checked = follow;
  }
}
