/** One colour per run, the same in every view, told apart also by the colour-blind. */

import { PALETTES } from "./palette";
import { keepSetting, readSetting } from "./settings";
import { theme } from "./theme";

const DASHES: number[][] = [[], [8, 4], [2, 3]];

export interface Look {
  colour: string;
  dash: number[];
}

/** Which place in the palette each run has: the first that was free when it was first shown. */
export class Places {
  private readonly places: Map<string, number>;

  constructor(
    known: Record<string, number>,
    private readonly keep: (places: Record<string, number>) => void,
    private readonly most = 400,
  ) {
    this.places = new Map(Object.entries(known));
  }

  /** Return the place of a run, and give it one if it has none. */
  of(run: string): number {
    const known = this.places.get(run);
    if (known !== undefined) return known;
    const place = this.free();
    this.places.set(run, place);
    for (const oldest of this.places.keys()) {
      if (this.places.size <= this.most) break;
      this.places.delete(oldest);
    }
    this.keep(Object.fromEntries(this.places));
    return place;
  }

  /** Give runs that are compared places of their own, as far as there are that many. */
  separate(runs: string[]): void {
    const taken = new Set<number>();
    for (const run of runs) {
      const place = this.places.get(run);
      if (place === undefined) continue;
      if (taken.has(place % 21)) this.places.delete(run);
      else taken.add(place % 21);
    }
    for (const run of runs) {
      if (this.places.has(run)) continue;
      let place = 0;
      while (taken.has(place) && place < 21) place += 1;
      taken.add(place);
      this.places.set(run, place % 21);
    }
    this.keep(Object.fromEntries(this.places));
  }

  private free(): number {
    const count = new Array<number>(21).fill(0);
    for (const place of this.places.values()) count[place % 21]! += 1;
    return count.indexOf(Math.min(...count));
  }
}

const places = new Places(readSetting("colours", {}), (all) => keepSetting("colours", all));

/** Make sure that runs which are shown together look different. */
export function separate(runs: string[]): void {
  places.separate(runs);
}

/** Return the colour and the dashes of a run in the current theme. */
export function look(run: string): Look {
  const palette = PALETTES[theme()];
  const place = places.of(run);
  return {
    colour: palette[place % palette.length]!,
    dash: DASHES[Math.floor(place / palette.length) % DASHES.length]!,
  };
}

/** Return a colour with an opacity. */
export function faint(hex: string, opacity: number): string {
  return hex + Math.round(opacity * 255).toString(16).padStart(2, "0");
}
