import { truncateSync } from 'node:fs';
import { expect, test } from 'vitest';
import { loadConfig } from '../../src/suite/load-config.ts';
import { loadSuite } from '../../src/suite/load-suite.ts';
import { eachFolder, folder, write } from '../each-folder.ts';
import { anyHarness } from './any-harness.ts';
import { problemsOf } from './problems-of.ts';

eachFolder();

function load(one: string, prompt = '{{instruction}}') {
  const suite =
    `suite: { id: s, prompt: "${prompt}" }\nartifacts: ["*.log"]\n` +
    `variants: [{ model: none, harness: any }]\ncases:\n  - id: a\n${one}`;
  return loadSuite(write('suite.yaml', suite), loadConfig({ suiteFolder: folder, env: {} }), [anyHarness]);
}

const problems = (...given: Parameters<typeof load>) => problemsOf(() => load(...given));

const rewards = 'rewards: { json: /logs/verifier/reward.json, text: /logs/verifier/reward.txt }';
const graded = `tests: { command: [t], ${rewards} }`;

test('steps are read, with what the case has for all of them', () => {
  write('one.md', 'Do {{this}}.');
  write('w/setup.sh', 'true');
  write('s/solve.sh', 's');
  const { request, local } =
    load(`    agent: { user: worker, hosts: [a.example] }
    artifacts: [out]
    overall: { rewards: final, threshold: 0.5 }
    steps:
      - { name: one, instruction: { file: one.md }, ${graded} }
      - name: two
        instruction: Then that.
        empties: [/logs/agent]
        folders: { .: w }
        setup: ./setup.sh
        agent: { skills: /skills }
        timeout: 90s
        tests: { command: [t], ${rewards}, threshold: { reward: 0.25 } }
        artifacts: [more]
        artifactsExcept: ["*.o"]
        solution: { command: [bash, /s/solve.sh], folders: { /s: s } }
`).cases[0] ?? {};
  expect(request?.variables).toEqual({ instruction: 'Do {{this}}.\n\nThen that.' });
  expect(local?.tests).toBeUndefined();
  const { list: [one, two] = [], ...steps } = local?.steps ?? {};
  expect(steps).toEqual({ strategy: 'final', thresholds: { default: 0.5, byName: {} } });
  expect(one).toMatchObject({
    name: 'one',
    instruction: 'Do {{this}}.',
    files: [],
    emptied: [],
    agent: { user: 'worker', network: { hosts: ['a.example'] } },
    tests: { command: ['t'], thresholds: { byName: {}, required: true } },
    artifacts: ['*.log', 'out'],
  });
  expect(two).toMatchObject({
    name: 'two',
    emptied: ['/logs/agent'],
    setup: './setup.sh',
    agent: { skills: '/skills' },
    files: [{ path: 'setup.sh', content: Buffer.from('true') }],
    timeoutMs: 90_000,
    tests: { thresholds: { byName: { reward: 0.25 }, required: true } },
    artifacts: ['*.log', 'out', 'more'],
    artifactsExcept: ['*.o'],
    oracle: { files: [{ path: '/s/solve.sh' }] },
  });
  expect(two?.agent.user).toBeUndefined();
});

test('fresh tests are read: what they get, and where they run', () => {
  write('t.patch', 'diff --git a/t b/t\n');
  write('names.json', '["t::a", "t::b\\n"]');
  const testsOf = (tests: string) => load(`    tests: ${tests}\n`, 'go').cases[0]?.local.tests;
  expect(
    testsOf(
      `{ in: fresh, command: [t], ${rewards}, environment: { image: debian, workdir: /w }, ` +
        'brings: [/app, { path: /srv, except: ["*.o"] }], files: { /tests/t: t.patch } }',
    )?.fresh,
  ).toMatchObject({
    environment: {
      image: { name: 'debian', place: expect.stringMatching(/suite\.yaml:6:\d+$/) },
      workdir: '/w',
    },
    brought: {
      kind: 'artifacts',
      artifacts: [
        { path: '/app', exclude: [] },
        { path: '/srv', exclude: ['*.o'] },
      ],
      sealed: ['/tests', '/logs/verifier'],
    },
  });
  expect(
    testsOf(
      '{ in: fresh, brings: workspace, patch: { source: { file: t.patch }, base: abc }, restored: [conftest.py], ' +
        'command: [t], named: { parser: junit, failToPass: { file: names.json } } }',
    ),
  ).toMatchObject({
    emptied: ['/logs/verifier'],
    reading: {
      kind: 'named-tests',
      parser: 'junit',
      report: '/logs/verifier/report.xml',
      failToPass: ['t::a', 't::b\n'],
      passToPass: [],
    },
    fresh: {
      brought: {
        kind: 'workspace',
        testPatch: 'diff --git a/t b/t\n',
        base: 'abc',
        restored: ['conftest.py'],
      },
    },
  });
  expect(testsOf('{ in: fresh, brings: workspace, command: [t], prints: pytest }')?.fresh?.brought).toEqual({
    kind: 'workspace',
    testPatch: '',
    base: 'HEAD',
    restored: [],
  });
});

test.each([
  [`{ brings: [/a], ${rewards} }`, 'tests.brings: requires in: fresh'],
  [`{ environment: { image: a }, ${rewards} }`, 'tests.environment: requires in: fresh'],
  [`{ in: fresh, ${rewards} }`, 'tests.in: requires brings'],
  [`{ in: fresh, brings: [a], ${rewards} }`, 'tests.brings[0]: expected an absolute path'],
  [`{ in: fresh, brings: [/], ${rewards} }`, 'tests.brings[0]: expected an absolute path'],
  [`{ in: fresh, brings: [/a/../etc], ${rewards} }`, 'tests.brings[0]: expected an absolute path'],
  [`{ in: fresh, brings: workspace, sealed: [/a], ${rewards} }`, 'tests.sealed: requires paths in brings'],
  [`{ in: fresh, brings: [/a], restored: [a], ${rewards} }`, 'tests.restored: requires brings: workspace'],
  [
    `{ in: fresh, brings: workspace, patch: { source: a, base: --help }, ${rewards} }`,
    'tests.patch.base: expected a commit',
  ],
  [
    `{ in: fresh, brings: workspace, restored: [a/b], ${rewards} }`,
    'tests.restored[0]: expected the name of',
  ],
  ['{ named: { failToPass: { file: none.json } } }', 'tests.named.failToPass: none.json: '],
  ['{ named: { failToPass: { file: bad.json } } }', 'bad.json:1:1: expected a list of names in JSON'],
  ['{ named: { failToPass: [a], report: /etc/x } }', 'tests.named.report: its folder would be emptied'],
  ['{ named: { failToPass: [a] }, prints: pytest }', 'tests: expected rewards, prints or named, one of them'],
])('tests that contradict themselves are refused at their place: %s', (tests, message) => {
  write('bad.json', '{"a": 1}');
  const messages = problems(`    tests: ${tests.replace('{', '{ command: [t],')}\n`, 'go');
  expect(messages).toMatch(/^(suite\.yaml:6:|bad)/);
  expect(messages).toContain(message);
});

test('steps are refused at their place', () => {
  const steps = (...more: string[]) =>
    problems(
      `    steps: [{ name: one, instruction: go, ${graded}${more.map((each) => `, ${each}`).join('')} }]\n`,
    );
  expect(steps('setup: setup.sh')).toContain('cases[0].steps[0].setup: is none of the files of this step');
  expect(steps('empties: [/etc]')).toContain('cases[0].steps[0].empties[0]: a folder of the system');
  expect(steps('folders: { ../x: w }')).toContain(
    'cases[0].steps[0].folders["../x"]: expected a path without ..',
  );
  expect(steps('files: { /etc/x: w }')).toContain(
    'cases[0].steps[0].files["/etc/x"]: expected a path in the workspace',
  );
  expect(steps('folders: { .: none }')).toMatch(/suite\.yaml:6:\d+: cases\[0\]\.steps\[0\]\.folders: none: /);
  expect(problems('    overall: { rewards: mean }\n    verify: "true"\n')).toContain(
    'overall: requires steps',
  );
  const two = `    steps:\n      - { name: a, instruction: b, ${graded} }\n      - { name: a, instruction: b, ${graded} }\n`;
  expect(problems(two)).toMatch(
    /suite\.yaml:8:\d+: cases\[0\]\.steps\[1\]\.name: "a" is already used by cases\[0\]\.steps\[0\]/,
  );
  const one = two.split('\n').slice(0, 2).join('\n');
  expect(problems(`${one}\n    verify: "true"\n`)).toContain(
    'cases[0].verify: has no place in a case with steps',
  );
  expect(problems(`${one}\n    ${graded}\n`)).toContain('cases[0].tests: has no place in a case with steps');
  expect(problems(`${one}\n    variables: { instruction: x }\n`)).toContain(
    'cases[0].variables.instruction: ',
  );
  expect(problems(`${one}\n`, 'go')).toMatch(/suite\.yaml:1:\d+: suite\.prompt: has no \{\{instruction\}\}/);
  for (const name of ['a/b', '..'])
    expect(problems(two.replace('name: a', `name: ${name}`))).toContain(
      'steps[0].name: expected a name without',
    );
});

test('the files of all steps together have one bound', () => {
  for (let index = 0; index < 5; index++) truncateSync(write(`big/${index}`, ''), 16 * 1024 ** 2 - 1);
  const step = (name: string) =>
    `      - { name: ${name}, instruction: go, tests: { command: [t], prints: pytest, folders: { /tests: big } } }\n`;
  expect(problems(`    steps:\n${step('a')}${step('b')}`)).toMatch(
    /steps\[1\]\.tests\.folders: big: .* larger than 128 MiB together/,
  );
});
