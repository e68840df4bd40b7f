import { readFileSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { execa } from 'execa';
import { expect, test } from 'vitest';
import type { TrialRecord } from '../../src/record/trial-record.ts';
import { unittestCommand, writeSweRow } from '../trial/swe-row.ts';
import { offsite } from './offsite.ts';
import { openPlace, type Place } from './place.ts';
import { writeHarborTask, writeTaskConfig, writeTerminalBenchTask } from './task-folder.ts';

const variant = ['--variant', 'command:none', '--profile', 'worker'];
const here = ['--config', 'project/offsite.yaml'];

/** Solves what the prompt asks for, and of several steps only the first one. */
const work = [
  'case "$OFFSITE_PROMPT" in',
  '  *subtracts*) sed -i "s/a - b/a + b/" calc/add.py ;;',
  '  *first*) echo one > one; ls /tests /secret ;;',
  '  *) echo done > out; echo x > scratch.o ;;',
  'esac',
].join('\n');

const graded = (condition: string) =>
  `echo "here are $(ls)"; if ${condition}; then echo 1; else echo 0; fi > /logs/verifier/reward.txt\n`;

function writeSteps(place: Place): void {
  writeHarborTask(place, 'stepped', {
    'task.toml': [
      '[agent]\ntimeout_sec = 60\n[environment]\nmemory_mb = 256\ncpus = 1\n',
      '[[steps]]\nname = "first"\nmin_reward = 0.5\n',
      '[[steps]]\nname = "second"\nartifacts = ["/app"]\n[steps.verifier]\nenvironment_mode = "separate"\n',
    ].join(''),
    'instruction.md': null,
    'tests/test.sh': null,
    'solution/solve.sh': null,
    'steps/first/instruction.md': 'Do the first step of {{this}}.\n',
    'steps/first/tests/test.sh': graded('test -e one'),
    'steps/first/solution/solve.sh': 'echo one > one\n',
    'steps/second/instruction.md': 'Do the other step.\n',
    'steps/second/workdir/setup.sh': 'echo ready > set\n',
    'steps/second/tests/test.sh': graded('test -e one -a -e two -a -e set'),
    'steps/second/solution/solve.sh': 'echo two > two\n',
  });
}

function writeSeparate(place: Place): void {
  const toml =
    'artifacts = [{ source = "/app", exclude = ["*.o"] }]\n[agent]\ntimeout_sec = 60\n' +
    '[verifier]\nenvironment_mode = "separate"\n[environment]\nmemory_mb = 256\ncpus = 1\n';
  const script = graded('grep -qx done /app/out && ! test -e /app/scratch.o');
  writeHarborTask(place, 'fresh', { 'task.toml': toml, 'tests/test.sh': script });
  writeHarborTask(place, 'own', {
    'task.toml': toml,
    'tests/Dockerfile': 'FROM ubuntu:24.04\nCOPY test.sh /tests/\nWORKDIR /check\n',
    'tests/test.sh': script,
  });
}

/** The whole `offsite tasks import` and what it printed on stdout. */
async function imported(place: Place, format: string, path: string, ...more: string[]): Promise<string> {
  const out = `project/imported-${format}`;
  const args = ['tasks', 'import', format, path, '--out', out, ...variant, ...here, ...more];
  const { exitCode, stdout, stderr } = await offsite(place, args);
  expect(exitCode, stderr).toBe(0);
  expect(stdout).not.toContain('left out');
  return join(out, 'suite.yaml');
}

/** What the trials of a run gave, by their cases, without times and without names of this machine. */
async function outcomesOf(place: Place, ...args: string[]): Promise<Record<string, unknown>> {
  const { stdout, stderr } = await offsite(place, ['run', ...args, ...here, '--json']);
  if (stdout === '') throw new Error(stderr);
  const runs: { case: string; trials: { verdict: string; record: { path: string } }[] }[] =
    JSON.parse(stdout).runs;
  return Object.fromEntries(
    runs.map(({ case: id, trials: [trial] }) => {
      if (!trial) throw new Error(`${id} has no trial`);
      const result: TrialRecord = JSON.parse(readFileSync(trial.record.path, 'utf8'));
      const { judgments, validations = [], steps = [], artifacts = [], validatedIn } = result;
      return [
        id,
        {
          verdict: trial.verdict,
          judgments,
          validatedIn,
          validations: validations.map(({ name, status, message, logs }) => ({
            name,
            status,
            message,
            printed: logs?.[0]?.value?.text?.replaceAll(/ in [\d.]+s$/gm, ''),
          })),
          steps: steps.map(({ name, verdict, rewards }) => ({ name, verdict, rewards })),
          artifacts: artifacts.map(({ path, sha256 }) => [path, !path.startsWith('.offsite/') && sha256]),
        },
      ];
    }),
  );
}

/** What a check found, as `untouched failed, solved passed`, by the cases. */
async function checked(place: Place, ...args: string[]): Promise<Record<string, string>> {
  const { stdout, stderr } = await offsite(place, ['check', ...args, ...here, '--json']);
  if (stdout === '') throw new Error(stderr);
  const { cases } = JSON.parse(stdout) as {
    cases: { id: string; states: { state: string; verdicts: string[]; cause?: string }[] }[];
  };
  return Object.fromEntries(
    cases.map(({ id, states }) => [
      id,
      states
        .map(({ state, verdicts, cause }) => {
          const [verdict] = verdicts;
          return verdict === 'void' ? `${state} void: ${cause}` : `${state} ${verdict}`;
        })
        .join(', '),
    ]),
  );
}

const sound = 'untouched failed, solved passed';

test('imported tasks of steps, and with separate verifiers, are checked and run as the folder is', {
  timeout: 580_000,
}, async () => {
  using place = openPlace();
  writeTaskConfig(place, work);
  writeHarborTask(place, 'plain');
  writeSteps(place);
  writeSeparate(place);
  const suite = await imported(place, 'harbor', 'project/tasks');
  const expected = { fresh: sound, own: sound, plain: sound, stepped: sound };
  expect(await checked(place, suite)).toEqual(expected);
  const outcomes = await outcomesOf(place, suite);
  expect(outcomes).toEqual(await outcomesOf(place, '--tasks', 'project/tasks', ...variant));
  expect(outcomes).toMatchObject({
    fresh: { verdict: 'passed', validatedIn: 'fresh' },
    own: { verdict: 'passed', validatedIn: 'fresh' },
    plain: { verdict: 'passed', validatedIn: 'same' },
    stepped: {
      verdict: 'failed',
      judgments: [{ name: 'reward', score: 0.5 }, { name: 'first: reward', score: 1 }, { score: 0 }],
      steps: [
        { name: 'first', verdict: 'passed', rewards: { reward: 1 } },
        { name: 'second', rewards: { reward: 0 } },
      ],
    },
  });
});

test('an imported task of Terminal-Bench is checked and runs as the folder does', async () => {
  using place = openPlace();
  writeTaskConfig(place, work);
  writeTerminalBenchTask(place, 'old');
  const suite = await imported(place, 'terminal-bench', 'project/tasks');
  expect(await checked(place, suite)).toEqual({ old: sound });
  const outcomes = await outcomesOf(place, suite);
  expect(outcomes).toEqual(await outcomesOf(place, '--tasks', 'project/tasks', ...variant));
  expect(outcomes).toMatchObject({ old: { verdict: 'passed' } });
});

test('imported rows of SWE-bench are checked and run as the rows are', { timeout: 580_000 }, async () => {
  using place = openPlace();
  writeTaskConfig(place, work);
  const row = writeSweRow(join(place.folder, 'project/swe'));
  const hard = { ...row, instance_id: 'org__calc-2', problem_statement: 'Nothing to do.' };
  place.write('rows.jsonl', `${JSON.stringify(row)}\n${JSON.stringify(hard)}\n`);
  const setup = ['--build', 'project/swe', '--build-arg', 'BASE={base_commit}'];
  const tests = ['--test-parser', 'django', '--test-command', unittestCommand];
  const suite = await imported(place, 'swe-bench', 'project/rows.jsonl', ...setup, ...tests);
  expect(await checked(place, suite)).toEqual({ 'org__calc-1': sound, 'org__calc-2': sound });
  const outcomes = await outcomesOf(place, suite);
  const direct = ['--tasks', 'project/rows.jsonl', ...setup, ...tests, ...variant];
  expect(outcomes).toEqual(await outcomesOf(place, ...direct));
  expect(outcomes).toMatchObject({
    'org__calc-1': { verdict: 'passed', judgments: [{ name: 'resolved', score: 1 }] },
    'org__calc-2': { verdict: 'failed', judgments: [{ name: 'resolved', score: 0 }] },
  });
  const listed = await offsite(place, ['tasks', 'list', 'project/rows.jsonl', ...setup, ...here], {
    dataFolder: null,
  });
  expect(listed.stdout).toContain('2 tasks: 2 can run here');
});

test('rows whose images show the commit that solves them are listed as such', async () => {
  using place = openPlace();
  writeTaskConfig(place, work);
  const row = writeSweRow(join(place.folder, 'project/swe'));
  const images = {
    safe: 'true',
    open: 'git commit -q --allow-empty -m fix && git switch -q --detach HEAD~1',
  };
  const name = (kind: string) => `offsite-test/${basename(place.folder).toLowerCase()}:${kind}`;
  try {
    for (const [kind, command] of Object.entries(images)) {
      const file = join(place.folder, 'project/swe/Dockerfile');
      const recipe = readFileSync(file, 'utf8').replace('ubuntu:24.04', 'offsite/base');
      writeFileSync(file, `${recipe}RUN ${command}\n`);
      const build = ['build', '--tag', name(kind), '--build-arg', `BASE=${row.base_commit}`, '.'];
      await execa('docker', build, { cwd: join(place.folder, 'project/swe') });
    }
    const tests = ['--test-parser', 'django', '--test-command', unittestCommand];
    for (const [kind, expected] of Object.entries({ safe: [], open: ['later-commits'] })) {
      place.write('rows.jsonl', `${JSON.stringify(row)}\n`);
      const command = ['tasks', 'project/rows.jsonl', '--image', name(kind), ...tests, ...here];
      const { stdout } = await offsite(place, [...command, '--engine', '--json'], { dataFolder: null });
      const { tasks } = JSON.parse(stdout);
      expect(tasks[0].obstacles.map(({ feature }: { feature: string }) => feature)).toEqual(expected);
      if (kind === 'open')
        expect(tasks[0].obstacles[0].message).toMatch(/1 commit of \S+\.git: [0-9a-f]{12} fix/);
    }
  } finally {
    await execa('docker', ['image', 'rm', ...Object.keys(images).map(name)], { reject: false });
  }
});

test('the options for rows are the same in all commands, and are refused with what is wrong', async () => {
  using place = openPlace();
  writeTaskConfig(place, 'true');
  place.write('rows.jsonl', '{}\n');
  const rows = 'project/rows.jsonl';
  const commands = [
    ['tasks', 'list', rows, ...here],
    ['tasks', 'import', 'swe-bench', rows, '--out', 'out', ...variant, ...here],
    ['run', '--tasks', rows, ...variant, ...here],
    ['check', '--tasks', rows, ...here],
  ];
  const wrong: [string[], string][] = [
    [['--image', 'a', '--build', 'project'], '--image and --build cannot be used together'],
    [['--build-arg', 'A=b'], '--build-arg needs --build'],
    [['--build-arg', 'A'], 'expected NAME=VALUE'],
    [['--build', 'nowhere'], 'there is no folder nowhere'],
    [['--test-parser', 'guess'], 'Allowed choices are pytest'],
  ];
  for (const [index, command] of commands.entries())
    for (const [options, message] of wrong.slice(0, index === 0 ? wrong.length : 1)) {
      const dataFolder = command[0] === 'tasks' ? { dataFolder: null } : {};
      const { exitCode, stderr } = await offsite(place, [...command, ...options], dataFolder);
      expect(stderr).toContain(message);
      expect(exitCode).toBe(2);
    }
});
