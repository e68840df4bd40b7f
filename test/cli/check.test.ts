import { afterEach, beforeEach, expect, test } from 'vitest';
import { offsite } from './offsite.ts';
import { openPlace, type Place } from './place.ts';

let place: Place;
beforeEach(() => {
  place = openPlace();
});
afterEach(() => place[Symbol.dispose]());

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
