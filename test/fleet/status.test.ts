import { expect, test } from 'vitest';
import { fleetFormat } from '../../src/fleet/format.ts';
import type { WorkerProfile } from '../../src/fleet/placement.ts';
import { waitingTrials } from '../../src/fleet/status.ts';

const profile: WorkerProfile = {
  version: '1.0.0',
  format: fleetFormat,
  service: 'http://service',
  pools: ['default'],
  engine: { version: '1', arch: 'amd64', cpus: 2, memory: 8e9 },
  concurrency: 1,
  trialMemory: 4e9,
  labels: [],
  models: [],
  harnesses: [],
  runtimes: [],
  sandboxes: [],
  profiles: [],
};
const known = {
  seen: [{ name: 'one', silentMs: 0, isSilent: false, profile }],
  taskQueue: 'offsite',
};

test.each([
  ['as an older Offsite wrote them', [{ harness: 'bash', models: ['fast'], memory: 4e9 }]],
  ['damaged', 'none'],
])('a batch of another format says so, with needs that are %s', (_, needs) => {
  const memo = { suite: 's', pool: 'default', format: '4.1', trials: 7, needs };
  expect(waitingTrials(memo, undefined, known)).toEqual([
    { reason: `no worker has the fleet format 4.1 of their batch, only ${fleetFormat}`, trials: 7 },
  ]);
});
