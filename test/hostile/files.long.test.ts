import { execFileSync } from 'node:child_process';
import {
  existsSync,
  linkSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { stringify } from 'yaml';
import { type Ended, start } from '../cli/offsite.ts';
import { openPlace, type Place } from '../cli/place.ts';

const key = 'sk-live-Zq8Xk2mN7vR4/tY6uI9oP1a';
const models = { m: { wire: 'openai-chat', baseUrl: 'http://127.0.0.1:1/v1', apiKeyEnv: 'M_KEY' } };

/** Enqueues a suite, which reads all of its files, and needs no engine. What hangs is ended. */
async function enqueue(place: Place, suite: string, options: string[] = []): Promise<Ended> {
  const running = start(place, ['daemon', 'enqueue', suite, ...options], { env: { M_KEY: key } });
  const timer = setTimeout(() => running.kill('SIGKILL'), 30_000);
  const ended = await running.ended;
  clearTimeout(timer);
  return ended;
}

/** What was queued for the daemon, whole. */
function queued(place: Place): string {
  const folder = join(place.dataFolder, 'queue');
  if (!existsSync(folder)) return '';
  return readdirSync(folder)
    .map((name) => readFileSync(join(folder, name), 'utf8'))
    .join('');
}

function suiteWith(place: Place, prompt: unknown, more: Record<string, unknown> = {}): string {
  place.suite({ cases: [{ id: 'a', verify: 'true' }], config: { models }, ...more });
  const suite = place.write('suite.yaml', '');
  const variants = [{ model: 'none', harness: 'command', profile: 'worker' }];
  return (
    place.write(
      'suite.yaml',
      stringify({ suite: { id: 's', prompt }, variants, cases: [{ id: 'a', verify: 'true' }] }),
    ) && suite
  );
}

function makePipe(path: string): void {
  execFileSync('sh', ['-c', 'mkfifo "$0"', path]);
}

/** A file that takes no room. */
function sparse(path: string, bytes: number): void {
  writeFileSync(path, '');
  truncateSync(path, bytes);
}

function linked(place: Place, target: string, name: string): string {
  symlinkSync(target, join(place.folder, 'project', name));
  return name;
}

describe('a suite reads nothing but regular files of its own folder', () => {
  const outside: [string, (place: Place) => string][] = [
    ['the environment of the process', () => '../../../../../../../../proc/self/environ'],
    ['an absolute path', () => '/etc/passwd'],
    ['a file beside its folder', () => '../beside'],
    ['a link to a file outside', (place) => linked(place, '/etc/passwd', 'link')],
    ['a file behind a link to a folder outside', (place) => `${linked(place, '/etc', 'etc')}/passwd`],
    [
      'the records of the repository, which hold tokens',
      (place) => place.write('.git/config', 'token') && '.git/config',
    ],
  ];
  test.each(outside)('not %s', async (_, make) => {
    using place = openPlace();
    place.write('suite.yaml', '');
    writeFileSync(join(place.folder, 'beside'), 'x');
    const suite = suiteWith(place, { file: make(place) });
    const { exitCode, stderr } = await enqueue(place, suite);
    expect([exitCode, stderr]).toEqual([
      2,
      expect.stringMatching(/suite\.yaml:\d+:\d+: suite\.prompt.*--allow-outside/s),
    ]);
    expect(queued(place)).toBe('');
  });

  const special: [string, RegExp, (path: string) => void][] = [
    ['a pipe', /a pipe/, (path) => makePipe(path)],
    ['a device without end', /a device/, (path) => symlinkSync('/dev/zero', path)],
    ['a folder', /a folder/, (path) => mkdirSync(path)],
    ['a file of 5 GiB', /16 MiB/, (path) => sparse(path, 5 * 1024 ** 3)],
  ];
  test.each(special)('not %s, even where the command line allows all', async (_, why, make) => {
    using place = openPlace();
    place.write('suite.yaml', '');
    make(join(place.folder, 'project', 'thing'));
    const suite = suiteWith(place, { file: 'thing' });
    const { exitCode, stderr } = await enqueue(place, suite, ['--allow-outside', '/dev']);
    expect([exitCode, stderr]).toEqual([2, expect.stringMatching(why)]);
    expect(stderr).toMatch(/suite\.yaml:\d+:\d+: suite\.prompt/);
  });

  test('and every other file that it names is read the same way', async () => {
    using place = openPlace();
    place.suite({ cases: [], config: { models } });
    const outside = { file: '/etc/passwd' };
    const suite = place.write(
      'suite.yaml',
      stringify({
        suite: { id: 's', prompt: 'x' },
        variants: [{ model: 'none', harness: 'command', profile: 'worker' }],
        cases: [
          { id: 'a', verify: outside, solution: outside, prepare: outside },
          { id: 'b', validator: outside },
          { id: 'c', validator: { source: 'x', sourceFiles: ['/etc/passwd'] } },
        ],
      }),
    );
    const { stderr } = await enqueue(place, suite);
    expect(stderr.match(/^.*cannot read \/etc\/passwd.*outside/gm)).toHaveLength(5);
  });

  test('the suite file itself may be a pipe as little', async () => {
    using place = openPlace();
    place.write('x', '');
    const path = join(place.folder, 'project', 'pipe.yaml');
    makePipe(path);
    expect(await enqueue(place, path)).toMatchObject({
      exitCode: 2,
      stderr: expect.stringMatching(/a pipe/),
    });
  });

  test('but a link within the folder, and the folder itself by a link', async () => {
    using place = openPlace();
    place.write('real/prompt.md', 'do it well');
    symlinkSync('real', join(place.folder, 'project', 'way'));
    const suite = suiteWith(place, { file: 'way/prompt.md' });
    symlinkSync('project', join(place.folder, 'elsewhere'));
    const { exitCode } = await enqueue(place, suite.replace('/project/', '/elsewhere/'));
    expect(exitCode).toBe(0);
    expect(queued(place)).toContain('do it well');
  });

  test('and what the command line names', async () => {
    using place = openPlace();
    mkdirSync(join(place.folder, 'shared'));
    writeFileSync(join(place.folder, 'shared', 'prompt.md'), 'shared by suites');
    const suite = suiteWith(place, { file: '../shared/prompt.md' });
    const { exitCode, stderr } = await enqueue(place, suite, ['--allow-outside', 'shared']);
    expect([exitCode, stderr]).toEqual([0, '']);
    expect(queued(place)).toContain('shared by suites');
  });

  test('never what Offsite keeps, even in the suite’s own folder', async () => {
    using place = openPlace();
    place.write('x', '');
    const data = join(place.folder, 'project', 'data');
    mkdirSync(data, { mode: 0o700 });
    writeFileSync(join(data, 'agent.key'), 'ofs_secret\n');
    const suite = suiteWith(place, { file: 'data/agent.key' });
    renameSync(data, place.dataFolder);
    symlinkSync(place.dataFolder, data);
    const { exitCode, stderr } = await enqueue(place, suite, ['--allow-outside', place.folder]);
    expect([exitCode, stderr]).toEqual([2, expect.stringMatching(/keeps its own/)]);
  });

  test('a second name of a file cannot be told from the first: it is read', async () => {
    using place = openPlace();
    place.write('x', '');
    writeFileSync(join(place.folder, 'beside'), 'hard to tell');
    linkSync(join(place.folder, 'beside'), join(place.folder, 'project', 'second'));
    expect((await enqueue(place, suiteWith(place, { file: 'second' }))).exitCode).toBe(0);
  });
});

describe('what holds a key is refused where it stands', () => {
  const written: [string, string][] = [
    ['as it is', key],
    ['in base64', Buffer.from(`u:${key}`).toString('base64')],
    ['with escaped slashes', key.replaceAll('/', '\\/')],
    [
      'percent-encoded',
      encodeURIComponent(key)
        .toLowerCase()
        .replace('zq8xk2mn7vr4', 'Zq8Xk2mN7vR4')
        .replace('ty6ui9op1a', 'tY6uI9oP1a'),
    ],
  ];
  test.each(written)('a file of a suite, %s', async (_, text) => {
    using place = openPlace();
    place.write('prompt.md', `one\ntwo ${text}\n`);
    const { exitCode, stderr } = await enqueue(place, suiteWith(place, { file: 'prompt.md' }));
    expect([exitCode, stderr]).toEqual([2, expect.stringMatching(/prompt\.md:2:\d+: .*M_KEY/)]);
    expect(stderr).not.toContain(text);
    expect(queued(place)).toBe('');
  });

  test('the suite file, however YAML writes it', async () => {
    using place = openPlace();
    const suite = suiteWith(place, 'x');
    const escaped = [...key].map((one) => `\\x${one.charCodeAt(0).toString(16)}`).join('');
    writeFileSync(suite, readFileSync(suite, 'utf8').replace('verify: "true"', `verify: "echo ${escaped}"`));
    const { exitCode, stderr } = await enqueue(place, suite);
    expect([exitCode, stderr]).toEqual([2, expect.stringMatching(/cases\[0\].*verify.*M_KEY/s)]);
  });

  test('a file, and a setting, of a profile', async () => {
    using place = openPlace();
    place.write('tool/settings.json', JSON.stringify({ key }));
    const worker = { run: 'true', folders: { '/opt/tool': 'tool' } };
    const suite = suiteWith(place, 'x', { config: { models, profiles: { worker } } });
    expect(await enqueue(place, suite)).toMatchObject({
      exitCode: 2,
      stderr: expect.stringMatching(/settings\.json:1:\d+: .*M_KEY/),
    });
    suiteWith(place, 'x', { config: { models, profiles: { worker: { run: 'true', env: { TOKEN: key } } } } });
    const { exitCode, stderr } = await enqueue(place, suite);
    expect([exitCode, stderr]).toEqual([
      2,
      expect.stringMatching(/variants\[0\]\.profile\.env\.TOKEN.*M_KEY/s),
    ]);
    expect(stderr).not.toContain(key);
  });
});

describe('files of a profile are the owner’s choice, and bounded', () => {
  const profile = (worker: Record<string, unknown>) => ({
    config: { models, profiles: { worker: { run: 'true', ...worker } } },
  });

  test('one from outside is read', async () => {
    using place = openPlace();
    place.write('x', '');
    writeFileSync(join(place.folder, 'beside'), 'of the machine');
    const suite = suiteWith(place, 'x', profile({ files: { '/opt/x': '../beside' } }));
    expect((await enqueue(place, suite)).exitCode).toBe(0);
    expect(queued(place)).toContain(Buffer.from('of the machine').toString('base64'));
  });

  const troubles: [string, RegExp, (folder: string) => void][] = [
    [
      'a pipe',
      /offsite\.yaml:\d+:\d+: profiles\.worker\.folders.*a pipe/,
      (folder) => makePipe(join(folder, 'pipe')),
    ],
    [
      'a link in a circle',
      /offsite\.yaml:\d+:\d+: profiles\.worker\.folders.*circle/,
      (folder) => symlinkSync('..', join(folder, 'up')),
    ],
    [
      'files without number',
      /offsite\.yaml:\d+:\d+: profiles\.worker\.folders.*files/,
      (folder) => {
        for (let n = 0; n < 10_001; n++) writeFileSync(join(folder, `${n}`), '');
      },
    ],
    [
      'bytes without bound',
      /offsite\.yaml:\d+:\d+: profiles\.worker\.folders.*MiB/,
      (folder) => {
        for (let n = 0; n < 9; n++) {
          sparse(join(folder, `${n}`), 15 * 1024 ** 2);
        }
      },
    ],
  ];
  test.each(troubles)('%s in a folder is refused at its place', async (_, why, make) => {
    using place = openPlace();
    place.write('tool/inner/x', '');
    make(join(place.folder, 'project', 'tool', 'inner'));
    const suite = suiteWith(place, 'x', profile({ folders: { '/opt/tool': 'tool' } }));
    expect(await enqueue(place, suite)).toMatchObject({ exitCode: 2, stderr: expect.stringMatching(why) });
  });
});

test('a pipe, a link or a device in the queue is no batch, and holds nobody up', () => {
  using place = openPlace();
  mkdirSync(place.dataFolder, { mode: 0o700 });
  const queue = (name: string) => join(place.dataFolder, name);
  makePipe(queue('pipe'));
  symlinkSync('/dev/zero', queue('zero'));
  place.write('outside.json', '{"version":1,"prompt":"","plan":{"cases":[1],"variants":[]}}');
  symlinkSync(join(place.folder, 'project', 'outside.json'), queue('link'));
  const module = new URL('../../src/agent/daemon/ticket.ts', import.meta.url).href;
  const read = `const { readTicket } = await import(process.argv[1]);
    try { readTicket(process.argv[2]); } catch (error) { console.log(error.code, error.hint); }`;
  const said = (name: string) =>
    execFileSync(process.execPath, ['--input-type=module', '-e', read, module, queue(name)], {
      timeout: 30_000,
      encoding: 'utf8',
    });
  expect(said('pipe')).toMatch(/^TICKET_BAD .*a pipe/);
  expect(said('zero')).toMatch(/^TICKET_BAD .*a device/);
  expect(said('link')).toMatch(/^TICKET_BAD .*outside/);
});
