import { afterAll, beforeAll, expect, test } from 'vitest';
import { systemClock } from '../../src/clock.ts';
import { examineConformance } from '../../src/engine/conformance/check.ts';
import { commandChecks } from '../../src/engine/conformance/commands.ts';
import { limitChecks } from '../../src/engine/conformance/limits.ts';
import { wallChecks } from '../../src/engine/conformance/walls.ts';
import type { Engine } from '../../src/engine/engine.ts';
import { testEngine } from './engine-fixture.ts';
import { ruledOut } from './ruled-out.ts';

let engine: Engine;
let imageId: string;
beforeAll(async () => {
  engine = await testEngine();
  imageId = (await engine.findImage('offsite/base'))?.id ?? '';
});
afterAll(() => engine?.[Symbol.asyncDispose]());

test('an engine that enforces nothing fails every check of limits and walls', async () => {
  const { port } = engine;
  const create: typeof port.containers.create = (request, signal) =>
    port.containers.create(
      {
        ...request,
        network: request.network === 'none' ? 'open' : request.network,
        memoryBytes: 2 ** 30,
        cpus: undefined,
        pids: 1000,
        nofile: 4096,
        capabilities: [...request.capabilities, 'SYS_ADMIN'],
        filter: undefined,
        readOnlyRoot: false,
        readOnlyPaths: [],
      },
      signal,
    );
  const containers = { ...port.containers, create, limitProcesses: async () => undefined };
  const loose = { ...engine, port: { ...port, containers } };
  const { userns, rootless } = engine.capabilities.security;
  const held = [
    'measures what a container wrote',
    'lets containers share a separate network',
    ...ruledOut(engine.capabilities),
    // Root in a container is nobody on the machine.
    ...(userns || rootless ? ['protects devices and kernel settings from changes'] : []),
  ];
  const checks = [...limitChecks, ...wallChecks].filter(({ name }) => !held.includes(name));
  const seen = await examineConformance(checks, loose, { imageId, clock: systemClock });
  const failed = seen.filter(({ state }) => state === 'failed').map(({ name }) => name);
  // This engine still disconnects a container from its network.
  expect(failed).toEqual(
    checks.map(({ name }) => name).filter((name) => !name.startsWith('takes a running')),
  );
});

test('an engine that always reports success fails the checks of commands', async () => {
  const { port } = engine;
  const exec: typeof port.containers.exec = async (id, command) => {
    const opened = await port.containers.exec(id, command);
    if (!opened.started) return opened;
    const inspect = async () => ({ running: false, exitCode: 0, neverStarted: false });
    return { started: true, exec: { ...opened.exec, inspect } };
  };
  const rosy = { ...engine, port: { ...port, containers: { ...port.containers, exec } } };
  const seen = await examineConformance(commandChecks, rosy, { imageId, clock: systemClock });
  expect(seen.filter(({ state }) => state === 'failed').map(({ name }) => name)).toEqual([
    'reports the exit code of each command',
    'says when it cannot start a command',
    'ends the stream of a command when its container is killed',
    'does not report a command as finished if its stream was cut',
  ]);
});
