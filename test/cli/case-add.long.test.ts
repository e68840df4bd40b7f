import { chmodSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { stringify } from 'yaml';
import { attacks } from '../hostile/hostile-text.ts';
import { makeRepository, type TestRepository } from '../suite/git/repository.ts';
import { offsite } from './offsite.ts';
import { openPlace, type Place } from './place.ts';

let place: Place;
let repository: TestRepository;
beforeEach(() => {
  place = openPlace();
  repository = makeRepository(place.folder);
});
afterEach(() => place[Symbol.dispose]());

const bare = (...args: string[]) => offsite(place, args, { dataFolder: null });
const suiteText = () => readFileSync(join(place.folder, 'evals/suite.yaml'), 'utf8');
const write = (path: string, text: string) => writeFileSync(join(place.folder, path), text);

const right = 'export const sum = (a, b) => a + b;\n';
const wrong = right.replace('+', '-');
const head =
  "import { equal } from 'node:assert';\nimport test from 'node:test';\nimport { sum } from '../sum.js';\n";
const zero = "test('zero', () => equal(sum(1, 0), 1));\n";
const adds = "test('adds', () => equal(sum(1, 2), 3));\n";
const packageJson = JSON.stringify({ type: 'module', scripts: { test: 'node --test' } });

/** A repository whose last commit repairs a program and tests it. */
function addDefectAndRepair(): { before: string } {
  const before = repository.commit({
    'package.json': packageJson,
    '.gitignore': 'evals\noffsite.yaml\ndata\n',
    'sum.js': wrong,
    'test/sum.test.js': head + zero,
  });
  repository.commit({ 'sum.js': right, 'test/sum.test.js': head + zero + adds });
  repository.git('commit', '--amend', '--quiet', '--message', 'Add, rather than subtract');
  return { before };
}

test('a case is prepared and tested as the project was before the change', async () => {
  repository.commit({
    'package.json': packageJson,
    '.gitignore': 'evals\noffsite.yaml\ndata\n',
    'sum.js': wrong,
    'test/sum.test.js': head + zero,
  });
  repository.commit({ 'sum.js': right, 'test/sum.test.js': head + zero + adds });
  const later = { type: 'module', scripts: { test: 'other' }, devDependencies: { offsite: '1.0.0' } };
  repository.commit({ 'package.json': JSON.stringify(later), 'package-lock.json': '{}' });
  await bare('init', '--yes', '--model-ports', '9');
  const added = await bare('case', 'add', '--commit', 'HEAD~1', '--id', 'old');
  expect(added.exitCode, added.stderr).toBe(0);
  expect(suiteText().slice(suiteText().indexOf('id: old'))).not.toContain('npm ci');
  const now = await bare('case', 'add', '--range', 'HEAD~2..HEAD', '--id', 'now');
  expect(now.exitCode, now.stderr).toBe(0);
  expect(now.stdout).toContain('graded by `npm test`');
});

test('tests in functions are run with pytest, which unittest would not find', async () => {
  repository.commit({
    '.gitignore': 'evals\noffsite.yaml\ndata\n',
    'sum.py': 'def add(a, b):\n    return a - b\n',
    'test_sum.py': 'from sum import add\n\n\ndef test_zero():\n    assert add(1, 0) == 1\n',
  });
  repository.commit({
    'sum.py': 'def add(a, b):\n    return a + b\n',
    'test_sum.py': 'from sum import add\n\n\ndef test_zero():\n    assert add(1, 2) == 3\n',
  });
  expect(await bare('init', '--yes', '--model-ports', '9')).toMatchObject({ exitCode: 0 });
  const added = await bare('case', 'add');
  expect(added.exitCode, added.stderr).toBe(0);
  expect(added.stdout).toContain('graded by `python3 -m pytest`');
});

test('tests of unittest in a folder that is no package are found there', async () => {
  const tests = (sum: number) =>
    'import unittest\nfrom sum import add\n\n\nclass Adds(unittest.TestCase):\n' +
    `    def test_adds(self):\n        self.assertEqual(add(1, ${sum}), ${1 + sum})\n`;
  repository.commit({
    '.gitignore': 'evals\noffsite.yaml\ndata\n',
    'sum.py': 'def add(a, b):\n    return a - b\n',
    'tests/test_sum.py': tests(0),
  });
  repository.commit({ 'sum.py': 'def add(a, b):\n    return a + b\n', 'tests/test_sum.py': tests(2) });
  expect(await bare('init', '--yes', '--model-ports', '9')).toMatchObject({ exitCode: 0 });
  const both = { 'test_root.py': tests(5), 'tests/test_sum.py': tests(7) };
  repository.commit({ 'sum.py': 'def add(a, b):\n    return b + a\n', ...both });
  const inBoth = await bare('case', 'add', '--id', 'both');
  expect(inBoth.stdout).toContain('graded by `python3 -m unittest && python3 -m unittest discover tests`');
  const added = await bare('case', 'add', '--id', 'adds', '--commit', 'HEAD~1');
  expect(added.exitCode, added.stderr).toBe(0);
  expect(added.stdout).toContain('graded by `python3 -m unittest discover tests`');
  const checked = await offsite(place, ['check', 'evals/suite.yaml', '--include', 'adds']);
  expect(checked.stdout).toContain('1 of 1 case is sound');
});

test('the last commit becomes a case that is sound, and that runs when its prompt is written', async () => {
  const { before } = addDefectAndRepair();
  await bare('init', '--yes', '--model-ports', '9');
  const written = suiteText();
  const added = await bare('case', 'add');
  expect(added.exitCode, added.stderr).toBe(0);
  expect(suiteText().startsWith(written)).toBe(true);
  expect(suiteText()).toContain(`ref: ${before}`);
  expect(added.stdout).toContain('the example case `greeting` is still in evals/suite.yaml');

  const once = suiteText();
  const twice = await bare('case', 'add');
  expect(twice.exitCode).toBe(2);
  expect(twice.stderr).toMatch(
    /^error: evals\/suite\.yaml has a case of this change: add-rather-than-subtract\n {2}For a second one, name it: --id/,
  );
  expect(suiteText()).toBe(once);
  const line =
    suiteText()
      .split('\n')
      .findIndex((each) => each.includes('task: |')) + 1;

  const refused = await offsite(place, ['run', 'evals/suite.yaml']);
  expect(refused.exitCode).toBe(2);
  expect(refused.stderr).toContain(
    `evals/suite.yaml:${line}:7: cases[1].variables.task: is still a placeholder; write what the agent is asked`,
  );
  const checked = await offsite(place, ['check', 'evals/suite.yaml']);
  expect(checked.exitCode, checked.stderr + checked.stdout).toBe(0);
  expect(checked.stdout).toMatch(/add-rather-than-subtract\s+untouched\s+failed/);
  expect(checked.stdout).toMatch(/add-rather-than-subtract\s+solved\s+passed/);

  write('evals/suite.yaml', suiteText().replace(/TODO\(offsite\).*/, 'Mend sum.js.'));
  const turns = [
    { when: { anyUser: 'Mend sum.js' }, run: 'cat test/sum.test.js; sed -i "s/-/+/" sum.js' },
    { when: { anyUser: 'greeting' }, run: 'echo "hello world!" > greeting.txt' },
    { text: 'Done.' },
  ];
  write('evals/rehearsal.yaml', stringify({ turns }));
  const ran = await offsite(place, ['run', 'evals/suite.yaml', '--json']);
  expect(ran.exitCode, ran.stderr).toBe(0);
  expect(JSON.parse(ran.stdout)).toMatchObject({ passed: 2, failed: 0, void: 0 });
  // The agent saw the tests as they were before.
  const shown = await offsite(place, ['show', 'add-rather-than-subtract/rehearsal#0', '--transcript']);
  expect(shown.stdout).toContain('zero');
  expect(shown.stdout).not.toContain('adds');
});

test('a diff and a range become cases as well, and leave the repository as it is', async () => {
  const { before } = addDefectAndRepair();
  const diff = repository.git('diff', before, 'HEAD');
  repository.git('reset', '--quiet', '--hard', before);
  const objects = repository.git('count-objects', '--verbose');
  write('pr.diff', `${diff}\n`);
  await bare('init', '--yes', '--model-ports', '9');
  const ofDiff = await bare('case', 'add', '--diff', 'pr.diff', '--id', 'of-diff');
  expect(ofDiff.exitCode, ofDiff.stderr).toBe(0);
  expect(repository.git('count-objects', '--verbose')).toBe(objects);
  const ofRange = await bare('case', 'add', '--range', '..ORIG_HEAD', '--id', 'of-range');
  expect(ofRange.exitCode, ofRange.stderr).toBe(0);
  const patch = (id: string) => readFileSync(join(place.folder, 'evals/cases', id, 'solution.patch'), 'utf8');
  expect(patch('of-diff')).toBe(patch('of-range'));
  const checked = await offsite(place, ['check', 'evals/suite.yaml']);
  expect(checked.exitCode, checked.stderr + checked.stdout).toBe(0);
});

test('files with unusual names keep them', async () => {
  const names = ['-dash.js', 'a b.js', 'glob*.js', 'ä.js', 'quote".js'];
  const all = (text: string) => Object.fromEntries(names.map((name) => [name, text]));
  repository.commit({ 'package.json': packageJson, '.gitignore': 'evals\noffsite.yaml\n', ...all('1\n') });
  const tests = `import test from 'node:test';\nimport { ok } from 'node:assert';\nimport { readFileSync } from 'node:fs';
for (const name of ${JSON.stringify(names)}) test(name, () => ok(readFileSync(name, 'utf8') === '2\\n'));\n`;
  repository.commit({ ...all('2\n'), 'test/a b*.test.js': tests });
  await bare('init', '--yes', '--model-ports', '9');
  const added = await bare('case', 'add');
  expect(added.exitCode, added.stderr).toBe(0);
  const checked = await offsite(place, ['check', 'evals/suite.yaml']);
  expect(checked.exitCode, checked.stderr + checked.stdout).toBe(0);
});

describe('what cannot become a case is refused, and changes nothing:', () => {
  test.each([
    ['a first commit', ['--commit', 'HEAD~1'], 'HEAD~1 has no commit before it'],
    ['a commit that there is not', ['--commit', 'gone'], 'the repository has no commit gone'],
    ['an option of git as a commit', ['--commit', '--output=x'], 'stands where --commit has its value'],
    ['a change without tests', ['--tests', 'none/**'], 'changes no tests'],
    ['a change of tests alone', ['--tests', '**'], 'changes nothing but tests'],
    ['a diff that does not apply', ['--diff', 'sum.js'], 'sum.js does not apply to HEAD: git said'],
    ['a base without a diff', ['--base', 'HEAD'], '--base needs --diff'],
    ['two changes', ['--commit', 'HEAD', '--range', 'a..b'], 'cannot be used with'],
    ['an id that is no name', ['--id', '../../out'], 'expected a name'],
    ['a suite that there is not', ['--suite', 'gone.yaml'], 'offsite init'],
  ])('%s', async (_, args, message) => {
    addDefectAndRepair();
    await bare('init', '--yes', '--model-ports', '9');
    const before = suiteText();
    const refused = await bare('case', 'add', ...args);
    expect(refused.exitCode, refused.stdout).toBe(2);
    expect(refused.stderr).toMatch(new RegExp(message));
    expect(suiteText()).toBe(before);
    expect(existsSync(join(place.folder, 'evals/cases'))).toBe(false);
  });
});

test('a hostile repository runs nothing, and its texts stay texts', async () => {
  addDefectAndRepair();
  const ran = join(place.folder, 'ran');
  const program = join(place.folder, 'program');
  write('program', `#!/bin/sh\ntouch '${ran}'\n`);
  chmodSync(program, 0o755);
  const settings = [
    'diff.external',
    'gpg.program',
    'core.fsmonitor',
    'diff.x.textconv',
    'core.pager',
    'diff.x.command',
  ];
  for (const setting of settings) repository.git('config', setting, program);
  repository.git('config', 'log.showSignature', 'true');
  // Git makes it only if its templates do.
  mkdirSync(join(place.folder, '.git/info'), { recursive: true });
  write('.git/info/attributes', '* diff=x\n');
  const subject = `${attacks.csi}${attacks.bidi}\u0085 # x: "y" {{task}}`;
  repository.git('-c', 'core.fsmonitor=false', 'commit', '--amend', '--quiet', '--message', subject);
  await bare('init', '--yes', '--model-ports', '9');
  const added = await bare('case', 'add');
  expect(added.exitCode, added.stderr).toBe(0);
  expect(existsSync(ran)).toBe(false);
  expect(suiteText().match(/[[\p{Cc}\p{Cf}]--\n]/gv)).toBeNull();
  const checked = await offsite(place, ['run', 'evals/suite.yaml']);
  expect(checked.stderr.trim().split('\n')).toHaveLength(1);
});
