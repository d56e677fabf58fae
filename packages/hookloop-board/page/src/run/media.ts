/** Pictures, texts, tables, histograms and confusion matrices, by step. */

import type { Media, MediaKind, Table } from "../answers";
import { address, exported, get, isAbort, runPath } from "../api";
import { checkbox, type Child, fill, h, later } from "../dom";
import { number, plural } from "../format";
import { clip, oneLine } from "../text";
import { empty, failure, load } from "../view";
import { drawConfusion, drawHistogram } from "./drawings";
import { cellText, table } from "./tables";
import type { Part } from "./view";

interface Card {
  element: HTMLElement;
  /** Take newer steps; who looks at an older one stays there. */
  show: (media: Media) => void;
  /** Go to the last step that is not after an iteration. */
  goTo: (iter: number) => void;
}

/** Show the media, each with a slider over its steps. */
export function showMedia(part: Part): void {
  let together = false;
  let known = "";
  const cards = new Map<string, Card>();
  const place = h("div", {});
  fill(part.place, place);
  const ask = (signal: AbortSignal): Promise<{ media: Media[] }> => get(runPath(part.run, "media"), signal);
  void load(place, "the media", ask, ({ media }) => show(media), part.signal);
  part.onChange(() => void refresh());

  async function refresh(): Promise<void> {
    const { media } = await ask(part.signal).catch(() => ({ media: null }));
    if (!media || JSON.stringify(media) === known) return;
    const full = media.filter((each) => each.steps.length > 0);
    known = JSON.stringify(media);
    if (full.length === cards.size && full.every((each) => cards.has(keyOf(each)))) full.forEach((each) => cards.get(keyOf(each))!.show(each));
    else fill(place, show(media));
  }

  function show(media: Media[]): Child {
    known = JSON.stringify(media);
    const full = media.filter((each) => each.steps.length > 0);
    if (full.length === 0) return empty("The run wrote no pictures, texts or tables.", "Hooks such as ", h("code", {}, "SaveConfusionMatrix"), " and ", h("code", {}, "VisualizePredictions"), " write them.");
    const old = new Map(cards);
    cards.clear();
    for (const each of full) {
      const kept = old.get(keyOf(each));
      kept?.show(each);
      cards.set(keyOf(each), kept ?? card(part, each, (iter) => together && move(iter)));
    }
    return [
      h("div", { class: "toolbar" }, checkbox("Move all sliders together", together, (on) => (together = on)), h("span", { class: "dim" }, plural(full.length, "medium", "media"))),
      h("div", { class: "media-grid" }, [...cards.values()].map((each) => each.element)),
    ];
  }

  function move(iter: number): void {
    cards.forEach((each) => each.goTo(iter));
  }
}

function keyOf(media: Media): string {
  return `${media.kind}/${media.name}`;
}

function card(part: Part, media: Media, moved: (iter: number) => void): Card {
  let { steps } = media;
  let last = steps.length - 1;
  const stage = h("div", { class: "stage" });
  const at = h("output", { class: "dim" });
  const slider = h("input", {
    type: "range",
    min: 0,
    max: last,
    step: 1,
    "aria-label": `Step of ${media.name}`,
    oninput: () => {
      go(Number(slider.value));
      moved(steps[Number(slider.value)]!.iter);
    },
  });
  slider.value = String(last);
  let stop = new AbortController();
  const soon = later(40, () => void open());
  part.signal.addEventListener("abort", () => (soon.cancel(), stop.abort()));
  const element = h(
    "figure",
    { class: "medium box", "data-kind": media.kind, "data-name": media.name },
    h("figcaption", {}, h("strong", {}, oneLine(media.name, 100)), h("span", { class: "dim" }, ` ${media.kind}`), at),
    slider,
    stage,
  );
  slider.hidden = last === 0;
  go(last);
  return {
    element,
    show: (newer) => {
      const step = steps[Number(slider.value)]!;
      const atEnd = Number(slider.value) === last;
      ({ steps } = newer);
      last = steps.length - 1;
      slider.max = String(last);
      slider.hidden = last === 0;
      const same = steps.findIndex((each) => each.iter === step.iter);
      const place = atEnd || same < 0 ? last : same;
      slider.value = String(place);
      if (steps[place]!.id !== step.id) go(place);
    },
    goTo: (iter) => {
      const after = steps.findIndex((step) => step.iter > iter);
      const place = after < 0 ? last : Math.max(0, after - 1);
      if (place === Number(slider.value)) return;
      slider.value = String(place);
      go(place);
    },
  };

  function go(place: number): void {
    const step = steps[place]!;
    const epoch = step.epoch === null || step.epoch === undefined ? "" : `, epoch ${number(step.epoch)}`;
    at.textContent = `iteration ${number(step.iter)}${epoch}`;
    slider.setAttribute("aria-valuetext", at.textContent);
    soon();
  }

  async function open(): Promise<void> {
    stop.abort();
    stop = new AbortController();
    const { signal } = stop;
    const step = steps[Number(slider.value)]!;
    try {
      const drawn = await draw(media.kind, runPath(part.run, "media", step.id), `${media.name} at iteration ${step.iter}`, signal);
      if (!signal.aborted) fill(stage, drawn);
    } catch (error) {
      if (!isAbort(error)) fill(stage, failure(error));
    }
  }
}

async function draw(kind: MediaKind, path: string, label: string, signal: AbortSignal): Promise<Child> {
  switch (kind) {
    case "image":
      return picture(exported ? await get<string>(path) : address(path), label);
    case "text":
      return h("pre", {}, clip((await get<{ text: string }>(path, signal)).text, 200_000));
    case "table": {
      const { columns, rows, total_rows: total } = await get<Table>(path, signal);
      const numbers = columns.map((_, index) => rows.some((row) => typeof row[index] === "number"));
      const left = (total ?? rows.length) - rows.length;
      return [table(label, columns, rows.map((row) => row.map(cellText)), numbers), left > 0 && h("p", { class: "dim" }, `${plural(left, "more row")} in the file.`)];
    }
    case "histogram":
      return drawHistogram(await get(path, signal), label);
    case "confusion":
      return drawConfusion(await get(path, signal), label);
  }
}

function picture(source: string, label: string): Promise<HTMLElement> {
  return new Promise((resolve) => {
    const image = h("img", { alt: label });
    image.onload = () => resolve(image);
    image.onerror = () => resolve(failure("The picture cannot be shown: the file is gone or damaged."));
    image.src = source;
  });
}
