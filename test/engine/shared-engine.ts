import { afterAll, beforeAll } from 'vitest';
import type { ContainerSpec } from '../../src/engine/container/container-spec.ts';
import type { Container } from '../../src/engine/container.ts';
import type { Engine } from '../../src/engine/engine.ts';
import { startedContainer, testEngine } from './engine-fixture.ts';

/** The engine of the file that runs, in files that call {@link sharedEngine}. */
export let engine: Engine;

/** Connects the tests of a file to an engine under an instance name of their own. Call it in the file. */
export function sharedEngine(): void {
  beforeAll(async () => {
    engine = await testEngine();
  });
  afterAll(() => engine?.[Symbol.asyncDispose]());
}

/** The container of the file that runs, in files that call {@link sharedContainer}. */
export let container: Container;

/** Gives the tests of a file an engine, and one container for all of them. Call it in the file. */
export function sharedContainer(changes: Partial<ContainerSpec> = {}): void {
  sharedEngine();
  beforeAll(async () => {
    container = await startedContainer(engine, changes);
  });
}
