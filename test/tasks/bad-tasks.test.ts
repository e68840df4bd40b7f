import { execFileSync } from 'node:child_process';
import { truncateSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { readTask } from '../../src/tasks/read-task.ts';
import { eachTaskSet, set } from './each-task-set.ts';
import { issuesOf, notesOf, taskOf } from './task-set.ts';

eachTaskSet();

describe('what is wrong in task.toml is told with its place', () => {
  test.each([
    ['a = [', /^task\.toml:1:6: /],
    ['a = 1\na = 2', /^task\.toml:2:1: .*multiple times/],
    ['\u0000', /^task\.toml:1:1: /],
    [
      '[agent]\ntimeout_sec = "5"',
      /^task\.toml:2:1: agent\.timeout_sec: expected a number, but this is a text: remove its quotes$/,
    ],
    ['[agent]\ntimeout_sec = -1', /^task\.toml:2:1: agent\.timeout_sec: /],
    [
      '[agent]\ntimeout_sec = nan',
      /^task\.toml:2:1: agent\.timeout_sec: expected a number, but this is nan$/,
    ],
    [
      '[agent]\ntimeout_sec = inf',
      /^task\.toml:2:1: agent\.timeout_sec: expected a number, but this is infinite$/,
    ],
    ['environment.cpus = 0', /^task\.toml:1:13: environment\.cpus: /],
    ['environment.gpus = 1.5', /^task\.toml:1:13: environment\.gpus: /],
    ['environment = 1', /^task\.toml:1:1: environment: expected keys with values/],
    ['environment.memory = "2 apples"', /^task\.toml:1:13: environment\.memory: expected a size/],
    ['environment.network_mode = "closed"', /^task\.toml:1:13: environment\.network_mode: /],
    ['environment.env = { PORT = 80 }', /^task\.toml:1:21: environment\.env\.PORT: expected a text/],
    ['environment.env = { "A=B" = "" }', /^task\.toml:1:21: environment\.env\["A=B"\]: /],
    ['environment.workdir = "app"', /^task\.toml:1:13: environment\.workdir: expected an absolute path/],
    ['environment.workdir = "/a/../../b"', /^task\.toml:1:13: environment\.workdir: .*without \.\.$/],
    ['artifacts = ["out.txt"]', /^task\.toml:1:14: artifacts\[0\]: expected an absolute path/],
    ['artifacts = [{ source = "/a", destination = "../b" }]', /artifacts\[0\]\.destination: .*without \.\./],
    ['artifacts = [{ destination = "b" }]', /^task\.toml:1:14: artifacts\[0\]\.source: is required/],
    ['[[steps]]', /^task\.toml:1:3: steps\[0\]\.name: is required/],
    ['[[steps]]\nname = "../../etc"', /^task\.toml:2:1: steps\[0\]\.name: expected a name without slashes/],
    ['[[steps]]\nname = ".."', /^task\.toml:2:1: steps\[0\]\.name: /],
    ['[[steps]]\nname = "one"', /^steps\/one\/instruction\.md:1:1: is missing$/],
    ['[[steps]]\nname = "a"\nmin_reward = "all"', /^task\.toml:3:1: steps\[0\]\.min_reward: /],
    ['multi_step_reward_strategy = "max"', /^task\.toml:1:1: multi_step_reward_strategy: /],
    [
      'verifier.environment_mode = "shared"\nverifier.environment.cpus = 1',
      /^task\.toml:2:10: verifier\.environment: contradicts/,
    ],
    [`a = ${'['.repeat(100)}${']'.repeat(100)}`, /^task\.toml:1:\d+: is nested too deep/],
    [`${'a.'.repeat(100)}b = 1`, /^task\.toml:1:\d+: is nested too deep/],
    [`[${'a.'.repeat(100)}b]`, /^task\.toml:1:\d+: is nested too deep/],
  ])('%s', (toml, issue) => {
    const [first, ...others] = issuesOf(set.harbor('task', { 'task.toml': toml }));
    expect(first).toMatch(issue);
    expect(others).toEqual([]);
  });

  test('all of them at once', () => {
    const toml = '[agent]\ntimeout_sec = "5"\n[environment]\ncpus = "2"\n';
    expect(issuesOf(set.harbor('task', { 'task.toml': toml }))).toEqual([
      'task.toml:2:1: agent.timeout_sec: expected a number, but this is a text: remove its quotes',
      'task.toml:4:1: environment.cpus: expected a number, but this is a text: remove its quotes',
    ]);
  });
});

test('names that JavaScript gives to every object are ordinary keys', () => {
  const toml = '[metadata]\n__proto__ = { polluted = true }\nconstructor = 1\n[__proto__]\npolluted = true\n';
  const found = set.harbor('task', { 'task.toml': toml });
  expect(notesOf(found)).toContain('unknown-key task.toml:4:2');
  expect('polluted' in {}).toBe(false);
});

describe('files that are missing, or are something else', () => {
  test.each([
    [{ 'instruction.md': null }, 'instruction.md:1:1: is missing'],
    [
      { 'environment/Dockerfile': null, 'environment/readme': '' },
      'environment:1:1: has neither a Dockerfile nor a docker-compose.yaml, ' +
        'and task.toml names no docker_image',
    ],
    [{ 'task.toml': null }, 'task.toml:1:1: is missing'],
  ])('%j', (files, issue) => {
    const found = set.harbor('task', files);
    expect(issuesOf(found).map((each) => each.replace(found.place, '.'))).toEqual([issue]);
  });

  test('a pipe, which nobody writes to', () => {
    const found = set.harbor('task', { 'instruction.md': null });
    execFileSync('mkfifo', [join(found.place, 'instruction.md')]);
    expect(issuesOf(found)).toEqual([expect.stringMatching(/instruction\.md: it is a pipe/)]);
    const other = set.harbor('other', { 'task.toml': null });
    execFileSync('mkfifo', [join(other.place, 'task.toml')]);
    expect(issuesOf(other)).toEqual(['task.toml:1:1: is not a regular file']);
  });

  test('bytes that are no text', () => {
    const found = set.harbor('task');
    set.write('task/task.toml', new Uint8Array([0xff, 0xfe]));
    expect(issuesOf(found)).toEqual([expect.stringMatching(/cannot read .*task\.toml/)]);
  });

  test.each(['task.toml', 'instruction.md'])('%s of a gigabyte, in no time', (name) => {
    const found = set.harbor('task');
    truncateSync(join(found.place, name), 1024 ** 3);
    const begun = performance.now();
    expect(issuesOf(found)).toEqual([expect.stringMatching(/is larger than the limit/)]);
    expect(performance.now() - begun).toBeLessThan(5000);
  });

  test('a task.toml of a quarter of a megabyte that is all keys, all tables, or all dots', () => {
    const size = 250 * 1024;
    const fill = (line: (n: number) => string) =>
      Array.from({ length: Math.floor(size / line(10_000).length) }, (_, n) => line(n)).join('');
    const begun = performance.now();
    for (const toml of [
      fill((n) => `k${n} = 1\n`),
      fill(() => '[[s]]\n'),
      fill((n) => `a.b.c.d.e.k${n} = {}\n`),
    ])
      taskOf(set.harbor('task', { 'task.toml': `${toml}` }));
    expect(performance.now() - begun).toBeLessThan(60_000);
    expect(taskOf(set.harbor('task')).notes.length).toBeLessThan(60);
  });
});

describe('links', () => {
  test.each([
    ['task.toml', '/etc/passwd'],
    ['instruction.md', '/etc/passwd'],
    ['environment', '/etc'],
    ['environment/Dockerfile', '/etc/passwd'],
    ['tests', '/etc'],
    ['tests/deep/data', '/etc'],
    ['solution/solve.sh', '../../../elsewhere'],
    ['.harborignore', '/etc/passwd'],
  ])('%s may not lead out of the task', (name, target) => {
    set.write('elsewhere', 'secret');
    const files: Record<string, null> = {
      [name]: null,
      [`${name}/Dockerfile`]: null,
      [`${name}/test.sh`]: null,
    };
    const found = set.harbor('task', files);
    set.link(`task/${name}`, target);
    const [issue, ...others] = issuesOf(found);
    expect(issue).toContain(`${name}`);
    expect(issue).toMatch(/is a link that leads (out of the task's folder|nowhere)$/);
    expect(others).toEqual([]);
  });

  test('may lead to another place in the task', () => {
    const found = set.harbor('task', { 'instruction.md': null, 'text.md': 'Linked.\n' });
    set.link('task/instruction.md', 'text.md');
    set.link('task/tests/again.sh', 'test.sh');
    expect(taskOf(found).variables).toEqual({ instruction: 'Linked.\n' });
  });

  test('that lead in a circle are told', () => {
    const found = set.harbor('task', { 'instruction.md': null });
    set.link('task/instruction.md', 'instruction.md');
    expect(issuesOf(found)).toEqual([expect.stringMatching(/ELOOP|too many/i)]);
  });
});

describe('patterns of ignored files', () => {
  test.each([
    ['*a*a*a*a*a*b', /^\.harborignore:2:1: has more than 4 wildcards/],
    ['x\n'.repeat(600), /^\.harborignore:501:1: has more than 500 patterns/],
  ])('are bounded: %j', (pattern, issue) => {
    const found = set.harbor('task', {
      '.harborignore': `${pattern.length < 100 ? '# a\n' : ''}${pattern}\n`,
    });
    expect(issuesOf(found)).toEqual([expect.stringMatching(issue)]);
  });

  test('take seconds at most, whatever the names', () => {
    const patterns = Array.from({ length: 100 }, (_, n) => `*a*a*a*${n}`).join('\n');
    const found = set.harbor('task', { '.harborignore': patterns, [`tests/${'a'.repeat(250)}`]: '' });
    const begun = performance.now();
    readTask(found);
    expect(performance.now() - begun).toBeLessThan(60_000);
  });
});

test('an instruction that is one line of marks is read in no time', () => {
  const line = `#${'canary'.repeat(100_000)}\r${' '.repeat(100_000)}x`;
  const begun = performance.now();
  taskOf(set.harbor('task', { 'instruction.md': line }));
  expect(performance.now() - begun).toBeLessThan(20_000);
});

test('notes are bounded', () => {
  const toml = Array.from({ length: 500 }, (_, n) => `unknown${n} = 1\n`).join('');
  expect(taskOf(set.harbor('task', { 'task.toml': toml })).notes).toHaveLength(50);
});
