import { defineConfig } from 'vitest/config';

export default defineConfig({
  // Vite warns of each source map of a package that leads nowhere.
  logLevel: 'error',
  test: {
    include: ['test/**/*.test.ts'],
    globalSetup: ['test/bundled-program.ts'],
    // Most tests wait for containers, not for a processor: with one worker a core, cores stand idle.
    maxWorkers: 3,
    // MB. Much of what a test makes lives shortly, and Node's space for it is small at first. A short command spends a
    // fifth of its time on garbage collection without this.
    execArgv: ['--min-semi-space-size=16', '--max-semi-space-size=64'],
    // Milliseconds. They only end what hangs: machines that run tests may be slow, loaded and cold.
    testTimeout: 180_000,
    hookTimeout: 180_000,
    expect: { poll: { timeout: 60_000 } },
    // It imports JSON as bundlers allow it, and Node does not.
    server: { deps: { inline: [/@actions\/workflow-parser/] } },
    // Milliseconds. A file is one line, unless a test of it fails or takes this long.
    slowTestThreshold: 60_000,
  },
});
