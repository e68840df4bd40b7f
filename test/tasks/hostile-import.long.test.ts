import {
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { loadConfig } from '../../src/suite/load-config.ts';
import { loadSuite } from '../../src/suite/load-suite.ts';
import type { PlannedCase } from '../../src/suite/plan.ts';
import type { TasksSource } from '../../src/suite/tasks-source.ts';
import { importTasks } from '../../src/tasks/import/import-tasks.ts';
import { planTasks } from '../../src/tasks/plan-tasks.ts';
import { wholePatch } from '../../src/tasks/swe-bench/row.ts';
import { anyHarness } from '../suite/any-harness.ts';
import { openTaskSet, type TaskSetFolder } from './task-set.ts';

let set: TaskSetFolder;
/** Holds the folder that is written to, and what must not be written to. */
let around: string;
let out: string;
beforeEach(() => {
  set = openTaskSet();
  around = mkdtempSync(join(tmpdir(), 'offsite-import-'));
  out = join(around, 'suite');
});
afterEach(() => {
  set[Symbol.dispose]();
  rmSync(around, { recursive: true });
});

const parts = { except: [], images: {}, keys: undefined };

function imported(source: Partial<TasksSource> = {}, folder = out) {
  return importTasks(
    { path: set.folder, ...source },
    { ...parts, folder, force: true, variants: [{ harness: 'any', model: 'none', sandbox: 'local' }] },
  );
}

function loaded(suite = join(out, 'suite.yaml')): PlannedCase[] {
  return loadSuite(suite, loadConfig({ suiteFolder: out, env: {} }), [anyHarness]).cases;
}

const row = {
  instance_id: 'one',
  repo: 'org/repo',
  base_commit: 'abc',
  problem_statement: 'It fails.',
  patch: 'diff a',
  test_patch: '',
  FAIL_TO_PASS: ['a'],
  PASS_TO_PASS: [] as string[],
};

function writeRows(...rows: Record<string, unknown>[]): string {
  return set.write('rows.jsonl', rows.map((each) => `${JSON.stringify({ ...row, ...each })}\n`).join(''));
}

test('nothing is written through a link that a task has, whatever paths its files have', () => {
  const victim = join(around, 'victim');
  mkdirSync(victim);
  set.harbor('shop', {
    'environment/docker-compose.yaml': [
      'services:',
      '  main: { build: . }',
      '  db:',
      '    image: debian',
      '    volumes: ["./conf:/etc/conf"]',
      '    configs: [{ source: planted, target: /etc/conf/way/planted }]',
      'configs: { planted: { content: "evil" } }',
    ].join('\n'),
    'environment/conf/plain': 'x',
  });
  set.link('shop/environment/conf/way', victim);
  expect(imported().imported).toEqual(['shop']);
  expect(readdirSync(victim)).toEqual([]);
  const [service] = loaded()[0]?.local.environment.services ?? [];
  expect(service?.files?.find(({ path }) => path === '/etc/conf/way/planted')).toMatchObject({
    content: Buffer.from('evil'),
  });
});

test('links stay links, and are never followed', () => {
  set.harbor('one', { 'environment/a': 'a' });
  set.link('one/environment/out', '/etc/passwd');
  set.link('one/environment/up', '../../../..');
  imported();
  for (const name of ['out', 'up'])
    expect(lstatSync(join(out, 'cases/one/environment', name)).isSymbolicLink()).toBe(true);
  rmSync(join(set.folder, 'one/environment/out'));
  set.link('one/tests/out', '/etc/passwd');
  expect(() => imported()).toThrow("is a link that leads out of the task's folder");
});

test('a link in the place of a case is replaced, and not written through', () => {
  const victim = join(around, 'victim');
  mkdirSync(victim);
  writeFileSync(join(victim, 'mine'), 'mine');
  mkdirSync(join(out, 'cases'), { recursive: true });
  symlinkSync(victim, join(out, 'cases/one'));
  symlinkSync(join(victim, 'mine'), join(out, 'suite.yaml'));
  set.harbor('one');
  imported();
  expect(readdirSync(victim)).toEqual(['mine']);
  expect(readFileSync(join(victim, 'mine'), 'utf8')).toBe('mine');
  expect(loaded()).toHaveLength(1);
});

test('the tasks themselves are never removed to make place for the suite', () => {
  const place = join(set.folder, 'cases');
  set.harbor('cases/one');
  expect(() => imported({ path: place }, set.folder)).toThrow('belongs to the tasks themselves');
  expect(existsSync(join(place, 'one/task.toml'))).toBe(true);
  const context = join(out, 'build');
  mkdirSync(context, { recursive: true });
  writeFileSync(join(context, 'Dockerfile'), 'FROM debian\n');
  const build = { context, dockerfile: 'Dockerfile', args: {} };
  expect(() => imported({ path: writeRows({}), build })).toThrow('belongs to the tasks themselves');
  expect(existsSync(join(context, 'Dockerfile'))).toBe(true);
});

test('whatever the id of a task is, its files are below the folder of the suite', () => {
  const ids = [
    '../../victim',
    '/etc/victim',
    '..',
    '.',
    'a/b',
    'a_b',
    'A_B',
    'suite.yaml',
    '-rf',
    '__proto__',
    'a\nb',
    'a\u001b[2Jb',
    'a\u202eb',
    '%2e%2e',
    'C:\\x',
    'x'.repeat(200),
    '- id: other',
    '*a',
    '!!str',
  ];
  const path = writeRows(...ids.map((instance_id) => ({ instance_id })));
  const { imported: done, leftOut } = imported({ path, image: 'debian' });
  expect(leftOut).toEqual([]);
  expect(done).toEqual(ids);
  expect(loaded().map(({ request }) => request.id)).toEqual(ids);
  expect(readdirSync(around)).toEqual(['suite']);
  expect(readdirSync(out).toSorted()).toEqual(['cases', 'suite.yaml']);
  expect(readdirSync(join(out, 'cases'))).toHaveLength(ids.length);
  for (const name of readdirSync(join(out, 'cases'))) expect(name).toMatch(/^[\w@+-][\w.@+-]{0,110}$/);
});

/** What means something to YAML, to Offsite or to a terminal. */
const words = [
  '---',
  '...',
  '%YAML 1.1',
  '&a',
  '*a',
  '<<',
  '!!js/function',
  '!!binary',
  '? ',
  ': ',
  '- ',
  '# no',
  '|',
  '>-',
  '{{instruction}}',
  '{{',
  '\\{{x}}',
  "'",
  '"',
  '\\',
  '\\u202e',
  '`',
  '$(x)',
  '~',
  'null',
  'yes',
  '1e3',
  '0o7',
  '\n',
  '\n\n',
  '\r\n',
  '\r',
  '\t',
  ' ',
  '  \n',
  '\u0085',
  '\u2028',
  '\u2029',
  '\ufeff',
  '\u0000',
  '\u001b[2J',
  '\u202e',
  '\u2066',
  '\u{e0041}',
  '\u200b',
  '\ufffd',
  '\u{1f600}',
  'é',
  '__proto__',
  'a',
];
const text = fc
  .array(fc.oneof({ weight: 4, arbitrary: fc.constantFrom(...words) }, fc.string({ unit: 'binary' })), {
    minLength: 1,
    maxLength: 12,
  })
  .map((some) => some.join(''))
  .filter((some) => some.trim() !== '' && some.isWellFormed() && !some.includes('\0'));

test('a text is the same after it was written and read, and none deceives the eye', () => {
  fc.assert(
    fc.property(text, fc.array(text, { maxLength: 5 }), text, (statement, names, patch) => {
      const named = { FAIL_TO_PASS: names, PASS_TO_PASS: ['x', ...names] };
      const path = writeRows({ problem_statement: statement, patch, ...named });
      imported({ path, image: 'debian', test: { parser: 'pytest', command: `echo ${statement}` } });
      const [{ request, local } = { request: undefined, local: undefined }] = loaded();
      expect(request?.variables).toEqual({ instruction: statement });
      expect(local?.tests?.command.at(-1)).toBe(`echo ${statement}`);
      expect(local?.tests?.reading).toMatchObject({ failToPass: names, passToPass: ['x', ...names] });
      expect(local?.oracle?.files).toMatchObject([{ content: Buffer.from(wholePatch(patch)) }]);
      const written = readFileSync(join(out, 'suite.yaml'), 'utf8');
      // biome-ignore lint/suspicious/noControlCharactersInRegex: those that must not be there
      expect(written).not.toMatch(/[\u2028-\u202e\u2066-\u2069\u{e0000}-\u{e007f}\u001b\u0000]/u);
    }),
    { numRuns: 150, examples: [['\u0001', ['\r\n \n\n\u0001\u0001\u0001'], '---']] },
  );
});

test('names that objects of JavaScript have are names like others', () => {
  const environment = '{ "__proto__": a, constructor: b, toString: c }';
  set.harbor('one', {
    'environment/docker-compose.yaml': `services:\n  main: { build: . }\n  db:\n    image: debian\n    environment: ${environment}\n`,
  });
  imported();
  const { cases } = planTasks({ path: set.folder }, parts);
  const envOf = ([one]: PlannedCase[]) => Object.entries(one?.local.environment.services?.[0]?.env ?? {});
  expect(envOf(loaded())).toEqual(envOf(cases));
  expect(envOf(cases)).toContainEqual(['constructor', 'b']);
});

test('a task whose suite could not be read again is left out, and the others are written', () => {
  const long = 'a line of text\n'.repeat(7000);
  const steps = (count: number) => ({
    'task.toml': Array.from({ length: count }, (_, index) => `[[steps]]\nname = "s${index}"\n`).join(''),
    'instruction.md': null,
    ...Object.fromEntries(
      Array.from({ length: count }, (_, index) => [
        `steps/s${index}/instruction.md`,
        count > 100 ? 'x' : long,
      ]),
    ),
  });
  set.harbor('large', steps(60));
  set.harbor('many', steps(101));
  set.harbor('small');
  const { imported: done, leftOut } = imported();
  expect(done).toEqual(['small']);
  expect(leftOut.map(({ id, reasons: [reason] }) => [id, reason?.message])).toEqual([
    ['large', expect.stringContaining('as a suite, it has more than 4 MiB')],
    ['many', expect.stringMatching(/as a suite, cases\[0\]\.steps: .*100/)],
  ]);
  expect(readdirSync(join(out, 'cases'))).toEqual(['small']);
  expect(loaded()).toHaveLength(1);
});

test('cases whose texts do not fit into one file are written as several suites', () => {
  const instruction = 'a line of text\n'.repeat(7000);
  for (let index = 0; index < 45; index++) set.harbor(`task-${index}`, { 'instruction.md': instruction });
  const { suites } = imported();
  expect(suites).toHaveLength(2);
  expect(suites.flatMap((suite) => loaded(suite)).map(({ request }) => request.variables)).toEqual(
    Array.from({ length: 45 }, () => ({ instruction })),
  );
});

test('a file whose path is too long here leaves its task out, with the reason', () => {
  const deep = Array.from({ length: 15 }, () => 'd'.repeat(250)).join('/');
  set.harbor('deep', { [`tests/${deep}/file`]: 'x' });
  set.harbor('good');
  const far = join(around, ...Array.from({ length: 3 }, () => 'o'.repeat(200)));
  const { imported: done, leftOut } = imported({}, far);
  expect(done).toEqual(['good']);
  expect(leftOut).toMatchObject([
    { id: 'deep', reasons: [{ message: expect.stringContaining('its name is too long') }] },
  ]);
  expect(readdirSync(join(far, 'cases'))).toEqual(['good']);
});
