import { mkdirSync, writeFileSync } from 'node:fs';
import { cp, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { beforeAll, expect, test } from 'vitest';
import { parse, stringify } from 'yaml';
import { runners } from '../../runners/index.ts';
import type { SandboxRuntime, UsedRuntime } from '../../src/doctor/checks/engine-content.ts';
import { attacksOf, hostileFolder, hostileSuites } from '../../src/doctor/deep/conformance.ts';
import { runHostile } from '../../src/doctor/deep/look-deep.ts';
import {
  configWith,
  countsOf,
  filesWithKey,
  newPlantedKey,
  printedHostile,
  rowOf,
} from '../../src/doctor/deep/outcome.ts';
import { unmetWishes } from '../../src/engine/capabilities.ts';
import { ConfigFile } from '../../src/suite/config-file.ts';
import { loadConfig } from '../../src/suite/load-config.ts';
import { loadSuite } from '../../src/suite/load-suite.ts';
import { plainText } from '../../src/text/output.ts';
import { offsite } from '../cli/offsite.ts';
import { openPlace, type Place } from '../cli/place.ts';
import { testEngine } from '../engine/engine-fixture.ts';

/** One or two of each suite; `npm run test:hostile` runs them all. */
const representative = [
  'same-grep-replaced',
  'null-device-folder',
  'checker-in-opt',
  'work-writes-verdict',
  'result-is-pipe',
  'sockets',
  'other-token',
  'connections-reset',
  'protected-test',
  'python-cache-at-home',
  'npm-install-folder',
];

/** Milliseconds for it; a busy machine may need many. */
const longest = 900_000;

const all = hostileSuites.flatMap((suite) => attacksOf(suite));

/** The runtime of the engine's sandboxes. If it has no filter of system calls, they do without. */
let used: UsedRuntime;
beforeAll(async () => {
  await using engine = await testEngine();
  const { capabilities } = engine;
  const mayLackFilter = unmetWishes({}, capabilities).length > 0;
  used = { runtime: undefined, name: capabilities.defaultRuntime, mayLackFilter };
});

test('the hostile suites are good suites, and say of each case what it should come to', () => {
  const suiteFolder = hostileFolder();
  const config = loadConfig({ suiteFolder, env: {} });
  for (const suite of hostileSuites) {
    const { cases } = loadSuite(join(suiteFolder, `${suite}.yaml`), config, runners);
    expect(attacksOf(suite).length).toBe(cases.length);
  }
  const count = (kind: string) => all.filter((attack) => attack.kind === kind).length;
  expect(count('forge')).toBeGreaterThanOrEqual(60);
  expect(count('honest')).toBeGreaterThanOrEqual(30);
  expect(new Set(all.map(({ id }) => id)).size).toBe(all.length);
  expect(all.filter(({ id }) => representative.includes(id)).length).toBe(representative.length);
});

test('a representative part of the attacks is held, and of the honest agents passes', {
  timeout: longest,
}, async () => {
  const report = await runHostile({
    chosen: ({ id }) => representative.includes(id),
    used,
    env: process.env,
    engine: undefined,
    signal: AbortSignal.timeout(longest),
  });
  expect(report.rows.filter(({ broke }) => broke !== undefined)).toEqual([]);
  expect(report.rows.filter(({ id }) => id !== undefined).length).toBe(representative.length);
  expect(report.held).toBe(true);
});

test('an Offsite that ends without results counts as a crash for every attack', async () => {
  const report = await runHostile({
    chosen: ({ id }) => ['mounts', 'namespaces'].includes(id),
    used: { ...used, name: 'runc' },
    env: process.env,
    engine: { host: 'unix:///nonexistent/docker.sock' },
    signal: AbortSignal.timeout(60_000),
  });
  expect(report.rows.map(({ id, seen }) => [id, seen])).toEqual([
    ['mounts', 'nothing'],
    ['namespaces', 'nothing'],
    [undefined, 'exit code 3'],
    [undefined, 'none'],
    [undefined, 'nowhere'],
  ]);
  expect(report.held).toBe(false);
  expect(report.counts.crashes).toBe(3);
});

test("attacks on the machine's own kernel are left out where sandboxes may have another, and the report says so", async () => {
  const report = await runHostile({
    chosen: ({ id }) => ['namespaces', 'kernel-calls'].includes(id),
    used: { runtime: 'runsc', name: 'runsc', mayLackFilter: true },
    env: process.env,
    engine: undefined,
    signal: AbortSignal.timeout(60_000),
  });
  const reason = "attacks on the machine's own kernel; with the runtime runsc, sandboxes may have another";
  expect(report.rows.slice(0, 2)).toMatchObject([
    { id: 'namespaces', expected: 'passed', seen: 'not run', reason },
    { id: 'kernel-calls', expected: 'passed', seen: 'not run', reason },
  ]);
  expect(report.held).toBe(true);
  expect(plainText(printedHostile(report)).split(`\nnot run: ${reason}\n`).length).toBe(2);
});

test('all sandboxes of the suites have the runtime that is examined, and lack the filter only if they may', async () => {
  const text = await readFile(join(hostileFolder(), 'offsite.yaml'), 'utf8');
  const { sandboxes } = parse(text) as { sandboxes: Record<string, object> };
  const on = (runtime: SandboxRuntime) => parse(configWith(runtime, text));
  expect(on({ runtime: undefined, mayLackFilter: false })).toEqual(parse(text));
  const engine = { host: 'tcp://gpu-1:2376', certificates: '/etc/offsite/gpu-1' };
  const configured = configWith({ runtime: undefined, mayLackFilter: false, engine }, text);
  expect(ConfigFile.parse(parse(configured)).engines).toEqual([{ name: 'engine', ...engine }]);
  const changes = { runtime: 'runsc', seccomp: 'if-available' };
  expect(on({ runtime: 'runsc', mayLackFilter: true })).toEqual({
    ...parse(text),
    sandboxes: Object.fromEntries(
      Object.entries(sandboxes).map(([name, sandbox]) => [name, { ...sandbox, ...changes }]),
    ),
  });
});

interface WrittenSuite {
  variants: Record<string, unknown>[];
  cases: Record<string, unknown>[];
}

/** A hostile case with other parts, in a project of its own. */
async function changedCase(place: Place, suite: string, id: string, changes: Record<string, unknown>) {
  const folder = join(place.folder, 'hostile');
  await cp(hostileFolder(), folder, { recursive: true });
  const file = join(folder, `${suite}.yaml`);
  const written = parse(await readFile(file, 'utf8')) as WrittenSuite;
  const cases = written.cases.filter((one) => one.id === id).map((one) => ({ ...one, ...changes }));
  await writeFile(file, stringify({ ...written, cases }));
  const config = join(folder, 'offsite.yaml');
  await writeFile(config, configWith(used, await readFile(config, 'utf8')));
  return { file, config };
}

test('the agent that looks for addresses sees that it is in a sandbox with a network', async () => {
  using place = openPlace();
  const { file, config } = await changedCase(place, 'escape', 'addresses', {});
  const text = await readFile(config, 'utf8');
  await writeFile(config, text.replace('network: none', 'network: open'));
  const { stdout } = await offsite(place, ['run', file, '--json']);
  expect(JSON.parse(stdout)).toMatchObject({ passed: 0, failed: 1 });
});

test('the agent that looks for answers finds one that lies in the sandbox', async () => {
  using place = openPlace();
  const { file } = await changedCase(place, 'leak', 'answers-in-sandbox', {
    prepare: 'echo hidden-answer-4711 > /srv/forgotten.txt',
  });
  const { stdout } = await offsite(place, ['run', file, '--json']);
  expect(JSON.parse(stdout)).toMatchObject({ passed: 0, failed: 1 });
});

test("the machine's key is found in whatever form a file of the data folder holds it", async () => {
  using place = openPlace();
  const key = newPlantedKey();
  mkdirSync(join(place.dataFolder, 'blobs'), { recursive: true });
  const write = (name: string, text: string) => writeFileSync(join(place.dataFolder, name), text);
  write('plain', `a key: ${key}`);
  write('blobs/encoded', Buffer.from(`x${key}`).toString('base64'));
  write('other', newPlantedKey());
  expect((await filesWithKey(place.dataFolder, key)).toSorted()).toEqual(['blobs/encoded', 'plain']);
});

test('the table says what did not hold, and passes on no command for a terminal', () => {
  const held = { suite: 'forge-verify', id: 'a', attack: 'replace a', expected: 'failed', seen: 'failed' };
  const broken = { ...held, id: 'b', attack: 'replace b', seen: 'passed', broke: 'forged' as const };
  const rows = [held, { ...broken, reason: 'seen\u001b[2J\u202e' }];
  const text = plainText(printedHostile({ rows, held: false, counts: countsOf(rows) }));
  expect(text).toBe(
    [
      'suite         attack     expected  seen',
      'forge-verify  replace a  failed    failed',
      'forge-verify  replace b  failed    passed  forged',
      '',
      'forge-verify b: forged: replace b',
      '  seen\\u{1b}[2J\\u{202e}',
      '',
      'forged 1, escaped 0, leaked 0, crashes 0, false accusations 0, without a verdict 0',
    ].join('\n'),
  );
});

test('what is not as expected counts under the name of what it is', () => {
  const attack = (kind: 'forge' | 'escape' | 'leak' | 'crash' | 'honest', expected: 'passed' | 'failed') => ({
    suite: 'escape' as const,
    id: kind,
    name: kind,
    deep: false,
    isOfMachineKernel: false,
    kind,
    expected,
  });
  const rows = [
    rowOf(attack('forge', 'failed'), 'passed', undefined),
    rowOf(attack('forge', 'failed'), 'failed', undefined),
    rowOf(attack('forge', 'failed'), 'void', undefined),
    rowOf(attack('escape', 'passed'), 'failed', undefined),
    rowOf(attack('leak', 'passed'), 'failed', undefined),
    rowOf(attack('crash', 'passed'), 'void', undefined),
    rowOf(attack('honest', 'passed'), 'failed', undefined),
    rowOf(attack('honest', 'passed'), 'nothing', undefined),
  ];
  expect(countsOf(rows)).toEqual({
    forged: 1,
    escaped: 1,
    leaked: 1,
    crashes: 2,
    'false accusations': 1,
    'without a verdict': 1,
  });
});
