import { beforeAll, describe, expect, test } from 'vitest';
import { systemClock } from '../../src/base/clock.ts';
import { conformanceChecks } from '../../src/engine/conformance/checks.ts';
import { examineConformance } from '../../src/engine/conformance/testbed.ts';
import { limitChecks, wallChecks } from '../../src/engine/conformance/walls.ts';
import { ruledOut } from './ruled-out.ts';
import { engine, sharedEngine } from './shared-engine.ts';

sharedEngine();
let imageId: string;
beforeAll(async () => {
  imageId = (await engine.findImage('offsite/base'))?.id ?? '';
});

const examine = (checks: typeof conformanceChecks) =>
  examineConformance(checks, engine, { imageId, clock: systemClock });

describe('the engine', () => {
  test.each(conformanceChecks.map((check) => [check.name, check] as const))('%s', async (_name, check) => {
    const [seen] = await examine([check]);
    const isRuledOut = ruledOut(engine.capabilities).includes(check.name);
    expect(seen, seen?.state === 'held' ? '' : seen?.found).toMatchObject({
      name: check.name,
      cost: check.cost,
      state: isRuledOut ? 'skipped' : 'held',
    });
  });
});

test('every check leaves nothing behind and states the cost of its failure', async () => {
  // The marker of this engine stays until it is disposed.
  const left = await engine.port.list('container', [`offsite.instance=${engine.instance}`]);
  expect(left.filter(({ labels }) => labels['offsite.role'] !== 'marker')).toEqual([]);
  const images = await engine.port.images.list();
  expect(images.flatMap(({ names }) => names).filter((name) => name.includes(engine.instance))).toEqual([]);
  expect(conformanceChecks.every(({ name, cost }) => /^[a-z]/.test(name) && /^[A-Z].*\.$/.test(cost))).toBe(
    true,
  );
  expect(new Set(conformanceChecks.map(({ name }) => name)).size).toBe(conformanceChecks.length);
});

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
