import { describe, expect, test } from 'vitest';
import type { CaseTests } from '../../src/suite/case-tests.ts';
import type { TrialSpec, TrialStep } from '../../src/trial/spec.ts';
import { meanOf, scriptStep, scriptTests } from './script-tests.ts';
import { bench, sharedBench } from './shared-bench.ts';

sharedBench();

function tests(script: string, byName: Record<string, number> = {}): CaseTests {
  return scriptTests(script, { thresholds: { byName, required: true } });
}

const reward = (value: number | string) => `echo ${value} > /logs/verifier/reward.txt`;

function step(name: string, script: string, change: Partial<TrialStep> = {}): TrialStep {
  const own = { prompt: `do ${name}`, variables: { instruction: name }, tests: tests(script) };
  return scriptStep(name, script, { ...own, ...change });
}

/** A trial of these steps, in each of which the harness runs the same script. */
function trial(run: string, list: TrialStep[], change: Partial<NonNullable<TrialSpec['steps']>> = {}) {
  const [first] = list;
  const steps = { ...meanOf(list), ...change };
  return bench.trial(run, { steps, prompt: first?.prompt ?? '', variables: first?.variables ?? {} });
}

const scores = ({ judgments = [] }: Awaited<ReturnType<typeof trial>>) =>
  Object.fromEntries(judgments.map(({ name, score }) => [name, score]));

const file = (path: string, content: string) => ({ path, content: Buffer.from(content), mode: 0o644 });

describe.concurrent('the steps of a trial', () => {
  test('share one sandbox, each with its own instruction, files, setup and tests', async () => {
    const run = 'echo "$OFFSITE_PROMPT, $(cat $OFFSITE_PROMPT_FILE), $instruction" >> said';
    const result = await trial(run, [
      step('first', `cat said; ${reward(1)}`, { artifacts: ['said'] }),
      step('second', `cat said data/given set; ls; ${reward(1)}`, {
        files: [file('data/given', 'from the step\n'), file('setup.sh', 'echo ready > set; rm "$0"')],
        setup: 'setup.sh',
        healthcheck: { command: 'test -e set', interval: 100, timeout: 5_000, startPeriod: 0, retries: 2 },
        artifacts: ['said'],
      }),
    ]);
    expect(result.cause).toBeUndefined();
    expect(result.verdict).toBe('passed');
    const [one, two] = (result.validations ?? []).map(({ name, logs }) => [name, logs?.[0]?.value?.text]);
    expect(one).toEqual(['first: tests', 'do first, do first, first\n']);
    expect(two).toEqual([
      'second: tests',
      'do first, do first, first\ndo second, do second, second\nfrom the step\nready\ndata\nsaid\nset\n',
    ]);
    expect(result.phases.map(({ name, step }) => [step, name])).toEqual([
      [undefined, 'sandbox'],
      ...['first', 'second'].flatMap((name) =>
        ['sandbox', 'harness', 'collect', 'validate'].map((phase) => [name, phase]),
      ),
    ]);
    expect(result.steps).toMatchObject([
      { name: 'first', verdict: 'passed', rewards: { reward: 1 }, harness: { ended: 'exited' } },
      { name: 'second', verdict: 'passed', rewards: { reward: 1 } },
    ]);
    expect(result.artifacts?.map(({ path, byteSize }) => [path, byteSize > 0])).toEqual([
      ['steps/first/said', true],
      ['steps/second/said', true],
      ['.offsite/trajectory.jsonl', true],
    ]);
    expect(result.subject?.prompt).toBe('do first\n\ndo second');
    expect(result.trajectory?.length).toBe(2);
  });

  test('are rewarded by their mean, in which a reward that a step lacks counts as 0', async () => {
    const json = (value: string) => `echo '${value}' > /logs/verifier/reward.json`;
    const list = [step('a', json('{"x": 1, "y": 0.5}')), step('b', json('{"x": 0.5}'))];
    const [mean, final] = await Promise.all([
      trial('true', list, { thresholds: { default: 0.75, byName: { y: 0.25 } } }),
      trial('true', list, { strategy: 'final' }),
    ]);
    expect(mean.verdict).toBe('passed');
    expect(scores(mean)).toEqual({ x: 0.75, y: 0.25, 'a: x': 1, 'a: y': 0.5, 'b: x': 0.5 });
    expect(final.verdict).toBe('failed');
    expect(final.judgments?.[0]).toEqual({
      name: 'x',
      evaluator: 'the last step',
      score: 0.5,
      threshold: 1,
    });
  });

  test('end after one that is below what the next needs, or that lacks the reward', async () => {
    const second = step('second', reward(1));
    const [low, lacking, enough] = await Promise.all([
      trial('true', [step('first', '', { tests: tests(reward(0.4), { reward: 0.5 }) }), second]),
      trial('true', [step('first', '', { tests: tests(reward(1), { speed: -5 }) }), second]),
      trial('true', [step('first', '', { tests: tests(reward(0.5), { reward: 0.5 }) }), second], {
        thresholds: { default: 0.75, byName: {} },
      }),
    ]);
    expect(low.verdict).toBe('failed');
    expect(low.steps).toMatchObject([{ name: 'first', verdict: 'failed' }, { name: 'second' }]);
    expect(low.steps?.[1]).toEqual({ name: 'second' });
    expect(low.validations?.[0]?.message).toBe('reward is 0.4, below 0.5');
    expect(lacking.verdict).toBe('failed');
    expect(lacking.validations?.[0]?.message).toBe('speed is missing, below -5');
    expect(lacking.steps?.[1]).toEqual({ name: 'second' });
    expect(enough.verdict).toBe('passed');
  });

  test('give no verdict if the tests of one give no reward in an untouched sandbox either', async () => {
    const result = await trial('true', [step('first', reward(1)), step('second', 'echo broken')]);
    expect(result.verdict).toBe('void');
    expect(result.cause).toMatchObject({ kind: 'grading', output: 'broken\n' });
    expect(result.cause?.message).toMatch(/^step second: the tests gave no reward/);
    const windows = await trial('true', [step('first', 'cd /\r\necho 1 > /logs/verifier/reward.txt\r')]);
    expect(windows.cause?.message).toMatch(/lines of \/tests\/test\.sh end with CR LF/);
    expect(scores(result)).toEqual({ reward: 1, 'first: reward': 1 });
  });

  test.each([
    ['setup', { files: [file('setup.sh', 'echo no; exit 3')], setup: 'setup.sh' }, /setup\.sh exited with 3/],
    [
      'healthcheck',
      { healthcheck: { command: 'false', interval: 10, timeout: 5_000, startPeriod: 0, retries: 2 } },
      /the healthcheck failed 2 times/,
    ],
  ])(
    'a %s that always fails is the fault of the case, in the first step and later',
    async (_, change, message) => {
      const [first, later] = await Promise.all([
        trial('true', [step('first', reward(1), change)]),
        trial('true', [step('first', reward(1)), step('second', reward(1), change)]),
      ]);
      expect([first.verdict, first.cause?.kind]).toEqual(['void', 'task']);
      expect([later.verdict, later.cause?.kind]).toEqual(['void', 'task']);
      for (const { cause } of [first, later]) expect(cause?.message).toMatch(message);
      expect(later.judgments?.length).toBeGreaterThan(0);
    },
  );
});

describe.concurrent('steps whose tests run in a fresh sandbox', () => {
  test('get the artifacts of their step, and the next step runs in the sandbox of the agent', async () => {
    const fresh = {
      environment: undefined,
      brought: {
        kind: 'artifacts' as const,
        artifacts: [{ path: '/work', exclude: [] }],
        sealed: ['/tests', '/logs/verifier'],
      },
    };
    const separate = (script: string) => ({ tests: { ...tests(script), fresh } });
    const result = await trial('mkdir -p /work; echo "$OFFSITE_PROMPT" >> /work/said; echo > /etc/mine', [
      step('first', '', separate(`cat /work/said; ls /etc/mine; ${reward(1)}`)),
      step('second', `cat /work/said; ls /etc/mine; ${reward(1)}`),
      step('third', '', separate(`cat /work/said; ls /etc/mine; ${reward(1)}`)),
    ]);
    expect(result.cause).toBeUndefined();
    expect(result.verdict).toBe('passed');
    const printed = result.validations?.map(({ logs }) => logs?.[0]?.value?.text);
    const missing = "ls: cannot access '/etc/mine': No such file or directory\n";
    expect(printed).toEqual([
      `do first\n${missing}`,
      'do first\ndo second\n/etc/mine\n',
      `do first\ndo second\ndo third\n${missing}`,
    ]);
    expect(result.validatedIn).toBe('fresh');
  });
});

describe.concurrent('an agent in the steps of a trial', () => {
  test('sees neither earlier tests nor what they wrote', async () => {
    const look = 'find / -xdev \\( -name secret -o -name test.sh -o -name reward.txt -o -name note \\)';
    const run = `${look} -not -path "/usr/*" -not -path "/proc/*" 2>/dev/null >> found; ls -A /tests /logs/* >> found`;
    const secret = { ...tests(`echo > /logs/artifacts/note; ${reward(1)}`) };
    secret.files.push(file('/tests/deep/secret', 'x'));
    const first = step('first', '', { tests: secret, emptied: ['/logs/artifacts'] });
    const second = step('second', `cat found; ${reward(1)}`, { emptied: ['/logs/artifacts'] });
    const result = await trial(run, [first, second]);
    expect(result.cause).toBeUndefined();
    const said = result.validations?.[1]?.logs?.[0]?.value?.text ?? '';
    expect(said).not.toMatch(/secret|test\.sh|reward\.txt|note/);
    expect(said).toMatch(/\/tests:\n/);
  });

  test('cannot lead to another folder what the next step empties', async () => {
    const run = '[ -e /data ] || { mkdir /etc/cache; touch /etc/cache/kept; ln -s /etc /data; }';
    const look = 'ls -A /etc/cache /data/cache; stat -c %F /data';
    const list = [
      step('first', reward(1)),
      step('second', `${look}; ${reward(1)}`, { emptied: ['/data/cache'] }),
    ];
    const result = await trial(run, list);
    expect(result.cause).toBeUndefined();
    const printed = result.validations?.[1]?.logs?.[0]?.value?.text;
    expect(printed).toBe('/data/cache:\n\n/etc/cache:\nkept\ndirectory\n');
  });

  test('keeps no process from one step to the next', async () => {
    const run = 'pgrep -cx sleep >> counts; setsid sleep 1000 & disown';
    const result = await trial(run, [step('first', reward(1)), step('second', `cat counts; ${reward(1)}`)]);
    expect(result.validations?.[1]?.logs?.[0]?.value?.text).toMatch(/^(\d)\n\1\n$/);
  });

  test.each([
    ['breaks the next setup', 'rm -f /usr/bin/bash /bin/bash'],
    ['removes what every program needs', 'rm -rf /lib /lib64 /usr/lib'],
    ['puts a file in place of the workspace', 'cd /; rm -rf /workspace; echo > /workspace'],
    ['removes the workspace', 'cd /; rm -rf /workspace; false'],
    ['puts files and links in place of what the step brings', 'echo > data; ln -s /etc setup.sh'],
  ])('never gets a trial without a verdict: it %s', async (_, run) => {
    const next = {
      files: [file('data/given', ''), file('setup.sh', 'test -f data/given')],
      setup: 'setup.sh',
    };
    const alive = tests(`[ -e data/given ]; ${reward(1)}`);
    const result = await trial(run, [
      step('first', reward(1)),
      step('second', '', { ...next, tests: alive }),
    ]);
    expect(result.verdict, result.cause?.message).not.toBe('void');
    if (result.verdict === 'failed') expect(result.cause?.kind).toBe('agent');
  });
});
