/** What is said above the charts: a problem, how much is read, and which runs are missing. */

import { fill, h } from "../dom";
import { plural } from "../format";
import { failure } from "../view";

/** The lines above the charts; each stays until it is not true any more. */
export class Told {
  private readonly first = h("div", {});
  private readonly gone = h("p", { class: "dim", role: "status" });
  private readonly without = h("p", { class: "dim", role: "status" });
  readonly element = h("div", {}, this.first, this.gone, this.without);

  /** Tell what went wrong. */
  problem(error: unknown, again: () => void): void {
    fill(this.first, failure(error, again));
  }

  /** Tell how much of the files is read; nothing, once it is all of them. */
  reading(share: number): void {
    fill(this.first, share < 1 && h("p", { class: "dim", role: "status" }, `Reading the metrics: ${Math.floor(share * 100)} %`));
  }

  /** Tell that runs have been deleted. */
  deleted(count: number): void {
    this.gone.textContent = `${plural(count, "run")} ${count === 1 ? "is" : "are"} not here any more.`;
  }

  /** Tell which runs have no curves on this axis. */
  leftOut(runs: { name: string; text: string }[]): void {
    fill(this.without, runs.map(({ name, text }) => h("span", {}, `${name}: ${text} `)));
  }
}
