/** Elements from data. Every text becomes a text node: what runs wrote is never markup. */

import { visible } from "./text";

type Handler = (event: never) => void;
export type Child = Node | string | number | null | undefined | false | Child[];
export type Attributes = Record<string, string | number | boolean | null | undefined | Handler>;

/** Make an element; an attribute `onclick` with a function listens, true is an empty attribute, false or null none. */
export function h<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  attributes: Attributes = {},
  ...children: Child[]
): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  dress(element, attributes, children);
  return element;
}

/** Make an element of a drawing. */
export function svg<K extends keyof SVGElementTagNameMap>(
  tag: K,
  attributes: Attributes = {},
  ...children: Child[]
): SVGElementTagNameMap[K] {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  dress(element, attributes, children);
  return element;
}

function dress(element: Element, attributes: Attributes, children: Child[]): void {
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") element.addEventListener(name.slice(2), value as EventListener);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false && value !== null && value !== undefined) {
      element.setAttribute(name, typeof value === "string" ? visible(value) : String(value));
    }
  }
  append(element, children);
}

function append(parent: Element, children: Child[]): void {
  for (const child of children) {
    if (Array.isArray(child)) append(parent, child);
    else if (child instanceof Node) parent.append(child);
    else if (child !== null && child !== undefined && child !== false) parent.append(visible(String(child)));
  }
}

/** Replace what an element holds. */
export function fill(parent: Element, ...children: Child[]): void {
  parent.replaceChildren();
  append(parent, children);
}

/**
 * Change what an element holds into something else, and leave alone what is the same: focus, selection and scrolling stay.
 *
 * What listens in the new elements is lost where old ones stay, so that it is for what only shows.
 */
export function update(parent: Element, ...children: Child[]): void {
  const fresh = document.createElement("div");
  append(fresh, children);
  become(parent, fresh);
}

function become(old: Element, fresh: Element): void {
  const [before, now] = [[...old.childNodes], [...fresh.childNodes]];
  now.forEach((node, index) => {
    const was = before[index];
    if (was === undefined) old.append(node);
    else if (was.isEqualNode(node)) return;
    else if (was instanceof Text && node instanceof Text) was.data = node.data;
    else if (was instanceof Element && node instanceof Element && isAlike(was, node)) {
      for (const { name } of [...was.attributes]) if (!node.hasAttribute(name)) was.removeAttribute(name);
      // Widths of bars and the like are set by script, which a content security policy allows.
      for (const { name, value } of node.attributes) if (name !== "style") was.setAttribute(name, value);
      if (was instanceof HTMLElement && node instanceof HTMLElement) was.style.cssText = node.style.cssText;
      become(was, node);
    } else old.replaceChild(node, was);
  });
  before.slice(now.length).forEach((node) => node.remove());
}

function isAlike(one: Element, other: Element): boolean {
  return one.tagName === other.tagName && one.className === other.className && !/^(INPUT|BUTTON|SELECT)$/.test(one.tagName);
}

/** Draw something again, and put the focus back on what has the same `data-keep`. */
export function keepingFocus(place: Element, draw: () => void): void {
  const held = document.activeElement;
  const key = held !== null && place.contains(held) ? held.getAttribute("data-keep") : null;
  draw();
  if (key === null) return;
  const again = [...place.querySelectorAll<HTMLElement | SVGElement>("[data-keep]")].find((each) => each.getAttribute("data-keep") === key);
  again?.focus({ preventScroll: true });
}

/** Set styles through the object model, which the content security policy allows. */
export function style<E extends HTMLElement | SVGElement>(element: E, rules: Record<string, string>): E {
  for (const [name, value] of Object.entries(rules)) element.style.setProperty(name, value);
  return element;
}

/** Make a checkbox with its label. */
export function checkbox(label: Child, checked: boolean, change: (on: boolean) => void, more: Attributes = {}): HTMLLabelElement {
  const box = h("input", { type: "checkbox", onchange: () => change(box.checked), ...more });
  box.checked = checked;
  return h("label", { class: "check" }, box, h("span", {}, label));
}

/** Make a choice of options, `[value, label]` each. */
export function choice(
  label: string,
  options: [string, string][],
  value: string,
  change: (value: string) => void,
  more: Attributes = {},
): HTMLLabelElement {
  const list = h(
    "select",
    { onchange: () => change(list.value), ...more },
    options.map(([key, text]) => h("option", { value: key }, text)),
  );
  list.value = value;
  return h("label", { class: "field" }, h("span", {}, label), list);
}

/** Call a function when calls have stopped coming for a while. */
export function later(wait: number, call: () => void): { (): void; cancel(): void } {
  let timer = 0;
  const soon = (): void => {
    window.clearTimeout(timer);
    timer = window.setTimeout(call, wait);
  };
  soon.cancel = (): void => window.clearTimeout(timer);
  return soon;
}

/** Call a function soon, and at most once in a while, however many calls come. */
export function atMost(wait: number, call: () => void): { (): void; cancel(): void } {
  let timer = 0;
  const soon = (): void => {
    timer ||= window.setTimeout(() => {
      timer = 0;
      call();
    }, wait);
  };
  soon.cancel = (): void => window.clearTimeout(timer);
  return soon;
}

/** Hand the user a file. */
export function download(name: string, content: Blob): void {
  const address = URL.createObjectURL(content);
  h("a", { href: address, download: name }).click();
  window.setTimeout(() => URL.revokeObjectURL(address), 10_000);
}
