/** Axes for parameters: numbers on a line or on a logarithmic one, everything else by its name. */

import { number, numeric } from "../format";
import { valueText } from "../text";

export interface Scale {
  name: string;
  log: boolean;
  /** Return the place of a value, from 0 to 1, or null if it has none. */
  at: (value: unknown) => number | null;
  ticks: { at: number; text: string }[];
}

/** Make the scale of some values. Positive numbers over more than two powers of ten are on a logarithmic one. */
export function makeScale(name: string, values: unknown[]): Scale {
  const there = values.filter((value) => value !== null && value !== undefined && value !== "NaN");
  const numbers = there.map((value) => (typeof value === "boolean" ? NaN : numeric(value))).filter(Number.isFinite);
  return numbers.length === there.length && numbers.length > 0 ? numberScale(name, numbers) : nameScale(name, there);
}

function numberScale(name: string, numbers: number[]): Scale {
  const [low, high] = [Math.min(...numbers), Math.max(...numbers)];
  const log = low > 0 && high / low > 100;
  const shape = (value: number): number => (log ? Math.log10(value) : value);
  const width = shape(high) - shape(low);
  const at = (value: unknown): number | null => {
    const real = numeric(value);
    if (!Number.isFinite(real) || (log && real <= 0)) return null;
    return width === 0 ? 0.5 : (shape(real) - shape(low)) / width;
  };
  const count = width === 0 ? 1 : 5;
  const ticks = Array.from({ length: count }, (_, index) => {
    const place = count === 1 ? 0.5 : index / (count - 1);
    const value = shape(low) + (count === 1 ? 0 : place * width);
    return { at: place, text: number(log ? 10 ** value : value, 3) };
  });
  return { name, log, at, ticks };
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

/** Return whether all places are within the limits of their axes; what has no place is out where there is a limit. */
export function within(places: (number | null)[], limits: ([number, number] | null)[]): boolean {
  return limits.every((limit, index) => {
    const place = places[index];
    return limit === null || (place !== null && place !== undefined && place >= limit[0] && place <= limit[1]);
  });
}

/** Return a colour from dark to bright for a place, told apart also by the colour-blind and in grey. */
export function shade(place: number | null, dark: boolean): string {
  if (place === null) return dark ? "#7d8590" : "#8a929a";
  const [from, to] = dark ? [[96, 108, 200], [255, 214, 92]] : [[52, 34, 120], [226, 140, 20]];
  const mix = from!.map((part, index) => Math.round(part + (to![index]! - part) * Math.max(0, Math.min(1, place))));
  return `rgb(${mix.join(", ")})`;
}
