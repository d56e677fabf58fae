/** What the user chose, kept in this browser. */

const PREFIX = "hookloop-board.";

/** Read a choice; anything unreadable is as if nothing had been chosen. */
export function readSetting<T>(name: string, otherwise: T): T {
  try {
    const text = window.localStorage.getItem(PREFIX + name);
    return text === null ? otherwise : (JSON.parse(text) as T);
  } catch {
    return otherwise;
  }
}

/** Keep a choice; where the browser keeps nothing, it lasts as long as the page. */
export function keepSetting(name: string, value: unknown): void {
  try {
    if (value === null) window.localStorage.removeItem(PREFIX + name);
    else window.localStorage.setItem(PREFIX + name, JSON.stringify(value));
  } catch {
    // A file opened from disk may have no storage; the choice is then for this page only.
  }
}
