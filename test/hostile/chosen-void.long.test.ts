import { describe, expect, test } from 'vitest';
import { freshVerify } from '../../src/suite/plan.ts';
import type { TrialSpec } from '../../src/trial/spec.ts';
import { bench, sharedBench } from '../trial/shared-bench.ts';
import { validator } from '../trial/trial-bench.ts';

/** Agents that did not do the work, and would rather have no verdict than a failure. */

sharedBench();

const prepare = 'echo wrong > result; mkdir data; echo 1 > data/1';
const verify = 'grep -qx right result';
const reads =
  validator(`import { validate } from 'offsite/validator'; import assert from 'node:assert/strict';
import { readFileSync, readdirSync } from 'node:fs';
const data = readdirSync('data');
validate('the result', () => { assert.equal(readFileSync('result', 'utf8'), 'right\\n'); assert.equal(data.length, 1); });`);
const same = { ...freshVerify, in: 'same' as const };
const looks: [string, typeof freshVerify][] = [
  ['', freshVerify],
  [' where it is graded there', same],
];

describe.concurrent('an agent has failed, and is not excused,', () => {
  test.each([
    ['that leaves a pipe where the validator reads', 'rm result; mkfifo result'],
    // More than are read as a whole.
    ['that makes 25,000 files', 'cd data; seq 25000 | xargs touch'],
    ['that removes the loader of every program', 'rm -rf /lib64'],
    ['that puts a folder in the place of the null device', 'rm /dev/null; mkdir /dev/null'],
    ['that removes what the validator counts', 'rm -r data'],
    ['that replaces its workspace by a file', 'cd /; rm -r workspace; echo > workspace'],
    ['that takes away every right to its workspace', 'chmod 000 . *'],
    ['that nests folders deeper than a path may be long', 'for i in $(seq 3000); do mkdir d; cd d; done'],
    ['that leaves names that are no text', `touch $'\\xff\\xfe' $'a\\nb' ' ' -- '-rf'`],
  ])('%s', async (_, run) => {
    const limits = {
      timeouts: {
        install: 60_000,
        build: 60_000,
        prepare: 60_000,
        harness: 60_000,
        verify: 20_000,
        validator: 20_000,
      },
    };
    const [verified, validated] = await Promise.all([
      bench.trial(run, { prepare, verify }, limits),
      bench.trial(run, { prepare, validator: reads }, limits),
    ]);
    expect(verified).toMatchObject({ verdict: 'failed' });
    expect(validated).toMatchObject({ verdict: 'failed' });
  });

  test('that leaves a file of 600 MB where the validator reads, which is more than a text may have', async () => {
    const result = await bench.trial('truncate -s 600M result', { prepare, validator: reads });
    expect(result).toMatchObject({ verdict: 'failed' });
  });

  test.each([
    ['that removes the loader of every program', 'rm -rf /lib64'],
    ['that puts a folder in the place of the null device', 'rm /dev/null; mkdir /dev/null'],
  ])('%s where it is graded in its own sandbox', async (_, run) => {
    expect(await bench.trial(run, { prepare, verify, verifyPlace: same })).toMatchObject({
      verdict: 'failed',
    });
  });
});

describe.concurrent('a trial is void whose grading gives no verdict on an untouched workspace either:', () => {
  test('its validator reads what nobody made', async () => {
    const broken = validator("import { readFileSync } from 'node:fs'; readFileSync('nowhere');");
    const result = await bench.trial('echo right > result', { prepare, validator: broken });
    expect(result).toMatchObject({
      verdict: 'void',
      cause: {
        kind: 'grading',
        message: expect.stringMatching(/^the validator could not be loaded; the case is at fault/),
      },
    });
    expect(result.phases.map(({ name }) => name)).toEqual([
      'sandbox',
      'harness',
      'collect',
      'validate',
      'control',
    ]);
  });
});

describe.concurrent('protected files', () => {
  const protectedTests = {
    prepare: `${prepare}; mkdir test; echo 'exit 1 # not yet' > test/check.sh`,
    protected: ['test/**'],
  };
  const filler = 'head -c 60000000 /dev/zero > filler';

  test('are compared by their content where a large file is beside them', async () => {
    const forged = `${filler}; touch -r test/check.sh /tmp/t; echo 'exit 0 # ok now' > test/check.sh; touch -r /tmp/t test/check.sh`;
    expect(await bench.trial(forged, { ...protectedTests, verify: 'sh test/check.sh' })).toMatchObject({
      verdict: 'failed',
      validations: [{ kind: 'protected', message: expect.stringContaining('"test/check.sh"') }],
    });
  });

  test('may be touched, and lie beside large ones', async () => {
    const honest = `${filler}; touch test/check.sh; echo right > result`;
    expect(await bench.trial(honest, { ...protectedTests, verify })).toMatchObject({ verdict: 'passed' });
  });
});

describe.concurrent('an agent has failed, and Offsite goes on,', () => {
  const one = { prepare, verify };

  test.each(looks)('that makes paths too long to be read, outside its workspace%s', async (_, place) => {
    const deep = `python3 -c "
import os; os.mkdir('/opt/x'); os.chdir('/opt/x')
for _ in range(3000): os.mkdir('d' * 8); os.chdir('d' * 8)"`;
    expect(await bench.trial(deep, { ...one, verifyPlace: place })).toMatchObject({ verdict: 'failed' });
  });

  // Reading the holes would take hours.
  const besideHoles: [string, Partial<TrialSpec>][] = [
    ['', {}],
    [' beside artifacts', { artifacts: ['**'] }],
    [' beside protected files', { protected: ['data/**'] }],
    [' and has a validator', { validator: reads }],
  ];
  test.each(besideHoles)('that makes a file of 4 TB without content%s', async (_, more) => {
    const disk = { disk: 256 * 1024 ** 2 };
    const result = await bench.trial('rm -r data; truncate -s 4T big', { ...one, ...more }, disk);
    expect(result.verdict).toBe('failed');
    if ('artifacts' in more) expect(result.artifactsOmitted).toEqual(['big']);
  });

  test.each(besideHoles)('and not if its work is right beside such a file%s', async (_, more) => {
    const disk = { disk: 256 * 1024 ** 2 };
    const result = await bench.trial('echo right > result; truncate -s 4T big', { ...one, ...more }, disk);
    expect(result).toMatchObject({ verdict: 'passed' });
  });

  test('that makes a file without end where verify makes one of its own', async () => {
    const result = await bench.trial(
      `echo 'open("/usr/local/bin/tool", "r+").truncate(200 << 30)' > build.py`,
      {
        prepare: `${prepare}; touch build.py`,
        verify: 'cp /bin/true /usr/local/bin/tool\npython3 build.py',
      },
    );
    expect(result).toMatchObject({
      verdict: 'failed',
      validations: [{ kind: 'tampering', message: expect.stringContaining('/usr/local/bin/tool') }],
    });
  });

  test('that nests folders which a glob takes long to compare', async () => {
    const nested = `python3 -c "
import os
for _ in range(275): os.mkdir('test'); os.chdir('test'); os.mkdir('fixtures'); os.chdir('fixtures')
for n in range(200): open(str(n), 'w')"`;
    const began = performance.now();
    await bench.trial(nested, { ...one, protected: ['**/test/**/fixtures/**/*.json'] });
    expect(performance.now() - began).toBeLessThan(150_000);
  });
});

describe.concurrent('an honest agent', () => {
  test('is not to blame for a prepared workspace that is larger than its disk', async () => {
    const large = { prepare: `${prepare}; truncate -s 150M data/large`, verify };
    expect(await bench.trial('echo right > result', large, { disk: 100 * 1024 ** 2 })).toMatchObject({
      verdict: 'passed',
    });
  });

  test('may change a large prepared workspace a little, and verify may write beside it', async () => {
    const large = `${prepare}; head -c 100000000 /dev/urandom > data/large`;
    const result = await bench.trial(
      'echo right > result',
      { prepare: large, verify: `head -c 60000000 /dev/zero > /workspace/built\nsleep 1.5\n${verify}` },
      { disk: 128 * 1024 ** 2 },
    );
    expect(result).toMatchObject({ verdict: 'passed' });
  });

  test('may leave much beside protected files, and verify may build as much again', async () => {
    const result = await bench.trial(
      'echo right > result; head -c 60000000 /dev/zero > left',
      { prepare, protected: ['data/**'], verify: `head -c 60000000 /dev/zero > built\n${verify}` },
      { disk: 96 * 1024 ** 2 },
    );
    expect(result).toMatchObject({ verdict: 'passed' });
  });

  test('may commit, and git sees no change in the copy', async () => {
    const identity = '-c user.name=a -c user.email=a@b';
    const result = await bench.trial(`echo right > result; git add -A; git ${identity} commit -qm work`, {
      prepare: `git init -q; ${prepare}`,
      verify: `git diff-index --quiet HEAD --\n${verify}`,
    });
    expect(result).toMatchObject({ verdict: 'passed' });
  });
});
