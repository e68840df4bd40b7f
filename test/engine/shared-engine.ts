import { afterAll, beforeAll } from 'vitest';
import type { Engine } from '../../src/engine/engine.ts';
import { testEngine } from './engine-fixture.ts';

/** The engine of the file that runs, in files that call {@link sharedEngine}. */
export let engine: Engine;

/** Connects the tests of a file to an engine under an instance name of their own. Call it in the file. */
export function sharedEngine(): void {
  beforeAll(async () => {
    engine = await testEngine();
  });
  afterAll(() => engine?.[Symbol.asyncDispose]());
}
