import { existsSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { openTestService } from '../service/test-service.ts';
import { offsite, start } from './offsite.ts';
import { openPlace } from './place.ts';

test('a key is created for a use, and may do no more', async () => {
  using place = openPlace();
  const create = (...args: string[]) =>
    offsite(place, ['service', 'keys', 'create', '--organization', 'Acme', ...args]);
  const nothing = await create();
  expect([nothing.exitCode, nothing.stdout]).toEqual([2, '']);
  expect(nothing.stderr).toMatch(/--for agent, --for daemon, --for read, --for admin/);
  const secrets = new Map<string, string>();
  for (const use of ['agent', 'daemon', 'read', 'admin'])
    secrets.set(use, (await create('--for', use)).stdout.trim());
  await using service = openTestService(place.dataFolder);
  const statusOf = async (use: string, operation: string) =>
    (await service.ask(operation, {}, secrets.get(use))).status;
  const refused = async (operation: string) => {
    const uses = await Promise.all(
      [...secrets.keys()].map(async (use) => [use, await statusOf(use, operation)]),
    );
    return uses.filter(([, status]) => status === 403).map(([use]) => use);
  };
  expect(await refused('evals.runs.list')).toEqual([]);
  expect(await refused('evals.reportTrial')).toEqual(['read']);
  expect(await refused('evals.start')).toEqual(['read']);
  expect(await refused('prompts.get')).toEqual(['daemon']);
  expect(await refused('prompts.promote')).toEqual(['agent', 'daemon', 'read']);
});

test('who makes a key where another service is configured is told which service knows it', async () => {
  using place = openPlace();
  const create = (env: Record<string, string>) =>
    offsite(place, ['service', 'keys', 'create', '--for', 'daemon'], { env });
  const alone = await create({});
  expect(alone.stderr).toContain(`, in ${place.dataFolder};`);
  expect(alone.stderr).not.toContain('warning');
  const elsewhere = await create({ OFFSITE_URL: 'https://evals.example' });
  expect(elsewhere.exitCode).toBe(0);
  const warning = 'warning: commands use the service https://evals.example here';
  expect(elsewhere.stderr).toContain(warning);
  for (const words of [['list'], ['revoke', 'key_none']]) {
    const looked = (env: Record<string, string>) => offsite(place, ['service', 'keys', ...words], { env });
    expect((await looked({ OFFSITE_URL: 'https://evals.example' })).stderr).toContain(warning);
    expect((await looked({})).stderr).not.toContain('warning');
  }
});

test('a server says that it is new, or not alone, and a key of its folder is made without a warning', async () => {
  using place = openPlace();
  using other = openPlace();
  const serving = start(place, ['serve', '--port', '0', '--no-executor', '--quiet']);
  const [, url = ''] = await serving.printed(/Eval Service at (http:\S+);/);
  await serving.printed(/it is a new service, without batches and keys/);
  const create = (at: typeof place) =>
    offsite(at, ['service', 'keys', 'create', '--for', 'daemon'], { env: { OFFSITE_URL: url } });
  expect((await create(place)).stderr).not.toContain('warning');
  const away = (await create(other)).stderr;
  expect(away).toContain(`which knows this key only if ${other.dataFolder}`);
  expect(away).toContain(`no service has its keys in ${other.dataFolder} yet`);
  const further = start(place, ['serve', '--port', '0', '--no-executor', '--quiet']);
  await further.printed(/another `offsite serve` of this data folder runs too/);
  further.kill('SIGTERM');
  expect((await further.ended).stdout).not.toContain('new service');
  serving.kill('SIGTERM');
  await serving.ended;
});

test('keys are listed without a further word', async () => {
  using place = openPlace();
  await offsite(place, ['service', 'keys', 'create', '--for', 'read', '--name', 'viewer']);
  const bare = await offsite(place, ['service', 'keys', '--data-folder', place.dataFolder]);
  expect([bare.exitCode, bare.stdout]).toEqual([0, expect.stringMatching(/^key .*\nkey_\S+ .* viewer /)]);
  expect(bare.stdout).toBe((await offsite(place, ['service', 'keys', 'list'])).stdout);
});

test('keys of a data folder without a service are refused, and no service is made there', async () => {
  using place = openPlace();
  // A folder of a daemon that has no service of its own.
  mkdirSync(join(place.dataFolder, 'queue'), { recursive: true, mode: 0o700 });
  const { exitCode, stdout, stderr } = await offsite(place, ['service', 'keys', 'list']);
  expect([exitCode, stdout]).toEqual([2, '']);
  expect(stderr).toContain(`no service keeps its keys in ${place.dataFolder}`);
  expect(existsSync(join(place.dataFolder, 'service.db'))).toBe(false);
});

test('keys and the outbox of a folder that does not exist are refused, and it is not made', async () => {
  using place = openPlace();
  const { dataFolder: folder } = place;
  const commands = [
    ['service', 'keys', 'list'],
    ['service', 'keys', 'revoke', 'key_none'],
    ['data', 'outbox'],
  ];
  for (const command of commands) {
    const { exitCode, stdout, stderr } = await offsite(place, command);
    expect([exitCode, stdout]).toEqual([2, '']);
    expect(stderr).toContain(`there is no data folder of Offsite at ${folder}`);
  }
  expect(existsSync(folder)).toBe(false);
});
