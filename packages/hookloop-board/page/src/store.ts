/** The runs as they are now: loaded once, then kept up by the server's events. */

import { get, runPath } from "./api";
import type { Judged, Run, RunDetails, Runs } from "./answers";
import { Listeners, type Live } from "./live";

const FEW = 8;

/** The list of runs, shared by all views. */
export class Store {
  answer: Runs | null = null;
  error: unknown = null;
  readonly changed = new Listeners<void>();
  private readonly waiting = new Set<string>();
  private timer = 0;
  private loading = false;

  constructor(live: Live) {
    live.again.add(() => void this.load());
    live.watching.add(() => this.note(["*"]));
    live.runs.add(({ changed, gone }) => {
      const strange = [...changed, ...gone].some((id) => !this.find(id)) || gone.length > 0;
      this.note(strange ? ["*"] : changed);
    });
    live.curves.add(({ run }) => this.note([this.find(run) ? run : "*"]));
  }

  get runs(): Run[] {
    return this.answer?.runs ?? [];
  }

  get canChange(): boolean {
    return this.answer?.can_change ?? false;
  }

  /** Return a run by its ID. */
  find(id: string): Run | undefined {
    return this.runs.find((run) => run.id === id);
  }

  /** Return a run's name, or its ID while the list is not there. */
  nameOf(id: string): string {
    return this.find(id)?.name ?? id;
  }

  /** Load the whole list. */
  async load(): Promise<void> {
    if (this.loading) return this.note(["*"]);
    this.loading = true;
    try {
      this.answer = await get<Runs>("/api/runs");
      this.error = null;
    } catch (error) {
      this.error = error;
    } finally {
      this.loading = false;
    }
    this.changed.tell();
  }

  /** Put a newer state of one run into the list. */
  put(run: Run): void {
    const { answer } = this;
    const index = answer?.runs.findIndex((known) => known.id === run.id) ?? -1;
    if (!answer || index < 0) return;
    answer.runs[index] = { ...answer.runs[index]!, ...run };
    const fresh = Object.keys(run.metrics).filter((name) => !answer.metrics.includes(name));
    answer.metrics.push(...fresh);
    const { machine, better } = run as Partial<Judged>; // The answer about a single run has its own.
    answer.machine.push(...(machine ?? []).filter((name) => !answer.machine.includes(name)));
    Object.assign(answer.better, better);
  }

  /** Return what the metrics are judged by. */
  get judged(): Judged {
    return this.answer ?? { machine: [], better: {} };
  }

  // Changes come in bursts: they are collected for a moment and then read together.
  private note(ids: string[]): void {
    ids.forEach((id) => this.waiting.add(id));
    if (!this.timer) this.timer = window.setTimeout(() => void this.catchUp(), 700);
  }

  private async catchUp(): Promise<void> {
    this.timer = 0;
    const ids = [...this.waiting];
    this.waiting.clear();
    if (ids.length > FEW || ids.includes("*")) return this.load();
    const found = await Promise.allSettled(ids.map((id) => get<RunDetails>(runPath(id))));
    if (found.some((one) => one.status === "rejected")) return this.load();
    for (const one of found) if (one.status === "fulfilled") this.put(one.value);
    this.changed.tell();
  }
}
