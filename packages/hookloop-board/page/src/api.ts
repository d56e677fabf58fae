/** Questions to the server, or to the data of an exported page. */

import { lookUp, readExported } from "./exported";

/** An answer that says what is wrong and what to do. */
export class Refused extends Error {
  constructor(
    message: string,
    readonly status: number,
  ) {
    super(message);
  }
}

/** No answer at all: the server is not there. */
export class ServerGone extends Error {}

export const exported = readExported(document);

let onGone: () => void = () => undefined;

/** Tell whom to call when the server does not answer. */
export function whenGone(call: () => void): void {
  onGone = call;
}

/** Return the address of a path below the page, wherever the page is mounted. */
export function address(path: string): string {
  return new URL(path.replace(/^\//, ""), new URL(".", window.location.href.split("#")[0])).href;
}

/** Get the answer to a path. */
export async function get<T>(path: string, signal?: AbortSignal): Promise<T> {
  if (exported) return lookUp(exported, path) as T;
  return send<T>(path, signal ? { signal } : {});
}

/** Ask the server to change something. */
export async function post<T>(path: string, content: unknown): Promise<T> {
  return send<T>(path, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(content),
  });
}

async function send<T>(path: string, options: RequestInit): Promise<T> {
  let response: Response;
  try {
    response = await fetch(address(path), { credentials: "same-origin", ...options });
  } catch (error) {
    if (error instanceof DOMException && error.name === "AbortError") throw error;
    onGone();
    throw new ServerGone("The server does not answer. Is “hookloop board” still running?");
  }
  const answer: unknown = await response.json().catch(() => null);
  if (response.ok && answer !== null) return answer as T;
  const told = answer as { error?: unknown } | null;
  const reason = typeof told?.error === "string" ? told.error : `The server answered with status ${response.status}.`;
  throw new Refused(reason, response.status);
}

/** Return whether an error only says that nobody waits any more. */
export function isAbort(error: unknown): boolean {
  return error instanceof DOMException && error.name === "AbortError";
}

/** Return the path of one run, with more behind it. */
export function runPath(id: string, ...more: string[]): string {
  return ["/api/runs", id, ...more].map((part, index) => (index ? encodeURIComponent(part) : part)).join("/");
}

/** Return a path with its query; arrays repeat a name, what is undefined is left out. */
export function query(path: string, values: Record<string, string | number | string[] | undefined>): string {
  const list = new URLSearchParams();
  for (const [name, value] of Object.entries(values)) {
    if (Array.isArray(value)) value.forEach((each) => list.append(name, each));
    else if (value !== undefined) list.append(name, String(value));
  }
  const text = list.toString();
  return text ? `${path}?${text}` : path;
}
