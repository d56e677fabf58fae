/** Numbers, durations, sizes and dates as people read them. */

/** A number of the server: one that is not finite travels as a text. */
export type Numeric = number | string | null | undefined;

/** Return the number behind a value, NaN if there is none. */
export function numeric(value: unknown): number {
  if (typeof value === "number") return value;
  if (typeof value === "string" && value.trim() !== "") return Number(value);
  return NaN;
}

/** Return a number in at most `digits` significant digits: 0.0123, 1,204, 3.2e-5. */
export function number(value: Numeric, digits = 4): string {
  if (value === null || value === undefined || value === "") return "–";
  const real = numeric(value);
  if (!Number.isFinite(real)) return typeof value === "string" ? value : String(value);
  if (Number.isInteger(real) && Math.abs(real) < 1e15) return whole(real);
  const size = Math.abs(real);
  if (size < 1e-4 || size >= 1e6) return short(real.toExponential(Math.max(0, digits - 1)));
  if (size >= 1000) {
    const [before = "", after] = String(Number(real.toFixed(1))).split(".");
    return after ? `${whole(Number(before))}.${after}` : whole(Number(before));
  }
  return String(Number(real.toPrecision(digits)));
}

/** Return a whole number with its thousands apart; the browser's own way takes ten times as long. */
export function whole(value: number): string {
  return String(value).replace(/\B(?=(\d{3})+$)/g, ",");
}

function short(exponential: string): string {
  return exponential.replace(/\.?0+e/, "e").replace("e+", "e");
}

/** Return seconds as a duration: 12 s, 3 min 20 s, 2 h 5 min, 3 d 4 h. */
export function duration(seconds: Numeric): string {
  const real = numeric(seconds);
  if (!Number.isFinite(real) || real < 0) return "–";
  if (real < 10) return `${Number(real.toFixed(1))} s`;
  const whole = Math.round(real);
  if (whole < 60) return `${whole} s`;
  if (whole < 3600) return parts(Math.floor(whole / 60), "min", whole % 60, "s");
  if (whole < 86_400) return parts(Math.floor(whole / 3600), "h", Math.floor((whole % 3600) / 60), "min");
  return parts(Math.floor(whole / 86_400), "d", Math.floor((whole % 86_400) / 3600), "h");
}

function parts(large: number, unit: string, small: number, rest: string): string {
  return small ? `${large} ${unit} ${small} ${rest}` : `${large} ${unit}`;
}

/** Return a short time, of a call or an iteration: 340 µs, 12.5 ms, 1.2 s. */
export function shortTime(seconds: Numeric): string {
  const real = numeric(seconds);
  if (!Number.isFinite(real)) return "–";
  if (real === 0) return "0 s";
  if (Math.abs(real) < 1e-3) return `${number(real * 1e6, 3)} µs`;
  if (Math.abs(real) < 1) return `${number(real * 1e3, 3)} ms`;
  return Math.abs(real) < 60 ? `${number(real, 3)} s` : duration(real);
}

/** Return bytes in the largest fitting unit: 512 B, 1.4 MB. */
export function bytes(size: Numeric): string {
  let real = numeric(size);
  if (!Number.isFinite(real)) return "–";
  const units = ["B", "kB", "MB", "GB", "TB", "PB"];
  let unit = 0;
  while (Math.abs(real) >= 1000 && unit < units.length - 1) [real, unit] = [real / 1000, unit + 1];
  return `${number(real, 3)} ${units[unit]}`;
}

/** Return a share as a percentage: 0.4 %, 12 %. */
export function percent(share: Numeric): string {
  const real = numeric(share) * 100;
  if (!Number.isFinite(real)) return "–";
  if (real > 0 && real < 0.1) return "< 0.1 %";
  return `${Number(real.toFixed(Math.abs(real) < 10 ? 1 : 0))} %`;
}

/** Return a moment in local time to the second: 2026-11-18 07:23:55. */
export function moment(iso: string | null | undefined): string {
  const date = iso ? new Date(iso) : null;
  if (!date || Number.isNaN(date.getTime())) return iso || "–";
  const two = (part: number): string => String(part).padStart(2, "0");
  const day = `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())}`;
  return `${day} ${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}`;
}

/** Return how long ago a moment was, in words. */
export function ago(iso: string | null | undefined, now = Date.now()): string {
  const then = iso ? new Date(iso).getTime() : NaN;
  if (Number.isNaN(then)) return "–";
  const seconds = Math.max(0, (now - then) / 1000);
  if (seconds < 60) return "just now";
  const steps: [number, string][] = [
    [86_400 * 365, "year"],
    [86_400 * 30, "month"],
    [86_400, "day"],
    [3600, "hour"],
    [60, "minute"],
  ];
  const [size, unit] = steps.find(([length]) => seconds >= length)!;
  return plural(Math.floor(seconds / size), unit) + " ago";
}

/** Return a count with its word: 1 run, 2 runs. */
export function plural(count: number, word: string, words = `${word}s`): string {
  return `${whole(count)} ${count === 1 ? word : words}`;
}
