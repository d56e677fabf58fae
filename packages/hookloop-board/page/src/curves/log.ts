/** The logarithmic axis: uPlot's own does not end where values are tiny. */

const LEAST = 1e-300;

/** Return the range of an axis for values from `min` to `max`: from digit to digit of their powers of ten. */
export function logRange(min: number | null, max: number | null): [number, number] {
  if (min === null || max === null) return [1, 10];
  if (min === max) return [Math.max(LEAST, min / 10), Math.min(Number.MAX_VALUE, max * 10)];
  const low = Math.max(LEAST, min);
  const [below, above] = [power(low), power(max)];
  return [Math.max(LEAST, Math.floor(low / below) * below), Math.min(Number.MAX_VALUE, Math.ceil(max / above) * above)];
}

/** Return where the ticks are: at 1, 2 and 5 of each power of ten, at fewer where there are many powers. */
export function logTicks(min: number, max: number): number[] {
  const [first, last] = [Math.floor(Math.log10(min)), Math.floor(Math.log10(max))];
  const digits = last - first <= 2 ? [1, 2, 5] : [1];
  const step = Math.max(1, Math.ceil((last - first) / 6));
  const ticks: number[] = [];
  for (let exponent = first; exponent <= last; exponent += 1) {
    if (exponent % step === 0) ticks.push(...digits.map((digit) => Number(`${digit}e${exponent}`)));
  }
  return ticks.filter((tick) => tick >= min * (1 - 1e-9) && tick <= max * (1 + 1e-9));
}

function power(value: number): number {
  return Number(`1e${Math.floor(Math.log10(value))}`);
}
