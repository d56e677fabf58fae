import { expect, test } from "vitest";

const texts = import.meta.glob<string>(["../src/**/*.ts", "../src/**/*.css"], { query: "?raw", import: "default", eager: true });
const files = Object.entries(texts).map(([path, text]) => ({ name: path.replace("../src/", ""), text }));

test("every module is looked at", () => expect(files.length).toBeGreaterThan(40));

test("no text can become markup or code", () => {
  const bad = /innerHTML|outerHTML|insertAdjacentHTML|document\.write|createContextualFragment|parseFromString|setHTML|\beval\(|new Function/;
  expect(files.filter(({ text }) => bad.test(text)).map(({ name }) => name)).toEqual([]);
});

test("no other host is named", () => {
  const found = files.flatMap(({ name, text }) => (text.match(/(https?:)?\/\/[\w-]+\.[\w.-]+/g) ?? []).map((host) => `${name}: ${host}`));
  expect(found).toEqual(["dom.ts: http://www.w3.org"]);
});

test("styles are set through the object model only", () => {
  expect(files.filter(({ text }) => /setAttribute\("style"|style: "/.test(text)).map(({ name }) => name)).toEqual([]);
});
