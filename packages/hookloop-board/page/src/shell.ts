/** The frame around the views: heading, navigation, banner. */

import { exported } from "./api";
import { fill, h } from "./dom";
import { moment, plural } from "./format";
import type { Connection } from "./live";
import type { Route } from "./routes";
import { beginTheme } from "./theme";
import { type Board, failure, type View } from "./view";

const LINKS = [
  ["runs", "Runs"],
  ["curves", "Curves"],
  ["sweeps", "Sweeps"],
] as const;

/** The frame; `show` puts a view into it. */
export class Shell {
  private readonly main = h("main", { id: "main", tabindex: "-1" });
  private readonly banner = h("div", { class: "banner", role: "alert", hidden: true });
  private readonly dot = h("span", { class: "connection", role: "status" });
  private readonly links = LINKS.map(([view, label]) => h("a", { href: `#/${view}` }, label));
  private view: View | null = null;
  private timer = 0;

  constructor(
    place: HTMLElement,
    private readonly board: Board,
  ) {
    const skip = h("a", { class: "skip", href: "#main", onclick: (event: Event) => this.skip(event) }, "Skip to content");
    const brand = h("a", { class: "brand", href: "#/runs" }, "hookloop", h("span", {}, " board"));
    const nav = h("nav", { "aria-label": "Views" }, this.links);
    fill(place, skip, h("header", { class: "top" }, brand, nav, this.dot, beginTheme()), this.banner, this.main);
    board.live.connection.add((connection) => this.showConnection(connection));
  }

  /** Replace the view; the old one ends first. */
  show(route: Route, open: () => View): void {
    const moved = this.view !== null;
    this.view?.close?.();
    try {
      this.view = open();
    } catch (error) {
      this.view = { element: failure(error), title: "Problem" };
    }
    fill(this.main, this.view.element);
    document.title = `${this.view.title} · hookloop board`;
    this.links.forEach((link, index) => {
      const here = LINKS[index]![0] === route.view || (route.view === "run" && LINKS[index]![0] === "runs");
      if (here) link.setAttribute("aria-current", "page");
      else link.removeAttribute("aria-current");
    });
    window.scrollTo(0, 0);
    // What was in focus may be gone with the old view: the keyboard goes on with the new one, not with the top of the page.
    if (moved && (document.activeElement === null || document.activeElement === document.body)) this.main.focus({ preventScroll: true });
  }

  private skip(event: Event): void {
    event.preventDefault();
    this.main.focus();
  }

  private showConnection(connection: Connection): void {
    window.clearInterval(this.timer);
    this.banner.hidden = connection.state !== "gone";
    this.dot.dataset["state"] = connection.state;
    if (connection.state === "gone") {
      this.dot.textContent = "not connected";
      this.showGone(connection.again);
      return;
    }
    this.dot.textContent = { live: "live", connecting: "connecting", exported: "exported" }[connection.state];
    if (exported) this.dot.textContent = `exported ${moment(exported.exported)}`;
  }

  private showGone(again: number): void {
    const rest = h("span", { "aria-hidden": "true" });
    const tell = (): void => {
      const seconds = Math.max(0, Math.round((again - Date.now()) / 1000));
      rest.textContent = seconds ? `Trying again in ${plural(seconds, "second")}. ` : "Trying again … ";
    };
    tell();
    this.timer = window.setInterval(tell, 500);
    fill(
      this.banner,
      h("span", {}, "The server does not answer; what you see may be old. Is “hookloop board” still running? "),
      rest,
      h("button", { type: "button", onclick: () => this.board.live.tryNow() }, "Try now"),
    );
  }
}
