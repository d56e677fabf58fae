/** Dark or light: as the system has it, until the user chooses the other. */

import { fill, h } from "./dom";
import { Listeners } from "./live";
import { keepSetting, readSetting } from "./settings";

export type Theme = "light" | "dark";

const system = window.matchMedia("(prefers-color-scheme: dark)");

/** Told when the colours change, for what is drawn on a canvas. */
export const themeChanged = new Listeners<Theme>();

/** Return the theme that is shown. */
export function theme(): Theme {
  return (document.documentElement.dataset["theme"] as Theme | undefined) ?? "light";
}

/** Return a colour of the style sheet by the name of its variable. */
export function colour(name: string): string {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

/** Show the chosen theme, and follow the system where none is chosen. */
export function beginTheme(): HTMLButtonElement {
  const button = h("button", { type: "button", class: "quiet", "data-testid": "theme", onclick: change });
  system.addEventListener("change", show);
  show();
  return button;

  function change(): void {
    const next: Theme = theme() === "dark" ? "light" : "dark";
    keepSetting("theme", next === systemTheme() ? null : next);
    show();
  }

  function show(): void {
    const now = readSetting<Theme | null>("theme", null) ?? systemTheme();
    document.documentElement.dataset["theme"] = now;
    fill(button, now === "dark" ? "Light" : "Dark", h("span", {}, " theme"));
    themeChanged.tell(now);
  }
}

function systemTheme(): Theme {
  return system.matches ? "dark" : "light";
}
