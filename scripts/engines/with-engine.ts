import { systemClock } from '../../src/base/clock.ts';
import type { Capabilities } from '../../src/engine/port/engine-port.ts';
import { announcer } from '../set-up/announcer.ts';
import { setUp } from '../set-up/set-up.ts';
import { copyBaseImage } from './base-image.ts';
import { engineEntry } from './table.ts';
import type { EngineEntry, TestEngine } from './test-engine.ts';

export interface NamedEngine extends AsyncDisposable {
  entry: EngineEntry;
  engine: TestEngine;
  facts: Capabilities;
  /**
   * This process's environment, with the engine in DOCKER_HOST, its name in OFFSITE_TEST_ENGINE, and its
   * socket on this machine in OFFSITE_TEST_SOCKET. OFFSITE_TEST_ELSEWHERE says that it is on another machine,
   * and OFFSITE_TEST_MACHINE names this machine as the engine reaches it, if that is not 127.0.0.1.
   */
  env: NodeJS.ProcessEnv;
}

/** Starts the engine of that name and gives it the base image. Throws an `input` error if there is none. */
export async function openNamed(
  name: string,
  env: NodeJS.ProcessEnv,
  signal?: AbortSignal,
): Promise<NamedEngine> {
  const entry = engineEntry(name);
  const ground = { ...announcer(process.stdout, systemClock), env, signal };
  const engine = await entry.open(ground);
  try {
    const { DOCKER_CONTEXT: _, ...rest } = env;
    const { host, socketPath } = engine;
    const forTests = { OFFSITE_TEST_ENGINE: name, OFFSITE_TEST_SOCKET: socketPath };
    const named = { ...rest, ...engine.env, DOCKER_HOST: host, ...forTests };
    await copyBaseImage(engine.socketPath, ground);
    const facts = await setUp(named, signal);
    return { entry, engine, facts, env: named, [Symbol.asyncDispose]: () => engine[Symbol.asyncDispose]() };
  } catch (error) {
    await engine[Symbol.asyncDispose]();
    throw error;
  }
}
