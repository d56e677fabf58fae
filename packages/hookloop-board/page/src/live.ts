/** Changes as the server sends them, with a connection that heals itself. */

import { address, exported, whenGone } from "./api";

export interface RunsEvent {
  changed: string[];
  gone: string[];
}

export interface CurvesEvent {
  run: string;
  metrics: string[];
  iters: number | null;
}

export type Connection = { state: "connecting" | "live" | "exported" } | { state: "gone"; again: number };

type Listener<T> = (event: T) => void;

/** A list of listeners; `add` returns how to leave it. */
export class Listeners<T> {
  private readonly all = new Set<Listener<T>>();

  add(listener: Listener<T>): () => void {
    this.all.add(listener);
    return () => void this.all.delete(listener);
  }

  tell(event: T): void {
    for (const listener of [...this.all]) listener(event);
  }
}

const LONGEST_WAIT = 30_000;

/** Return how long to wait before a try, in milliseconds: twice as long each time, up to half a minute. */
export function backOff(tries: number): number {
  return Math.min(LONGEST_WAIT, 1000 * 2 ** Math.max(0, tries - 1));
}

/**
 * The stream of changes. After a break, `again` tells that anything may have changed.
 *
 * Only a page in sight has one: a browser opens six connections to a server for all of its tabs together, so that the
 * streams of six hidden tabs would keep the seventh from loading anything.
 */
export class Live {
  readonly runs = new Listeners<RunsEvent>();
  readonly curves = new Listeners<CurvesEvent>();
  readonly again = new Listeners<void>();
  /** From now on every change is told; what was read before may be older than the first of them. */
  readonly watching = new Listeners<void>();
  readonly connection = new Listeners<Connection>();
  state: Connection = { state: "connecting" };
  private source: EventSource | null = null;
  private tries = 0;
  private timer = 0;
  private missed = false;

  /** Begin to listen; an exported page has nothing to listen to. */
  begin(): void {
    if (exported) return this.change({ state: "exported" });
    whenGone(() => this.lost());
    document.addEventListener("visibilitychange", () => this.open());
    this.open();
  }

  /** Try at once, without waiting. */
  tryNow(): void {
    if (this.state.state === "gone") this.open();
  }

  private open(): void {
    this.end();
    this.missed ||= document.hidden;
    if (document.hidden) return;
    const source = new EventSource(address("/api/events"));
    this.source = source;
    source.onopen = () => {
      const missed = this.missed;
      this.tries = 0;
      this.missed = false;
      this.change({ state: "live" });
      if (missed) this.again.tell();
    };
    source.onerror = () => this.lost();
    source.addEventListener("watching", () => this.watching.tell());
    this.listen(source, "runs", this.runs);
    this.listen(source, "curves", this.curves);
  }

  private listen<T>(source: EventSource, name: string, listeners: Listeners<T>): void {
    source.addEventListener(name, (event) => listeners.tell(JSON.parse((event as MessageEvent<string>).data) as T));
  }

  private lost(): void {
    if (this.state.state === "gone" && this.source === null) return;
    this.end();
    this.missed = true;
    this.tries += 1;
    const wait = backOff(this.tries);
    this.timer = window.setTimeout(() => this.open(), wait);
    this.change({ state: "gone", again: Date.now() + wait });
  }

  private end(): void {
    window.clearTimeout(this.timer);
    this.source?.close();
    this.source = null;
  }

  private change(state: Connection): void {
    this.state = state;
    this.connection.tell(state);
  }
}
