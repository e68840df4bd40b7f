import { expect, test } from 'vitest';
import { offsite, trustOfThisMachine } from '../cli/offsite.ts';
import { openPlace } from '../cli/place.ts';

const modern = `import sys, pathlib
assert sys.version_info[:2] == (3, 13), sys.version
pathlib.Path('made.txt').write_text('by Python 3.13')
`;

const validator = `import assert from 'node:assert/strict';
import { validate } from 'offsite/validator';
validate('it was made', async ({ read }) => assert.equal(await read('made.txt'), 'by Python 3.13'));
`;

test('`base-image --python 3.13` makes an image in which agents, tests and validators run', async () => {
  using place = openPlace();
  const made = await offsite(place, ['engine', 'base-image', '--python', '3.13'], {
    dataFolder: null,
    env: await trustOfThisMachine(),
  });
  expect(made.exitCode, made.stderr).toBe(0);
  expect(made.stdout).toMatch(/^offsite\/base:python3\.13 = offsite\/base:\w{12} /);

  place.write('check.ts', validator);
  place.write('make.py', modern);
  const file = place.suite({
    sandbox: { image: 'offsite/base:python3.13', network: 'none' },
    run: 'python3 make.py',
    cases: [
      {
        id: 'python',
        environment: { files: { 'make.py': 'make.py' } },
        verify: 'test "$(cat made.txt)" = "by Python 3.13"\npytest --version\nnode --version',
        validator: { file: 'check.ts', manifest: ['it was made'] },
      },
    ],
  });
  const ran = await offsite(place, ['run', file, '--json']);
  expect(JSON.parse(ran.stdout), ran.stderr).toMatchObject({ passed: 1, failed: 0, void: 0 });
}, 900_000);

test('an image of this name is never pulled, and the message says how to make it', async () => {
  using place = openPlace();
  const cases = [{ id: 'a', verify: 'true' }];
  const file = place.suite({
    sandbox: { image: 'offsite/base:python2.7' },
    cases,
    config: { advanced: { pull: 'always' } },
  });
  const ran = await offsite(place, ['run', file]);
  expect(ran.stderr).toMatch(
    /the engine has no image offsite\/base:python2\.7.*Build it: offsite engine base-image/s,
  );
  expect(ran.stderr).not.toContain('pulled');
});
