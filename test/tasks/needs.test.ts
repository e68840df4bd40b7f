import { expect, test } from 'vitest';
import { OffsiteError } from '../../src/base/offsite-error.ts';
import { type Machine, machineObstacles, needsOf } from '../../src/tasks/list-tasks.ts';
import { planTasks } from '../../src/tasks/plan-tasks.ts';
import { eachTaskSet, set } from './each-task-set.ts';

eachTaskSet();

const parts = { except: [], images: { 'docker/dockerfile:1': 'my/frontend' }, keys: undefined };

test.each([
  ['classic', 'classic', ['builder 3', 'builder 4']],
  ['buildkit', 'older', ['builder 4']],
  ['buildkit', 'current', []],
  ['buildkit', 'older', [], 'my/frontend'],
  ['classic', 'classic', ['builder 3', 'builder 4'], 'my/frontend'],
] as const)(
  'a Dockerfile that %s, %s, cannot build is an obstacle: %j',
  async (kind, frontend, expected, image?: string) => {
    const dockerfile =
      '# syntax=docker/dockerfile:1\nFROM debian\nCOPY --chmod=700 a /\nCOPY <<EOF /b\nx\nEOF\nRUN <<EOF\nls\nEOF\n';
    const { place } = set.harbor('task', { 'environment/Dockerfile': dockerfile });
    const [planned] = planTasks({ path: set.folder }, parts).cases;
    const machine: Machine = {
      cpus: 8,
      memoryBytes: 2 ** 33,
      hasImage: async (name) => name === 'debian' || name === image,
      laterCommits: async () => undefined,
      builder: async () => ({ kind, frontend }),
    };
    if (!planned) throw new Error('the task is a case');
    const obstacles = await machineObstacles(needsOf(planned, place), place, machine);
    expect(obstacles.map(({ feature, line }) => `${feature} ${line}`)).toEqual(expected);
  },
);

test.each([
  ['shows later commits', async () => 'a fix', ['later-commits']],
  ['shows none', async () => undefined, []],
  [
    'cannot be searched',
    async () => Promise.reject(new OffsiteError('no shell', { code: 'TRIAL_VOID', kind: 'infrastructure' })),
    ['unsearched-image'],
  ],
])('an image of a row that %s', async (_, laterCommits, expected) => {
  const machine: Machine = {
    cpus: 8,
    memoryBytes: 2 ** 33,
    laterCommits,
    hasImage: async () => true,
    builder: async () => ({ kind: 'classic', frontend: 'classic' }),
  };
  const at = { file: 'rows.jsonl', line: 3, column: 1, path: '', message: 'image' };
  const repository = { image: 'image', at, folder: undefined, base: 'abc' };
  const needs = { cpus: 1, memoryBytes: 1, images: [], builds: [], repository };
  const obstacles = await machineObstacles(needs, 'rows.jsonl', machine);
  expect(obstacles.map(({ feature }) => feature)).toEqual(expected);
});
