/** Hash routes: which view, of which run, with which settings. */

export const RUN_VIEWS = [
  ["", "Overview"],
  ["hooks", "Hooks"],
  ["checkpoints", "Checkpoints"],
  ["config", "Config"],
  ["environment", "Environment"],
  ["log", "Log"],
  ["media", "Media"],
  ["predictions", "Predictions"],
] as const;

export type RunView = (typeof RUN_VIEWS)[number][0];

export type Route =
  | { view: "runs"; query: URLSearchParams }
  | { view: "curves"; query: URLSearchParams }
  | { view: "sweeps"; query: URLSearchParams }
  | { view: "run"; run: string; part: RunView; query: URLSearchParams }
  | { view: "missing"; text: string };

/** Read a route from the hash of an address. */
export function readRoute(hash: string): Route {
  const text = hash.replace(/^#\/?/, "");
  const [place = "", search = ""] = text.split("?", 2);
  const query = new URLSearchParams(search);
  const [view = "", run = "", part = "", ...rest] = place.split("/").map(decode);
  if (place === "") return { view: "runs", query };
  if ((view === "runs" || view === "curves" || view === "sweeps") && !run) return { view, query };
  const known = RUN_VIEWS.find(([name]) => name === part);
  if (view === "run" && run && known && rest.length === 0) return { view, run, part: known[0], query };
  return { view: "missing", text };
}

function decode(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

/** Return the address of a run's view. */
export function runHash(run: string, part: RunView = ""): string {
  return `#/run/${encodeURIComponent(run)}${part ? `/${part}` : ""}`;
}

/** Return the address of the curves of some runs; without metrics, all of them. */
export function curvesHash(runs: Iterable<string>, metrics: Iterable<string> = []): string {
  const query = new URLSearchParams();
  for (const run of runs) query.append("run", run);
  for (const metric of metrics) query.append("metric", metric);
  return `#/curves${query.size ? `?${query}` : ""}`;
}

/** Change the settings in the address without a step in the history. */
export function keepInAddress(view: string, query: URLSearchParams): void {
  const hash = `#/${view}${query.size ? `?${query}` : ""}`;
  if (window.location.hash !== hash) window.history.replaceState(null, "", hash);
}
