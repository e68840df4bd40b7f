import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Engine } from '../../src/engine/engine.ts';
import { dockerOf } from '../engine/docker-of.ts';
import { until } from '../engine/engine-fixture.ts';
import { touch } from '../engine/touch.ts';
import { openTrialBench, type TrialBench, validator } from './trial-bench.ts';

let bench: TrialBench;
let counting: TrialBench;
let containers = 0;
beforeAll(async () => {
  bench = await openTrialBench();
  const engine: Engine = Object.create(bench.engine, {
    createContainer: {
      value: (...given: Parameters<Engine['createContainer']>) => {
        containers += 1;
        return bench.engine.createContainer(...given);
      },
    },
  });
  counting = await openTrialBench({ engine });
});
afterAll(async () => {
  await counting?.[Symbol.asyncDispose]();
  await bench?.[Symbol.asyncDispose]();
});

const passing = validator('#!/bin/sh\ngrep -qx hello greeting');

/** The containers that trials have on the engine, running or not. */
function ofTrials(run: string) {
  const filters = { label: [`offsite.instance=${bench.engine.instance}`, `offsite.run=${run}`] };
  return dockerOf(bench.engine).listContainers({ all: true, filters });
}

test('no third container is made to see that verify left the system alone, whatever the harness wrote', async () => {
  const before = containers;
  const result = await counting.trial(
    'echo hello > greeting; echo x > ~/.settings; mkdir /opt/tool; cp /bin/true /opt/tool; rm /etc/motd',
    { verify: 'grep -qx hello greeting' },
  );
  expect(result).toMatchObject({ verdict: 'passed', cause: undefined });
  expect(containers - before).toBe(2);
});

test('the workspace is read once after the harness, to compare and to grade it', async () => {
  const reads: string[] = [];
  const engine: Engine = Object.create(bench.engine, {
    createContainer: {
      value: async (...given: Parameters<Engine['createContainer']>) => {
        const container = await bench.engine.createContainer(...given);
        const noted = ['archive', 'pack', 'carryTo'] as const;
        const note =
          (name: string) =>
          (path: unknown, ...rest: unknown[]) => {
            reads.push(name);
            return Reflect.apply(Reflect.get(container, name), container, [path, ...rest]);
          };
        return { ...container, ...Object.fromEntries(noted.map((name) => [name, note(name)])) };
      },
    },
  });
  await using noting = await openTrialBench({ engine });
  const result = await noting.trial('echo hello > greeting', {
    verify: 'grep -qx hello greeting',
    validator: passing,
  });
  expect(result).toMatchObject({ verdict: 'passed' });
  // Before and after the harness.
  expect(reads).toEqual(['archive', 'archive']);
});

test('the sandboxes of verify and of the validator start while the harness works', async () => {
  const running = counting.trial('until [ -e go ]; do sleep 0.1; done; echo hello > greeting', {
    runId: 'ahead',
    verify: 'grep -qx hello greeting',
    validator: passing,
  });
  await until(async () => {
    const found = await ofTrials('ahead');
    return found.length === 3 && found.every(({ State }) => State === 'running');
  });
  for (const { Id } of await ofTrials('ahead')) await touch(bench.engine, Id, '/workspace/go');
  expect(await running).toMatchObject({ verdict: 'passed' });
});

test('and goes with a trial that never comes to its validator', async () => {
  const result = await counting.trial('true', {
    runId: 'untaken',
    harness: 'no such',
    validator: passing,
  });
  expect(result).toMatchObject({ verdict: 'void', cause: { phase: 'harness' } });
  await until(async () => (await ofTrials('untaken')).length === 0);
});
