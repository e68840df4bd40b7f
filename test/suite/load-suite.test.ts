import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { loadConfig } from '../../src/suite/load-config.ts';
import { startRequest } from '../../src/suite/plan.ts';
import { eachFolder, folder, write } from '../each-folder.ts';
import { load, model, problems, variants } from './load-in-folder.ts';

eachFolder();

describe('a good suite', () => {
  test('becomes a request with its files read, and keeps what is local', () => {
    write('cases/a/check.ts', 'export {};\n');
    write('cases/a/data/expected.json', '{}');
    const plan = load(`
suite: { id: s, prompt: "do {{task}}" }
trials: 3
${variants}
artifacts: ["*.log"]
cases:
  - id: a
    variables: { task: it }
    verify: test -f x
    validator:
      file: cases/a/check.ts
      manifest: [first, second]
      sourceFiles: [cases/a/data/expected.json]
    artifacts: [out/**]
`);
    expect(startRequest(plan)).toEqual({
      suite: { id: 's', name: 's', prompt: 'do {{task}}' },
      cases: [
        {
          id: 'a',
          name: 'a',
          source: { kind: 'empty' },
          tags: [],
          variables: { task: 'it' },
          verify: 'test -f x',
          validator: {
            name: 'check.ts',
            source: 'export {};\n',
            capture: true,
            manifest: [
              { index: 0, name: 'first' },
              { index: 1, name: 'second' },
            ],
            sourceFiles: [{ path: 'data/expected.json', content: '{}' }],
          },
        },
      ],
      variants: [
        { model: 'none', credentials: { harnessConnectionId: 'command', sandboxConnectionId: 'local' } },
      ],
      trials: 3,
      local: true,
    });
    expect(plan.cases[0]?.local.artifacts).toEqual(['*.log', 'out/**']);
    expect(plan.variants[0]?.profile.run).toBe('true');
  });

  test('is sent with what its missing fields mean', () => {
    const plan = load(
      `suite: { id: s, prompt: p }\n${variants}cases: [{ id: a, validator: { source: x } }]\n`,
    );
    expect(startRequest(plan).cases).toEqual([
      {
        id: 'a',
        name: 'a',
        source: { kind: 'empty' },
        tags: [],
        variables: {},
        validator: { name: 'validator', source: 'x', capture: true, manifest: [], sourceFiles: [] },
      },
    ]);
  });

  test('takes connection ids from the configuration', () => {
    const plan = load(
      `suite: { id: s, prompt: p }\n${variants}cases: [{ id: a, verify: "true" }]\n`,
      'profiles: { p: { run: "true" } }\nconnections: { harness: { command: conn_1 } }\n',
    );
    expect(plan.variants[0]?.credentials).toEqual({
      harnessConnectionId: 'conn_1',
      sandboxConnectionId: 'local',
    });
  });

  test('names its prompt as one that the service holds', () => {
    const plan = load(
      `suite: { id: s, prompt: { prompt: fix, channel: stable } }\n${variants}cases: [{ id: a, verify: "true" }]\n`,
    );
    expect(plan.suite.prompt).toEqual({ kind: 'stored', id: 'fix', channel: 'stable', version: undefined });
  });
});

describe('a malformed suite', () => {
  test('has all problems of its keys and values first, and then those of what they name', () => {
    const suite = (verify: string) => `suite: { id: s, prompt: p }
${variants}cases:
  - { id: a, ${verify}: "true" }
  - { id: b, verify: "echo {{nope}}" }
  - { id: b, verify: "true" }
judges: [nobody]
`;
    expect(problems(suite('verfy'))).toEqual([
      'suite.yaml:4:14: cases[0].verfy: unknown key; did you mean "verify"?',
    ]);
    expect(problems(suite('verify'))).toEqual([
      expect.stringMatching(/^suite\.yaml:5:14: cases\[1\]\.verify: \{\{nope\}\} is not a variable/),
      'suite.yaml:6:7: cases[2].id: "b" is already used by cases[1]',
      expect.stringMatching(/^suite\.yaml:7:10: judges\[0\]: "nobody" is not a model/),
    ]);
  });

  test('needs judges if a validator asks one', () => {
    const source = (text: string) => JSON.stringify(`export default async (v) => {\n${text}\n};`);
    const suite = (text: string) =>
      `suite: { id: s, prompt: p }\n${variants}cases: [{ id: a, validator: { source: ${source(text)} } }]\n`;
    expect(problems(suite('await v.judge({ rubric: "good" });'))).toEqual([
      expect.stringMatching(
        /^suite\.yaml:3:\d+: cases\[0\]\.validator: asks a judge, and the suite has none/,
      ),
    ]);
    const own = 'const judge = (of) => of.good;\njudge({ good: true });';
    expect(load(suite(own)).cases).toHaveLength(1);
    expect(load(suite('// v.judge({}) later\nv.check("a", true);')).cases).toHaveLength(1);
  });

  test('needs a model for a simulated user, and a harness that can continue', () => {
    const suite = (variant: string) =>
      `suite: { id: s, prompt: p }\nvariants: [{ model: m, ${variant} }]\ncases: [{ id: c, verify: "true", user: { kind: simulated, goal: tea } }]\njudges: [m]\n`;
    const config =
      'profiles: { p: { run: "true" } }\nmodels: { m: { wire: openai-chat, baseUrl: "http://127.0.0.1:1" } }\n';
    expect(problems(suite('harness: chat'), config)).toEqual([
      'suite.yaml:3:34: cases[0].user: variants[0] has no userModel to play this user',
    ]);
    expect(problems(suite('harness: command, profile: p, userModel: m'), config)).toEqual([
      expect.stringContaining('takes one message only'),
    ]);
    const plan = load(suite('harness: chat, userModel: m'), config);
    expect(plan.judges).toEqual(['m']);
    expect(plan.cases[0]?.request.user).toEqual({ kind: 'simulated', goal: 'tea', prompt: '' });
    expect(plan.cases[0]?.local).toMatchObject({ userTurns: 10, runsIn: 'fresh', onError: 'void' });
  });

  test('refuses a program as the validator of the agent’s own sandbox, which has only what the agent left to start it with', () => {
    const validator = (source: string) =>
      `suite: { id: s, prompt: p }\n${variants}cases: [{ id: a, validator: { runsIn: same, source: "${source}" } }]\n`;
    expect(problems(validator('#!/bin/sh\\nexit 0'))).toEqual([
      expect.stringMatching(/^suite\.yaml:\d+:\d+: cases\[0\]\.validator\.runsIn: .*make it a module/),
    ]);
    expect(load(validator('import 1')).cases).toHaveLength(1);
  });

  test.each([
    ['chat', 'none-such', '', 'is not a model of'],
    ['chat', 'claude', 'sandboxes: { local: { network: none } }', 'which it cannot reach with network none'],
    ['chat', 'claude', '', undefined],
    [
      'command',
      'none-such',
      '',
      'suite.yaml:3:7: variants[0].model: "none-such" is not a model of offsite.yaml',
    ],
    ['command', 'none', '', undefined],
    ['bash', 'none', '', '"none" is not a model of'],
    ['bash', 'claude', '', undefined],
    ['chat', 'both', '', undefined],
    ['chat', 'other-name', '', undefined],
  ])('%s on model %s %s: %s', (harness, model, more, expected) => {
    const profile = harness === 'command' ? 'profile: p' : '';
    const suite = `suite: { id: s, prompt: p }\nvariants:\n  - { model: ${model}, harness: ${harness}, ${profile} }\ncases: [{ id: c, verify: "true" }]\n`;
    const config = `profiles: { p: { run: "true" } }\nmodels:\n  claude: { wire: anthropic-messages, baseUrl: "http://127.0.0.1:1" }\n  both: { wire: [anthropic-messages, openai-chat], baseUrl: "http://127.0.0.1:1", aliases: [other-name] }\n${more}\n`;
    if (expected === undefined) expect(load(suite, config).variants).toHaveLength(1);
    else expect(problems(suite, config)).toEqual([expect.stringContaining(expected)]);
  });

  test.each([
    ['stream: codx', 'command', '2:21', 'stream', /"codx" is not a stream .*known are codex, jsonl$/],
    ['stream: codex, trajectory: none', 'command', '2:36', 'trajectory', /codex reports the commands/],
    ['trajectory: wire', 'command', '2:21', 'trajectory', /no model traffic .*the variant has no model/],
    ['stream: jsonl', 'bash', '2:8', 'stream', /the bash harness reports .* only command uses this$/],
  ])('has no profile with %s that cannot be honoured', (keys, harness, place, key, message) => {
    const run = harness === 'command' ? 'run: "true", ' : '';
    const config = `profiles:\n  p: { ${run}${keys} }\n${harness === 'bash' ? model : ''}`;
    const named = harness === 'bash' ? 'm' : 'none';
    const suite = `suite: { id: s, prompt: p }\nvariants:\n  - { model: ${named}, harness: ${harness}, profile: p }\ncases: [{ id: a, verify: "true" }]\n`;
    const [found = '', ...others] = problems(suite, config).map((text) => text.replaceAll(`${folder}/`, ''));
    expect(others).toEqual([]);
    expect(found).toContain(`variants[0].profile: offsite.yaml:${place}: profiles.p.${key}: `);
    expect(found).toMatch(message);
  });

  test('has no script whose lines end with CR LF, which bash would not read as it looks', () => {
    write('windows.sh', 'test -e done\r\ntrue\r\n');
    write('mixed.sh', 'cat << END\nfor Windows\r\nEND\n');
    const windows = '{ file: windows.sh }';
    const config = `profiles: { p: { run: ${windows} } }\n`;
    const suite = (keys: string, profile = '') =>
      `suite: { id: s, prompt: p }\nvariants: [{ model: none, harness: command, ${profile} }]\ncases: [{ id: a, ${keys} }]\n`;
    const ends = 'lines end with CR LF, and bash reads the CR as part of a command: save it with LF';
    const checked = { verify: '', prepare: 'verify: "true", ', solution: 'verify: "true", ' };
    for (const [key, before] of Object.entries(checked))
      expect(problems(suite(`${before}${key}: ${windows}`))).toContainEqual(
        expect.stringContaining(`cases[0].${key}: windows.sh: its ${ends}`),
      );
    expect(problems(suite('verify: "true"', 'profile: p'), config)).toContainEqual(
      expect.stringContaining(`profiles.p.run: its ${ends}`),
    );
    expect(problems(suite('verify: { file: mixed.sh }'))).not.toContainEqual(
      expect.stringContaining('CR LF'),
    );
  });

  test('names an unknown variable in the file that has it, at its line', () => {
    write('prepare.sh', 'set -e\necho {{who}}\n');
    expect(
      problems(
        `suite: { id: s, prompt: "{{what}}" }\n${variants}cases: [{ id: a, verify: "true", prepare: { file: prepare.sh } }]\n`,
      ),
    ).toEqual([
      'prepare.sh:2:6: {{who}} is not a variable; write \\{{ for literal braces',
      'suite.yaml:1:17: suite.prompt: {{what}} is not a variable in case a; write \\{{ for literal braces',
    ]);
  });
});

test('what most machines leave as it is stands under `advanced`; its old place is still read, and named', () => {
  const read = (yaml: string) => loadConfig({ named: write('advanced.yaml', yaml), env: {} });
  const now = read('advanced: { lease: 5s, workspaces: { budget: 0 }, caBundle: a.pem }');
  expect(now).toMatchObject({ lease: 5_000, workspaces: { budget: 0 }, pull: 'missing', moved: [] });
  expect(now.caBundle).toBe(join(folder, 'a.pem'));
  const before = read('lease: 5s\nimages: { "debian:12": offsite/base }');
  expect(before).toMatchObject({ lease: 5_000, images: { 'debian:12': 'offsite/base' } });
  expect(before.moved).toEqual(['images', 'lease']);
  expect(() => read('lease: 5h')).toThrow('advanced.yaml:1:1: lease: expected a duration from 1s to 1h');
  expect(() => read('qqqqq: 1')).toThrow(/expected service, engine, (?!.*lease)/);
});

test('a configuration is found beside the suite, or above it in its repository', () => {
  const file = write('offsite.yaml', 'concurrency: 3');
  const suiteFolder = join(folder, 'evals/deep');
  mkdirSync(suiteFolder, { recursive: true });
  const env = { XDG_CONFIG_HOME: folder };
  expect(loadConfig({ suiteFolder, env }).file).not.toBe(file);
  mkdirSync(join(folder, '.git'));
  expect(loadConfig({ suiteFolder, env })).toMatchObject({ file, concurrency: 3 });
  const own = write('evals/offsite.yaml', 'concurrency: 2');
  expect(loadConfig({ suiteFolder, env })).toMatchObject({ file: own, concurrency: 2 });
});

test('a configuration that is named but missing is an error', () => {
  expect(() => loadConfig({ named: join(folder, 'no.yaml'), env: {} })).toThrow(/does not exist/);
});

test('sizes and durations are read in their units', () => {
  write('offsite.yaml', 'sandboxes: { big: { memory: 1.5g, timeouts: { harness: 90s } } }\n');
  const { sandboxes } = loadConfig({ suiteFolder: folder, env: {} });
  expect(sandboxes.big).toMatchObject({
    memory: 1.5 * 1024 ** 3,
    network: 'model',
    timeouts: { harness: 90_000, verify: 600_000 },
  });
});

test('what is wrong with a check or a judge is said where it stands', () => {
  const suite = (parts: string) =>
    `suite: { id: s, prompt: p }\n${variants}cases:\n  - { id: a, ${parts} }\n`;
  const wrong: [string, string | RegExp][] = [
    ['checks: [{ file: /etc/passwd }]', 'cases[0].checks[0].file: expected a path in the workspace'],
    ['checks: [{ file: a/../../b }]', 'cases[0].checks[0].file: expected a path in the workspace'],
    ['checks: [{ file: a, contains: "{{b}}" }]', 'cases[0].checks[0].contains: {{b}} is not a variable'],
    ['checks: [{ file: a, matches: "(" }]', /checks\[0\]\.matches: Invalid regular expression/],
    [
      'checks: [{ file: a, absent: true, equals: b }]',
      'cases[0].checks[0].absent: a file that must not exist',
    ],
    ['checks: [{ json: a, at: b, equals: 1 }]', 'cases[0].checks[0].at: expected a JSON Pointer'],
    ['checks: [{ json: a }]', 'cases[0].checks[0]: says nothing about the value'],
    ['checks: [{ run: a, exitcode: 1 }]', /cases\[0\]\.checks\[0\]\.?.*exitcode/],
    ['checks: [{ file: a }], validator: { source: b }', 'cases[0].validator: replaces checks and judge'],
    [
      'validator: { source: b }, tests: { command: [b], prints: pytest }',
      /cases\[0\]\.tests: replaces verify and validator; .*checks and a judge may stand beside it/,
    ],
    [
      'checks: [{ file: a }], tests: { command: [b], prints: pytest }, environment: { workdir: /tmp }',
      /workdir: \/tmp: it has files of other programs/,
    ],
    ['judge: { rubric: r }', 'cases[0].judge.threshold'],
    ['judge: { rubric: r, threshold: 1 }', 'cases[0].judge: needs a model'],
    ['judge: [{ rubric: r, threshold: 1, model: n }]', 'cases[0].judge: "n" is not a model'],
  ];
  for (const [parts, message] of wrong) expect(problems(suite(parts)).join('\n'), parts).toMatch(message);
});
