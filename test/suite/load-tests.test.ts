import { chmodSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { loadConfig } from '../../src/suite/load-config.ts';
import { loadSuite } from '../../src/suite/load-suite.ts';
import { eachFolder, folder, write } from '../each-folder.ts';
import { anyHarness } from './any-harness.ts';
import { problemsOf } from './problems-of.ts';

eachFolder();

function load(one: string) {
  const suite = `suite: { id: s, prompt: go }\nvariants: [{ model: none, harness: any }]\ncases:\n  - id: a\n${one}`;
  return loadSuite(write('suite.yaml', suite), loadConfig({ suiteFolder: folder, env: {} }), [anyHarness]);
}

const problems = (one: string) => problemsOf(() => load(one));

const rewards = 'rewards: { json: /logs/verifier/reward.json, text: /logs/verifier/reward.txt }';

test('tests and a solution with files are read', () => {
  chmodSync(write('t/test.sh', 'x'), 0o755);
  write('t/data/a', 'a');
  write('s/solve.sh', 's');
  const { local } =
    load(`    tests: { folders: { /tests: t }, files: { /tests/b: t/data/a }, command: [bash, /tests/test.sh], timeout: 20s, threshold: { x: 0.5 }, ${rewards} }
    solution: { folders: { /solution: s }, command: [bash, /solution/solve.sh], env: { A: b } }
    environment: { writable: [/logs/agent], timeouts: { build: 2m } }
`).cases[0] ?? {};
  expect(local?.tests).toEqual({
    files: [
      { path: '/tests/data/a', content: Buffer.from('a'), mode: 0o644 },
      { path: '/tests/test.sh', content: Buffer.from('x'), mode: 0o755 },
      { path: '/tests/b', content: Buffer.from('a'), mode: 0o644 },
    ],
    emptied: ['/tests', '/logs/verifier'],
    command: ['bash', '/tests/test.sh'],
    env: {},
    user: undefined,
    timeoutMs: 20_000,
    reading: { kind: 'reward-files', json: '/logs/verifier/reward.json', text: '/logs/verifier/reward.txt' },
    thresholds: { default: 1, byName: { x: 0.5 } },
  });
  expect(local?.oracle).toEqual({
    files: [{ path: '/solution/solve.sh', content: Buffer.from('s'), mode: 0o644 }],
    command: ['bash', '/solution/solve.sh'],
    env: { A: 'b' },
  });
  expect(local?.solution).toBeUndefined();
  expect(local?.environment).toMatchObject({
    files: [{ path: '/logs/agent', folder: true, mode: 0o777 }],
    timeouts: { build: 120_000 },
  });
});

test('tests are refused with their place', () => {
  write('t/test.sh', 'x');
  expect(problems(`    tests: { command: [a], prints: pytest, ${rewards} }\n`)).toMatch(
    /suite\.yaml:5:\d+: cases\[0\]\.tests: expected rewards, prints or named, one of them/,
  );
  expect(problems('    tests: { command: [a], prints: pytest }\n    verify: "true"\n')).toContain(
    'cases[0].tests: replaces verify and validator',
  );
  for (const path of ['/', '/etc', '/usr', '/proc/x', 'tests', '/a/../etc'])
    expect(problems(`    tests: { command: [a], prints: pytest, folders: { "${path}": t } }\n`)).toContain(
      'cases[0].tests.folders',
    );
  for (const path of ['/passwd', '/etc/passwd', '/tmp/x'])
    expect(
      problems(`    tests: { command: [a], prints: pytest, files: { "${path}": t/test.sh } }\n`),
    ).toContain('its folder would be emptied');
  expect(problems('    tests: { command: [a], prints: pytest, folders: { /tests: none } }\n')).toContain(
    'cases[0].tests.folders: none: ',
  );
  symlinkSync('/etc/hostname', join(folder, 't/link'));
  expect(problems('    tests: { command: [a], prints: pytest, folders: { /tests: t } }\n')).toContain(
    "outside the suite's folder",
  );
});
