import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { systemClock } from '../../src/clock.ts';
import { examineConformance } from '../../src/engine/conformance/check.ts';
import { conformanceChecks } from '../../src/engine/conformance/checks.ts';
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
