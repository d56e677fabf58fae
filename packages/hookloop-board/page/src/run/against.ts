/** The choice of another run to compare with. */

import { exported } from "../api";
import { choice } from "../dom";
import { oneLine } from "../text";
import type { Part } from "./view";

/** Make the choice; the empty text is for none. An exported page has no comparisons. */
export function againstChoice(part: Part, change: (run: string) => void): HTMLElement | null {
  if (exported) return null;
  const others = part.board.store.runs
    .filter((run) => run.id !== part.run)
    .map((run): [string, string] => [run.id, oneLine(run.name, 60)])
    .sort((one, other) => one[1].localeCompare(other[1], "en", { numeric: true }));
  return choice("Compare with", [["", "no other run"], ...others], "", change);
}
