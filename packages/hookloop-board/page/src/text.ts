/** Text that runs wrote, made safe to look at. */

/** Return the text with control and direction characters replaced by how code writes them; line breaks and tabs stay. */
export function visible(text: string): string {
  return text.replace(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]/g, sign);
}

function sign(character: string): string {
  const code = character.charCodeAt(0);
  if (code < 0x100) return `\\x${code.toString(16).padStart(2, "0")}`;
  return `‹U+${code.toString(16).toUpperCase().padStart(4, "0")}›`;
}

/** Return at most `most` characters, with a sign that something is left out. */
export function clip(text: string, most = 300): string {
  return text.length <= most ? text : `${text.slice(0, most)}… (${text.length.toLocaleString("en")} characters)`;
}

/** Return a text on one line, for cells and labels. */
export function oneLine(text: string, most = 300): string {
  return clip(text, most).replace(/[\n\r\t]+/g, " ");
}

/** Return a name on one line with its middle left out: names of runs differ at their ends, such as by a seed. */
export function middle(name: string, most: number): string {
  const line = oneLine(name);
  if (line.length <= most) return line;
  const end = Math.ceil((most - 1) * 0.6);
  return `${line.slice(0, most - 1 - end)}…${line.slice(-end)}`;
}

/** Return a value of a config or a table as text, the way that YAML would show it. */
export function valueText(value: unknown, most = 300): string {
  if (value === null || value === undefined) return "null";
  if (typeof value === "string") return clip(value, most);
  if (typeof value === "object") return clip(JSON.stringify(value), most);
  return String(value);
}

/** Return a name that is safe as the name of a downloaded file. */
export function fileName(name: string, ending: string): string {
  const safe = visible(name)
    .replace(/[^\p{L}\p{N}._-]+/gu, "-")
    .replace(/^[.-]+|[.-]+$/g, "")
    .slice(0, 80);
  return `${safe || "board"}.${ending}`;
}

/** Return the name of a list that is nearest to a wrong one, or nothing if none is near. */
export function nearest(wrong: string, names: Iterable<string>): string | null {
  let best: string | null = null;
  let least = Math.max(2, Math.floor(wrong.length / 2));
  for (const name of names) {
    const distance = edits(wrong.toLowerCase(), name.toLowerCase().slice(0, 80));
    if (distance < least) [best, least] = [name, distance];
  }
  return best;
}

function edits(one: string, other: string): number {
  let row = Array.from({ length: other.length + 1 }, (_, index) => index);
  for (let i = 1; i <= one.length; i++) {
    const next = [i];
    for (let j = 1; j <= other.length; j++) {
      const swap = row[j - 1]! + (one[i - 1] === other[j - 1] ? 0 : 1);
      next.push(Math.min(swap, row[j]! + 1, next[j - 1]! + 1));
    }
    row = next;
  }
  return row[other.length]!;
}
