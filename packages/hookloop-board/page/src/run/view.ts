/** The view of one run: heading, parts, and what belongs to the chosen part. */

import type { RunDetails } from "../answers";
import { get, isAbort, runPath } from "../api";
import { atMost, fill, h, update } from "../dom";
import { curvesHash, RUN_VIEWS, runHash, type RunView } from "../routes";
import { progressBar, statusPill } from "../runs/parts";
import { oneLine } from "../text";
import { type Board, failure, type View, waiting } from "../view";
import { AskPanel } from "./asking";
import { showCheckpoints } from "./checkpoints";
import { showConfig } from "./config";
import { showEnvironment } from "./environment";
import { showHooks } from "./hooks";
import { showLog } from "./log";
import { showMedia } from "./media";
import { showOverview } from "./overview";
import { showPredictions } from "./predictions";

/** What a part of the view gets: where to draw, what it is about, and when it ends. */
export interface Part {
  board: Board;
  run: string;
  place: HTMLElement;
  signal: AbortSignal;
  /** Returns the newest details of the run. */
  details: () => RunDetails;
  /** Calls a function with newer details, as long as the part is open. */
  onChange: (call: () => void) => void;
}

const PARTS: Record<RunView, (part: Part, query: URLSearchParams) => void> = {
  "": showOverview,
  config: showConfig,
  environment: showEnvironment,
  log: showLog,
  media: showMedia,
  predictions: showPredictions,
  hooks: showHooks,
  checkpoints: showCheckpoints,
};

/** Open one run. */
export function openRun(board: Board, run: string, part: RunView, query: URLSearchParams): View {
  const stop = new AbortController();
  const place = h("div", { class: "part" }, waiting("the run"));
  const head = h("div", { class: "run-head" });
  const told = h("p", { class: "unseen", role: "status" });
  const ask = new AskPanel(board, run);
  const tabs = h(
    "nav",
    { class: "tabs", "aria-label": "Parts of the run" },
    RUN_VIEWS.map(([name, label]) => h("a", { href: runHash(run, name), "aria-current": name === part ? "page" : null }, label)),
    h("a", { href: curvesHash([run]) }, "Curves"),
  );
  const element = h("section", { class: "view", "aria-label": "Run" }, head, told, tabs, ask.element, place);
  // On a phone the tabs are wider than the page: the current one is moved into sight.
  requestAnimationFrame(() => {
    const current = tabs.querySelector<HTMLElement>("[aria-current]");
    if (current) tabs.scrollLeft = current.offsetLeft - (tabs.clientWidth - current.offsetWidth) / 2;
  });
  const listeners: (() => void)[] = [];
  let details: RunDetails | null = null;
  const refresh = atMost(600, () => void load());
  const leave = [
    board.live.runs.add(({ changed, gone }) => (changed.includes(run) || gone.includes(run)) && refresh()),
    board.live.curves.add((event) => event.run === run && refresh()),
    board.live.again.add(refresh),
    board.live.watching.add(refresh),
  ];
  void load();
  return {
    element,
    title: board.store.nameOf(run),
    close: () => {
      stop.abort();
      ask.close();
      refresh.cancel();
      leave.forEach((call) => call());
    },
  };

  async function load(): Promise<void> {
    try {
      const newest = await get<RunDetails>(runPath(run), stop.signal);
      const first = details === null;
      if (details !== null && details.status !== newest.status) told.textContent = `The run is ${newest.status}.`;
      details = newest;
      document.title = `${oneLine(newest.name, 60)} · hookloop board`;
      showHead(newest);
      ask.show(newest);
      if (first) open();
      else listeners.forEach((call) => call());
    } catch (error) {
      if (isAbort(error) || stop.signal.aborted) return;
      if (details === null) fill(place, failure(error, () => void load()));
      else fill(head, failure(error, () => void load()));
    }
  }

  function open(): void {
    fill(place);
    PARTS[part](
      { board, run, place, signal: stop.signal, details: () => details!, onChange: (call) => listeners.push(call) },
      query,
    );
  }

  function showHead(now: RunDetails): void {
    update(
      head,
      h("h1", {}, oneLine(now.name, 200)),
      statusPill(now.status, now.reason),
      progressBar(now),
      now.reason && h("span", { class: "dim" }, oneLine(now.reason)),
    );
  }
}
