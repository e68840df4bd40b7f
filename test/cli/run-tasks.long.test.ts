import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { unittestCommand, writeSweRow } from '../trial/swe-row.ts';
import { offsite } from './offsite.ts';
import { openPlace } from './place.ts';
import { writeHarborTask, writeTaskConfig, writeTerminalBenchTask } from './task-folder.ts';

const variant = ['--variant', 'command:none', '--profile', 'worker'];
const here = ['--config', 'project/offsite.yaml'];

test('tasks of Harbor run without a suite; one that cannot run is told and not started', async () => {
  using place = openPlace();
  // What the agent is asked decides what it does.
  writeTaskConfig(
    place,
    'printf %s "$OFFSITE_PROMPT" > asked\nif grep -q easy asked; then echo done > out; fi',
  );
  writeHarborTask(place, 'easy');
  writeHarborTask(place, 'hard');
  writeHarborTask(place, 'gpu', { 'task.toml': '[environment]\ngpus = 1\n' });
  const run = ['run', '--tasks', 'project/tasks', '--format', 'harbor', ...variant, ...here];
  const { exitCode, stdout, stderr } = await offsite(place, run);
  expect(stderr).toMatch(
    /1 task cannot run here, and will not be started:\n {2}gpu: \S+task\.toml:2:1: .*GPU/,
  );
  expect(stdout).toMatch(/easy · command\S*\s+1\s+0\s+0|easy · none\S*\s+1\s+0\s+0/);
  expect(stdout).toMatch(/hard · none\S*\s+0\s+1\s+0/);
  expect(stdout).not.toContain('gpu');
  expect(stdout).toContain('offsite/base was used in place of the image ubuntu:24.04');
  expect(stdout).toContain("2 runs were graded in the harness's own sandbox, without unexpected changes");
  expect(exitCode).toBe(0);

  const shown = await offsite(place, ['show', 'hard/none/command/worker#0']);
  expect(shown.stdout).toContain("in the harness's own sandbox");
  expect(shown.stdout).toContain('the tests look at /app: asked');
  expect(shown.stdout).toContain('reward is 0, below 1');
  const json = await offsite(place, ['show', 'hard/none/command/worker#0', '--json']);
  expect(json.stdout).toContain('Write done to the file out of hard. Leave {{this}} as it is.');

  const strict = await offsite(place, [...run, '--strict-tasks']);
  expect(strict.exitCode).toBe(2);
  expect(strict.stderr).toMatch(/some of these tasks cannot run here:\n│ gpu: /);
});

test('tests run by the program of their first line, and with its options, as Harbor runs them', async () => {
  using place = openPlace();
  writeTaskConfig(place, 'true');
  const reward = '/logs/verifier/reward.txt';
  writeHarborTask(place, 'strict', {
    'tests/test.sh': `#!/bin/bash -e\necho 0 > ${reward}\ngrep -qx done out\necho 1 > ${reward}\n`,
  });
  writeHarborTask(place, 'python', {
    'tests/test.sh': `#!/usr/bin/env python3\nopen("${reward}", "w").write("1")\n`,
  });
  const run = ['run', '--tasks', 'project/tasks', '--format', 'harbor', ...variant, ...here];
  const { stdout, stderr } = await offsite(place, run);
  expect(stdout, stderr).toMatch(/strict · none\S*\s+0\s+1\s+0/);
  expect(stdout).toMatch(/python · none\S*\s+1\s+0\s+0/);
});

test('a suite takes its cases from tasks, with a prompt and thresholds of its own', async () => {
  using place = openPlace();
  writeTaskConfig(place, 'printf %s "$OFFSITE_PROMPT" > asked');
  const tests = `grep -q '^Be quick. Write done' asked && echo '{"asked": 0.5}' > /logs/verifier/reward.json`;
  writeHarborTask(place, 'one', { 'tests/test.sh': tests });
  writeHarborTask(place, 'two', { 'tests/test.sh': tests });
  const suite = (tasks: string) =>
    place.write(
      'suite.yaml',
      `suite: { id: small, prompt: "Be quick. {{instruction}}" }\ntasks: ${tasks}\n` +
        'variants: [{ name: worker, model: none, harness: command, profile: worker }]\n',
    );
  const passing = suite('{ path: tasks, include: [one], threshold: { asked: 0.5 } }');
  const { exitCode, stdout, stderr } = await offsite(place, ['run', passing]);
  expect(exitCode, stderr).toBe(0);
  expect(stdout).toMatch(/one · worker\s+1\s+0\s+0/);
  expect(stdout).not.toContain('two');

  const unknown = await offsite(place, ['run', suite('{ path: tasks, include: [three] }')]);
  expect(unknown.exitCode).toBe(2);
  expect(unknown.stderr).toMatch(/suite\.yaml:2:\d+: tasks: no task matches "three"/);
  const outside = await offsite(place, ['run', suite('{ path: .. }')]);
  expect(outside.stderr).toMatch(/suite\.yaml:2:\d+: tasks: /);
  expect(outside.exitCode).toBe(2);
});

test('each task is checked: untouched it must not pass, with its solution it must', async () => {
  using place = openPlace();
  writeTaskConfig(place, 'true');
  writeHarborTask(place, 'sound', {
    'tests/test.sh': 'grep -qx done out; echo $((! $?)) > /logs/verifier/reward.txt',
  });
  writeHarborTask(place, 'easy', { 'tests/test.sh': 'echo 1 > /logs/verifier/reward.txt' });
  writeHarborTask(place, 'broken', { 'solution/answer': 'other\n' });
  writeHarborTask(place, 'unsolved', { 'solution/solve.sh': 'echo no such module; exit 4' });
  writeHarborTask(place, 'unbuilt', {
    'environment/Dockerfile': 'FROM ubuntu:24.04\nRUN echo the reason && exit 3\n',
  });
  writeTerminalBenchTask(place, 'old');
  const junit = join(place.folder, 'check.xml');
  const check = ['check', '--tasks', 'project/tasks', ...here, '--junit', junit];
  const { exitCode, stdout, stderr } = await offsite(place, check);
  expect(exitCode, stderr).toBe(1);
  expect(stderr).toContain('sound: ok');
  expect(stderr).toContain('old: ok');
  expect(stdout).toMatch(/easy\s+untouched\s+passed\s+PASSES UNTOUCHED/);
  expect(stdout).toMatch(/broken\s+untouched\s+failed/);
  expect(stdout).toMatch(/broken\s+solved\s+failed\s+FAILS ALTHOUGH SOLVED: .*reward is 0, below 1/);
  expect(stdout).toContain('offsite/base was used in place of the image ubuntu:24.04');
  expect(stdout).toMatch(
    /^broken, .*solved, printed:\n│ .*reward is 0, below 1\n│ the tests look at \/app: here\n│ out$/m,
  );
  expect(stdout).toMatch(/^unbuilt, untouched and solved, printed:\n(│.*\n)*│ .*the reason/m);
  expect(stdout).toMatch(/^unsolved, its solution failed:\n│ .*solve\.sh.*: exit code 4\n│ no such module$/m);
  expect(stdout.match(/^unbuilt, /gm)).toHaveLength(1);
  const xml = readFileSync(junit, 'utf8');
  expect(xml).toContain('FAILS ALTHOUGH SOLVED');
  expect(xml).toContain('the tests look at /app: here');
  expect(xml.match(/<testcase /g)).toHaveLength(12);
});

test('a separate verifier grades the artifacts, in an image of the tests or in a fresh one of the task', async () => {
  using place = openPlace();
  writeTaskConfig(place, 'echo done > out; echo other > /tests; touch scratch.o');
  const toml =
    'artifacts = [{ source = "/app", exclude = ["*.o"] }]\n[agent]\ntimeout_sec = 60\n' +
    '[verifier]\nenvironment_mode = "separate"\n[environment]\nmemory_mb = 256\ncpus = 1\n';
  const script = [
    'echo "the tests look at $(pwd): $(ls /app) with $(cat /made-for 2>&1)"',
    'if grep -qx done /app/out; then echo 1; else echo 0; fi > /logs/verifier/reward.txt',
  ].join('\n');
  writeHarborTask(place, 'fresh', { 'task.toml': toml, 'tests/test.sh': script });
  writeHarborTask(place, 'own', {
    'task.toml': toml,
    'tests/Dockerfile':
      'FROM ubuntu:24.04\nRUN echo tests > /made-for\nCOPY test.sh /tests/\nWORKDIR /check\n',
    'tests/test.sh': script,
  });
  const tasks = ['--tasks', 'project/tasks', ...here];
  const { exitCode, stdout, stderr } = await offsite(place, ['run', ...tasks, ...variant]);
  expect(exitCode, stderr).toBe(0);
  expect(stdout).not.toContain("graded in the harness's own sandbox");
  const shown = await offsite(place, ['show', 'own/none/command/worker#0', '--verify']);
  expect(shown.stdout).toMatch(/the tests look at \/check: here\s+│ out with tests/);
  const json = await offsite(place, ['show', 'own/none/command/worker#0', '--json']);
  expect(json.stdout).toContain('"validatedIn": "fresh"');
  const other = await offsite(place, ['show', 'fresh/none/command/worker#0', '--verify']);
  expect(other.stdout).toMatch(/the tests look at \/app: here\s+│ out with cat: /);

  const check = await offsite(place, ['check', ...tasks]);
  expect(check.exitCode, check.stdout).toBe(0);
  expect(check.stderr).toContain('own: ok');
  expect(check.stderr).toContain('fresh: ok');
});

test('a separate verifier may have services of its own', async () => {
  using place = openPlace();
  writeTaskConfig(place, 'echo done > out');
  const script = [
    'ask="import urllib.request as r; print(r.urlopen(\'http://db:8000\').status)"',
    'for n in $(seq 100); do python3 -c "$ask" && break; sleep 0.2; done 2>/dev/null',
    'if grep -qx done /app/out && python3 -c "$ask" >&2; then echo 1; else echo 0; fi > /logs/verifier/reward.txt',
  ];
  writeHarborTask(place, 'served', {
    'task.toml':
      'artifacts = ["/app"]\n[agent]\ntimeout_sec = 60\n[verifier]\nenvironment_mode = "separate"\n',
    'tests/Dockerfile': 'FROM ubuntu:24.04\nCOPY test.sh /tests/\n',
    'tests/docker-compose.yaml':
      'services:\n  main: { build: . }\n  db: { image: "ubuntu:24.04", command: [python3, -m, http.server] }\n',
    'tests/test.sh': script.join('\n'),
  });
  const { exitCode, stdout, stderr } = await offsite(place, ['check', '--tasks', 'project/tasks', ...here]);
  expect(exitCode, stdout + stderr).toBe(0);
  expect(stderr).toContain('served: ok');
});

test('rows of SWE-bench are built, checked and run as the user says', async () => {
  using place = openPlace();
  writeTaskConfig(place, 'sed -i "s/a - b/a + b/" calc/add.py');
  const row = writeSweRow(join(place.folder, 'project/swe'));
  place.write('rows.jsonl', `${JSON.stringify(row)}\n`);
  const suite = place.write(
    'suite.yaml',
    'suite: { id: swe }\n' +
      'tasks:\n  path: rows.jsonl\n  build: { context: swe, args: { BASE: "{base_commit}" } }\n' +
      `  test: { parser: django, command: ${JSON.stringify(unittestCommand)} }\n` +
      'variants: [{ name: worker, model: none, harness: command, profile: worker }]\n',
  );
  const checked = await offsite(place, ['check', suite]);
  expect(checked.exitCode, checked.stdout + checked.stderr).toBe(0);
  expect(checked.stdout).toMatch(
    /org__calc-1\s+untouched\s+failed\s.*2 of 3 tests.*\s+org__calc-1\s+solved\s+passed/,
  );
  const ran = await offsite(place, ['run', suite]);
  expect(ran.exitCode, ran.stderr).toBe(0);
  expect(ran.stdout).toMatch(/org__calc-1 · worker\s+1\s+0\s+0/);

  const rows = ['run', '--tasks', 'project/rows.jsonl', ...variant, ...here];
  const unnamed = await offsite(place, rows);
  expect(unnamed.exitCode).toBe(2);
  expect(unnamed.stderr).toContain('the format names no environment: name an image or a build for the rows');
  const missing = await offsite(place, [...rows, '--image', 'my/swe-{docker_id}', '--test-parser', 'django']);
  expect(missing.exitCode).toBe(3);
  expect(missing.stdout + missing.stderr).toContain('the engine has no image my/swe-org_1776_calc-1');
});

test('an imported suite is checked as the tasks are', {
  timeout: 480_000,
}, async () => {
  using place = openPlace();
  writeTaskConfig(place, 'echo done > out');
  writeHarborTask(place, 'sound');
  writeHarborTask(place, 'broken', { 'solution/answer': 'other\n' });
  writeTerminalBenchTask(place, 'old');
  writeHarborTask(place, 'gpu', { 'task.toml': '[environment]\ngpus = 1\n' });
  const from = ['project/tasks', '--out', 'imported', ...variant, ...here];
  const written = await offsite(place, ['tasks', 'import', 'harbor', ...from]);
  expect(written.exitCode, written.stderr).toBe(0);
  expect(written.stdout).toContain('wrote 2 cases: ');
  expect(written.stderr).toMatch(/gpu: \S+task\.toml:2:1: .*GPU/);
  const again = await offsite(place, ['tasks', 'import', 'terminal-bench', ...from]);
  expect(again.exitCode).toBe(2);
  expect(again.stderr).toContain('suite.yaml exists');

  const states = async (...what: string[]) => {
    const { stdout, stderr } = await offsite(place, ['check', ...what, ...here, '--json']);
    if (stdout === '') throw new Error(stderr);
    const { cases } = JSON.parse(stdout) as { cases: { id: string; states: Record<string, unknown>[] }[] };
    return cases.map(({ id, states }) => [id, states.map(({ cause, output, ...rest }) => rest)]);
  };
  const suite = await states('imported/suite.yaml');
  expect(suite).toEqual(await states('--tasks', 'project/tasks', '--format', 'harbor'));
  expect(suite.map(([id]) => id)).toEqual(['broken', 'sound']);
});

test('more tasks than a start request takes become several batches, with one summary', async () => {
  using place = openPlace();
  writeTaskConfig(place, 'echo done > out');
  // Trials of a missing image are void at once, and need no sandbox.
  const missing = {
    'task.toml': '[environment]\ndocker_image = "nobody/has:this"\n',
    'environment/Dockerfile': null,
  };
  const ids = Array.from({ length: 101 }, (_, index) => `task-${String(index).padStart(3, '0')}`);
  for (const id of ids) writeHarborTask(place, id, ['task-000', 'task-100'].includes(id) ? {} : missing);
  const args = ['run', '--tasks', 'project/tasks', ...variant, ...here, '--json'];
  const { exitCode, stdout, stderr } = await offsite(place, args);
  expect(exitCode, stderr).toBe(3);
  const { batchIds, passed, failed, void: voids, runs } = JSON.parse(stdout);
  expect(batchIds).toHaveLength(2);
  expect([passed, failed, voids]).toEqual([2, 0, 99]);
  expect(runs).toHaveLength(101);
  const auto = await offsite(place, [...args, '--trials', 'auto']);
  expect(auto.exitCode).toBe(2);
  expect(auto.stderr).toContain('--trials auto cannot be used with 101 cases');
});

test('tasks are refused with what is missing, before anything starts', async () => {
  using place = openPlace();
  writeTaskConfig(place, 'true');
  writeHarborTask(place, 'one');
  const refusal = async (...args: string[]) => {
    const { exitCode, stderr } = await offsite(place, ['run', ...args, ...here]);
    expect(exitCode).toBe(2);
    return stderr;
  };
  const tasks = ['--tasks', 'project/tasks'];
  expect(await refusal()).toContain('expected a suite file, or --tasks with a folder');
  expect(await refusal(...tasks)).toContain('--tasks needs a variant');
  expect(await refusal(...tasks, '--variant', 'codex')).toContain('codex is not a variant');
  expect(await refusal(...tasks, '--variant', 'nobody:none')).toContain('"nobody" is not a harness');
  expect(await refusal('--tasks', 'project/none', ...variant)).toContain('there is no file or folder');
  const suite = place.write(
    'suite.yaml',
    'suite: { id: a }\ntasks: { path: tasks }\nvariants: [{ model: none, harness: command, profile: worker }]\n',
  );
  const start = await offsite(place, ['service', 'start', suite, ...here]);
  expect(start.exitCode).toBe(2);
  expect(start.stderr).toContain('this command takes no tasks');
});
