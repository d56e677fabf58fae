/** Commands with a button that copies them. */

import { h } from "../dom";

/** Show a command to copy: through the clipboard where the page may use it, else as a selected text. */
export function copyable(label: string, command: string, of = ""): HTMLElement {
  const name = `Copy the command: ${label}${of && ` ${of}`}`;
  const field = h("input", { class: "command", readonly: true, "aria-label": `Command: ${label}${of && ` ${of}`}`, onfocus: () => field.select() });
  field.value = command;
  const button = h(
    "button",
    { type: "button", class: "small", "data-testid": "copy-command", "data-command": label, "data-keep": `copy/${label}/${of}`, "aria-label": name, onclick: () => void copy() },
    "Copy",
  );
  return h("div", { class: "copy" }, h("span", { class: "copy-label" }, label), field, button);

  async function copy(): Promise<void> {
    try {
      await navigator.clipboard.writeText(command);
      say("Copied");
    } catch {
      // Without a secure address there is no clipboard: the text is selected for the keyboard.
      field.focus();
      field.select();
      say("Press Ctrl+C");
    }
  }

  function say(text: string): void {
    show(text, text);
    window.setTimeout(() => show("Copy", name), 2500);
  }

  function show(text: string, spoken: string): void {
    button.textContent = text;
    button.setAttribute("aria-label", spoken);
  }
}
