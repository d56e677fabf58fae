import { expect, test } from "vitest";
import { curvesHash, readRoute, runHash } from "../src/routes";

test("routes are read back as they were written", () => {
  expect(readRoute(runHash("0123456789abcdef", "hooks"))).toMatchObject({ view: "run", run: "0123456789abcdef", part: "hooks" });
  const route = readRoute(curvesHash(["a", "b"], ["val/<loss> & more"]));
  expect(route.view).toBe("curves");
  if (route.view === "curves") {
    expect(route.query.getAll("run")).toEqual(["a", "b"]);
    expect(route.query.getAll("metric")).toEqual(["val/<loss> & more"]);
  }
});

test("no hash is the runs, and an unknown one is said", () => {
  expect(readRoute("").view).toBe("runs");
  expect(readRoute("#/runs?q=lr").view).toBe("runs");
  expect(readRoute("#/run/abc/nothing").view).toBe("missing");
  expect(readRoute("#/run/%E0%A4%A/x/../y").view).toBe("missing");
});
