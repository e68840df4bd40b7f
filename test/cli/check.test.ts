import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { eachPlace, place } from './each-place.ts';
import { offsiteHere as offsite, start } from './offsite.ts';

eachPlace();

test('a suite is checked with the variables of this machine that its sandboxes get in a run', async () => {
  const suite = place.suite({
    sandbox: { passEnv: ['ANSWER'] },
    cases: [{ id: 'passed-on', solution: 'echo "$ANSWER" > out.txt', verify: 'grep -qx forty-two out.txt' }],
  });
  const { exitCode, stdout, stderr } = await offsite(place, ['check', suite], {
    env: { ANSWER: 'forty-two' },
  });
  expect(stderr).toContain('passed-on: ok');
  expect(exitCode, stdout).toBe(0);
});

test('the variables of a case replace their names in its solution', async () => {
  const suite = place.suite({
    cases: [
      { id: 'a', variables: { file: 'a b.txt' }, solution: 'touch "{{file}}"', verify: 'test -e "{{file}}"' },
    ],
  });
  const { exitCode, stdout, stderr } = await offsite(place, ['check', suite]);
  expect(stderr).toContain('a: ok');
  expect(exitCode, stdout).toBe(0);
});

test('a suite that would give a sandbox a key is refused before any grading', async () => {
  const suite = place.suite({
    sandbox: { passEnv: ['OFFSITE_API_KEY'] },
    cases: [{ id: 'a', verify: 'true' }],
  });
  const { exitCode, stderr } = await offsite(place, ['check', suite], {
    env: { OFFSITE_API_KEY: 'key-12345678' },
  });
  expect(exitCode).toBe(2);
  expect(stderr).toMatch(/the sandbox "local" asks for the variable OFFSITE_API_KEY/);
});

test('a check shows whole lines of what should not have failed, and in one line why untouched work fails', async () => {
  const long = `AssertionError: expected ${'nothing '.repeat(60)}but got the end`;
  const suite = place.suite({
    cases: [
      { id: 'sound', solution: 'touch done', verify: 'echo "looking for done"; test -e done' },
      { id: 'broken', solution: 'true', verify: `echo "${long}"; exit 1` },
    ],
  });
  const { exitCode, stdout } = await offsite(place, ['check', suite]);
  expect(exitCode, stdout).toBe(1);
  expect(stdout).toMatch(/^sound +untouched +failed +verify: .* exited 1: looking for done$/m);
  expect(stdout, 'what should fail does not hide what should not').not.toContain('untouched, printed');
  expect(stdout).toContain(`broken, solved, printed:\n│ ${long}\n`);
  expect(stdout).toMatch(/\n1 of 2 cases is not sound: broken\s*$/);
  const all = await offsite(place, ['check', suite, '--include', 'broken', '--output']);
  expect(all.stdout).toContain(`broken, untouched and solved, printed:\n│ ${long}\n`);
});

test('a check of sound cases ends with one line that says so, and with no output of what failed as it should', async () => {
  const verify = 'echo "looking for done"; test -e done';
  const suite = place.suite({ cases: ['a', 'b'].map((id) => ({ id, solution: 'touch done', verify })) });
  const { exitCode, stdout } = await offsite(place, ['check', suite]);
  expect(exitCode, stdout).toBe(0);
  expect(stdout).toMatch(/\n2 of 2 cases are sound\s*$/);
  expect(stdout).not.toContain('│');
  place.suite({ cases: [{ id: 'c', verify }] });
  const unproven = await offsite(place, ['check', suite, '--output']);
  expect(unproven.stdout).toContain('c, untouched, printed:\n│ looking for done\n');
  expect(unproven.stdout).toMatch(/\n1 fails untouched, but no solution shows that it can pass: c\s*$/);
});

test('a verify that bash cannot read is not ok, although it fails untouched', async () => {
  const suite = place.suite({ cases: [{ id: 'broken', verify: 'test -e out.txt\nif test -e; then fi\n' }] });
  const { exitCode, stdout, stderr } = await offsite(place, ['check', suite]);
  expect(exitCode, stderr).toBe(1);
  expect(stderr).toContain('broken: NOT OK');
  expect(stdout).toContain('verify: if test -e; then fi cannot be read by bash: syntax error');
});

test('a pattern of protected files that matches none is told', async () => {
  const suite = place.suite({
    cases: [
      {
        id: 'a',
        prepare: 'mkdir tests; touch tests/one.txt',
        protected: ['tests/**', 'test/**'],
        solution: 'touch out.txt',
        verify: 'echo "looking for it"; test -e out.txt',
      },
    ],
  });
  const { exitCode, stdout } = await offsite(place, ['check', suite]);
  expect(exitCode, stdout).toBe(0);
  expect(stdout).toContain('a: protected: no file of the prepared workspace matches test/**\n');
});

test.each(['5', '0s', '25h', 'soon'])('%s is no time for a case', async (time) => {
  const { exitCode, stderr } = await offsite(place, ['check', 'suite.yaml', '--case-timeout', time]);
  expect(exitCode).toBe(2);
  expect(stderr).toContain('expected a duration such as 90s, 10m or 2h, up to 24h.');
});

test('a check that is stopped writes what it has found, and what has no result', async () => {
  const quick = { id: 'quick', solution: 'touch done', verify: 'test -e done' };
  const suite = place.suite({ cases: [quick, { ...quick, id: 'slow', verify: 'sleep 600' }] });
  const junit = join(place.folder, 'check.xml');
  const running = start(place, ['check', suite, '-c', '1', '--junit', junit]);
  await running.printed(/quick: ok/);
  running.kill('SIGTERM');
  const { exitCode, stderr } = await running.ended;
  expect(exitCode, stderr).toBe(130);
  const xml = readFileSync(junit, 'utf8');
  expect(xml).toContain('<testsuite name="quick" tests="2" failures="0" errors="0" skipped="0">');
  expect(xml).toContain('<testsuite name="slow" tests="2" failures="0" errors="0" skipped="2">');
  const skipped = [...xml.matchAll(/name="(\w+)">\s*<skipped message="([^"]*)"\/>/g)];
  expect(skipped.map(([, state, why]) => [state, why])).toEqual([
    ['untouched', 'has no result: interrupted by SIGTERM'],
    ['solved', 'did not begin: interrupted by SIGTERM'],
  ]);
});

test('a file for results that cannot be written is refused before any grading', async () => {
  const suite = place.suite({ cases: [{ id: 'a', verify: 'true' }] });
  const { exitCode, stderr } = await offsite(place, ['check', suite, '--junit', 'gone/check.xml']);
  expect(exitCode).toBe(2);
  expect(stderr).toContain('there is no folder gone');
});
