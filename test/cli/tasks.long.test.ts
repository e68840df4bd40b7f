import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { openTaskSet, type TaskSetFolder } from '../tasks/task-set.ts';
import { offsite } from './offsite.ts';
import { openPlace, type Place } from './place.ts';

let place: Place;
let set: TaskSetFolder;

beforeAll(() => {
  place = openPlace();
  set = openTaskSet();
  const open = 'agent.timeout_sec = 1\n';
  set.harbor('good', { 'solution/solve.sh': 'true\n' });
  set.harbor('gpu', { 'task.toml': `${open}[environment]\ngpus = 1\nnetwork_mode = "no-network"\n` });
  set.harbor('broken', { 'task.toml': `${open}[environment]\ncpus = "all"\n` });
  set.terminalBench('terminal');
});
afterAll(() => {
  set?.[Symbol.dispose]();
  place?.[Symbol.dispose]();
});

const tasks = (...args: string[]) =>
  offsite(place, ['tasks', 'list', set.folder, ...args], { dataFolder: null });

/** The line of a task, with single spaces. */
const line = (stdout: string, id: string) =>
  stdout
    .split('\n')
    .find((each) => each.startsWith(`${id} `))
    ?.replaceAll(/ +/g, ' ');

test('lists what is there, what runs here, and why the others do not', async () => {
  const { stdout, stderr, exitCode } = await tasks();
  expect(line(stdout, 'good')).toBe('good harbor build rewards, same sandbox yes 1 0 yes');
  expect(line(stdout, 'gpu')).toBe(
    'gpu harbor build rewards, same sandbox no 1 0 no: asks for 1: no GPU can be given to a sandbox',
  );
  expect(line(stdout, 'terminal')).toBe(
    'terminal terminal-bench build printed tests, same sandbox no 1 1 yes',
  );
  expect(line(stdout, 'broken')).toContain('CANNOT BE READ');
  expect(stdout).toContain('4 tasks: 2 can run here, 1 cannot, 1 cannot be read');
  expect(stdout).toContain('cannot run 1 task: gpu (no GPU can be given to a sandbox)');
  expect(stderr).toBe(
    `${join(set.folder, 'broken/task.toml')}:3:1: environment.cpus: expected a number, but this is a text\n`,
  );
  expect(exitCode).toBe(2);
});

test('says where each note and each reason is', async () => {
  const { stdout, exitCode } = await tasks('--details', '--exclude', 'broken');
  const at = (name: string) => join(set.folder, name);
  expect(stdout).toContain(`does not run: ${at('gpu/task.toml')}:3:1: environment.gpus: asks for 1: no GPU`);
  expect(stdout).toContain(`note: ${at('terminal/task.yaml')}:1:1: the agent and the tests run without`);
  expect(exitCode).toBe(0);
});

test('as JSON, with the same reasons', async () => {
  const { stdout, exitCode } = await tasks('--json');
  expect(exitCode).toBe(2);
  const document = JSON.parse(stdout);
  expect(document.totals).toEqual({
    tasks: 4,
    run: 2,
    doNotRun: 1,
    unreadable: 1,
    obstacles: { gpu: 1 },
    notes: { 'open-network': 1 },
  });
  const byId = Object.fromEntries(document.tasks.map((task: { id: string }) => [task.id, task]));
  expect(byId.good).toMatchObject({
    state: 'runs',
    environment: { kind: 'build', services: [] },
    verifier: { mode: 'shared', reading: 'reward-files' },
    hasSolution: true,
    steps: 1,
    place: join(set.folder, 'good'),
  });
  expect(byId.gpu.obstacles).toMatchObject([
    { feature: 'gpu', line: 3, column: 1, path: 'environment.gpus' },
  ]);
  expect(byId.broken.issues).toMatchObject([{ line: 3, path: 'environment.cpus' }]);
});

test('only those that are asked for', async () => {
  const listed = async (...args: string[]) =>
    JSON.parse((await tasks('--json', ...args)).stdout).tasks.map((task: { id: string }) => task.id);
  expect(await listed('--format', 'terminal-bench')).toEqual(['terminal']);
  expect(await listed('--include', 'g*', '--limit', '1')).toEqual(['good']);
  expect(await listed('--seed', '3')).toEqual(await listed('--seed', '3', '--limit', '4'));
});

test.each([
  [['--include', 'none'], 'no task matches "none"'],
  [['--format', 'other'], 'Allowed choices are harbor, terminal-bench, swe-bench'],
  [['--seed', '-1'], 'expected a whole number from 0'],
  [['--limit', '0'], 'expected a whole number from 1'],
])('%j is refused', async (args, message) => {
  const { stderr, exitCode } = await tasks(...args);
  expect(stderr).toContain(message);
  expect(exitCode).toBe(2);
});

test('foresees what a run would refuse, and what the engine does not have', async () => {
  using more = openTaskSet();
  const toml = (environment: string) => `agent.timeout_sec = 1\n[environment]\n${environment}\n`;
  more.harbor('mapped', { 'environment/Dockerfile': 'FROM ubuntu:24.04\n' });
  more.harbor('absent', { 'environment/Dockerfile': '# first\nFROM nobody/has:this\n' });
  more.harbor('large', {
    'task.toml': toml('memory_mb = 99000000\ncpus = 9000'),
    'environment/Dockerfile': 'FROM ubuntu:24.04\n',
  });
  more.harbor('key', { 'tests/expected': 'my secret-key-1234\n' });
  const config = place.write('offsite.yaml', 'advanced: { images: { "ubuntu:24.04": offsite/base } }\n');
  const env = { OFFSITE_API_KEY: 'secret-key-1234' };
  const list = (...args: string[]) =>
    offsite(place, ['tasks', 'list', more.folder, '--config', config, ...args], { env, dataFolder: null });
  const plain = await list();
  expect(plain.stdout).toContain('4 tasks: 3 can run here, 0 cannot, 1 cannot be read');
  expect(plain.stderr).toMatch(/key\/tests\/expected:1:4: holds the key in OFFSITE_API_KEY/);
  const { stdout } = await list('--engine', '--details');
  expect(stdout).toContain('4 tasks: 1 can run here, 2 cannot, 1 cannot be read');
  expect(line(stdout, 'mapped')).toMatch(/yes$/);
  expect(stdout).toContain(
    `${join(more.folder, 'absent/environment/Dockerfile')}:2:1: nobody/has:this: the engine does not have`,
  );
  expect(stdout).toMatch(/asks for 9000 processors, more than \d+: the engine has less/);
  expect(stdout).toMatch(/asks for 99000000 MiB of memory, more than \d+ MiB: the engine has less/);
});
