import { join } from 'node:path';
import { defineConfig } from 'vitest/config';

// For the processes of the tests: what one has compiled, the next one reads.
process.env.NODE_COMPILE_CACHE ??= join(import.meta.dirname, 'node_modules', '.cache');

export default defineConfig({
  // Vite warns of each source map of a package that leads nowhere.
  logLevel: 'error',
  test: {
    include: ['test/**/*.test.ts'],
    globalSetup: ['test/bundled-program.ts'],
    // Most tests wait for containers, not for a processor: with one worker a core, cores stand idle.
    maxWorkers: 4,
    // Node reads the sources as they are. With Vite between, a third of the processor's time goes into that.
    experimental: { viteModuleRunner: false, nodeLoader: false },
    // MB. Much of what a test makes lives shortly, and Node's space for it is small at first. A short command spends a
    // fifth of its time on garbage collection without this.
    execArgv: ['--min-semi-space-size=16', '--max-semi-space-size=64'],
    // Milliseconds. They only end what hangs: machines that run tests may be slow, loaded and cold. A test has a
    // limit of its own only if that is what it tests, or if it takes minutes.
    testTimeout: 300_000,
    hookTimeout: 300_000,
    expect: { poll: { timeout: 60_000 } },
    // Milliseconds. A file is one line, unless a test of it fails or takes this long.
    slowTestThreshold: 60_000,
  },
});
