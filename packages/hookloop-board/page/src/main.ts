/** The board's page: opens the view that the address names, and keeps it up to date. */

import "uplot/dist/uPlot.min.css";
import "./styles/base.css";
import "./styles/frame.css";
import "./styles/tables.css";
import "./styles/curves.css";
import "./styles/run.css";
import { openCurves } from "./curves/view";
import { Live } from "./live";
import { readRoute, type Route } from "./routes";
import { openRun } from "./run/view";
import { openRuns } from "./runs/view";
import { Shell } from "./shell";
import { Store } from "./store";
import { openSweeps } from "./sweeps/view";
import { type Board, empty, type View } from "./view";

const live = new Live();
const board: Board = { live, store: new Store(live) };
const shell = new Shell(document.getElementById("board")!, board);

function open(route: Route): View {
  switch (route.view) {
    case "runs":
      return openRuns(board, route.query);
    case "curves":
      return openCurves(board, route.query);
    case "sweeps":
      return openSweeps(board, route.query);
    case "run":
      return openRun(board, route.run, route.part, route.query);
    case "missing":
      return { title: "Not found", element: empty(`There is no view “${route.text}”.`, "Choose one above.") };
  }
}

function go(): void {
  const route = readRoute(window.location.hash);
  shell.show(route, () => open(route));
}

window.addEventListener("hashchange", go);
go();
live.begin();
void board.store.load();
