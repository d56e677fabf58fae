/// <reference types="vitest/config" />
import { defineConfig } from "vite";

// One script and one style file with relative addresses: the Python package serves them, and
// `hookloop board --export` writes both into a single file.
export default defineConfig({
  base: "./",
  build: {
    outDir: "../src/hookloop_board/page",
    emptyOutDir: true,
    target: "es2022",
    assetsInlineLimit: 0,
    modulePreload: false,
    cssCodeSplit: false,
    reportCompressedSize: false,
  },
  server: {
    proxy: { "/api": "http://127.0.0.1:6060" },
  },
  test: { include: ["tests/**/*.test.ts"], environment: "node", css: true },
});
