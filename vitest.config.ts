import { join, relative } from 'node:path';
import { defineConfig } from 'vitest/config';
import { BaseSequencer, type TestSpecification } from 'vitest/node';
import { secondsOf } from './scripts/test-selection.ts';

// For the processes of the tests: what one has compiled, the next one reads.
process.env.NODE_COMPILE_CACHE ??= join(import.meta.dirname, 'node_modules', '.cache');

/**
 * The longest files start first, so that no run waits at its end for one of them. On a machine that has never run
 * the tests, vitest would go by the sizes of the files.
 */
class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const seconds = (file: TestSpecification) => secondsOf(relative(import.meta.dirname, file.moduleId));
    return (await super.sort(files)).toSorted((a, b) => seconds(b) - seconds(a));
  }
}

export default defineConfig({
  // Vite warns of each source map of a package that leads nowhere.
  logLevel: 'error',
  test: {
    include: ['test/**/*.test.ts'],
    globalSetup: ['test/bundled-program.ts'],
    // Most tests wait for containers, not for a processor: with one worker a core, cores stand idle.
    maxWorkers: 4,
    sequence: { sequencer: LongestFirst },
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
