/** Axes for parameters: numbers on a line or on a logarithmic one, everything else by its name. */

import { logTicks } from "../curves/log";
import { tickTexts } from "../curves/ticks";
import { number, numeric } from "../format";
import { valueText } from "../text";

/** Up to so many different values each have a tick. */
const FEW = 6;

export interface Scale {
  name: string;
  log: boolean;
  /** Return the place of a value, from 0 to 1, or null if it has none. */
  at: (value: unknown) => number | null;
  ticks: { at: number; text: string }[];
}

/**
 * Make the scale of some values.
 *
 * Positive numbers are on a logarithmic one where the sweep drew them so, or where they are over more than two powers of ten.
 */
export function makeScale(name: string, values: unknown[], wasLog = false): Scale {
  const there = values.filter((value) => value !== null && value !== undefined && value !== "NaN");
  const numbers = there.map((value) => (typeof value === "boolean" ? NaN : numeric(value))).filter(Number.isFinite);
  return numbers.length === there.length && numbers.length > 0 ? numberScale(name, numbers, wasLog) : nameScale(name, there);
}

function numberScale(name: string, numbers: number[], wasLog: boolean): Scale {
  const [low, high] = [Math.min(...numbers), Math.max(...numbers)];
  const log = low > 0 && (wasLog || high / low > 100);
  const shape = (value: number): number => (log ? Math.log10(value) : value);
  const width = shape(high) - shape(low);
  const at = (value: unknown): number | null => {
    const real = numeric(value);
    if (!Number.isFinite(real) || (log && real <= 0)) return null;
    return width === 0 ? 0.5 : (shape(real) - shape(low)) / width;
  };
  const places = ticksOf([...new Set(numbers)], low, high, log);
  const texts = tickTexts(places);
  return { name, log, at, ticks: places.map((value, index) => ({ at: at(value) ?? 0, text: texts[index]! })) };
}

// A few values are their own ticks; of many, round numbers are.
function ticksOf(values: number[], low: number, high: number, log: boolean): number[] {
  if (values.length <= FEW && values.every((value) => number(value, 3) === number(value, 12))) return values.sort((one, other) => one - other);
  const round = log ? logTicks(low, high) : plainTicks(low, high);
  return round.length >= 2 ? round : [low, high];
}

function plainTicks(low: number, high: number): number[] {
  const power = 10 ** Math.floor(Math.log10((high - low) / 5));
  const step = [1, 2, 5, 10].map((digit) => digit * power).find((each) => (high - low) / each <= 6)!;
  const first = Math.ceil(low / step - 1e-9);
  const count = Math.floor(high / step + 1e-9) - first + 1;
  return Array.from({ length: count }, (_, index) => Number(((first + index) * step).toPrecision(12)));
}

function nameScale(name: string, values: unknown[]): Scale {
  const names = [...new Set(values.map((value) => valueText(value, 60)))].sort((one, other) => one.localeCompare(other, "en", { numeric: true }));
  const place = (index: number): number => (names.length < 2 ? 0.5 : index / (names.length - 1));
  return {
    name,
    log: false,
    at: (value) => {
      const index = value === null || value === undefined ? -1 : names.indexOf(valueText(value, 60));
      return index < 0 ? null : place(index);
    },
    ticks: names.map((text, index) => ({ at: place(index), text })),
  };
}

/** Return the ticks whose texts do not touch on a line of this length; the first is always there. */
export function spaced(ticks: Scale["ticks"], length: number, letter: number): Scale["ticks"] {
  const half = (tick: Scale["ticks"][number]): number => (tick.text.length * letter) / 2;
  const kept: Scale["ticks"] = [];
  for (const tick of [...ticks].sort((one, other) => one.at - other.at)) {
    const before = kept.at(-1);
    if (!before || (tick.at - before.at) * length > half(tick) + half(before) + letter) kept.push(tick);
  }
  return kept;
}

/** Return whether all places are within the limits of their axes; what has no place is out where there is a limit. */
export function within(places: (number | null)[], limits: ([number, number] | null)[]): boolean {
  return limits.every((limit, index) => {
    const place = places[index];
    return limit === null || (place !== null && place !== undefined && place >= limit[0] && place <= limit[1]);
  });
}

/** Return how good a place on the axis of the metric is: 1 for the best. */
export function goodness(place: number | null, isMore: boolean): number | null {
  return place === null || isMore ? place : 1 - place;
}

/** Return the colour of how good a trial is, the better the brighter, told apart also by the colour-blind and in grey. */
export function shade(place: number | null, dark: boolean): string {
  if (place === null) return dark ? "#7d8590" : "#8a929a";
  const [from, to] = dark ? [[96, 108, 200], [255, 214, 92]] : [[52, 34, 120], [226, 140, 20]];
  const mix = from!.map((part, index) => Math.round(part + (to![index]! - part) * Math.max(0, Math.min(1, place))));
  return `rgb(${mix.join(", ")})`;
}
