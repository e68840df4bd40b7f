import { createHash } from 'node:crypto';
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { findTasks, selectTasks } from '../../src/tasks/find-tasks.ts';
import { taskDigest } from '../../src/tasks/harbor/dataset.ts';
import { readTask } from '../../src/tasks/read-task.ts';
import { eachTaskSet, set } from './each-task-set.ts';
import { issuesOf, notesOf, taskOf } from './task-set.ts';

eachTaskSet();

const ids = (path = set.folder) => findTasks(path).tasks.map(({ id, format }) => `${id} ${format}`);

describe('tasks are found', () => {
  test('in a folder, at different depths and in different formats, sorted', () => {
    set.harbor('b');
    set.terminalBench('a');
    set.harbor('deep/er/c');
    set.harbor('.hidden/d');
    set.write('README.md', '');
    expect(ids()).toEqual(['a terminal-bench', 'b harbor', 'c harbor']);
    expect(findTasks(set.folder, 'harbor').tasks.map(({ id }) => id)).toEqual(['b', 'c']);
    expect(findTasks(set.folder, 'terminal-bench').tasks.map(({ id }) => id)).toEqual(['a']);
  });

  test('by the path of one, or of its file', () => {
    const { place } = set.harbor('one', { 'tests/data/task.toml': '' });
    expect(ids(place)).toEqual(['one harbor']);
    expect(ids(join(place, 'task.toml'))).toEqual(['one harbor']);
  });

  test('even if task.toml was forgotten', () => {
    const found = set.harbor('one', { 'task.toml': null });
    expect(ids()).toEqual(['one harbor']);
    expect(issuesOf(found)).toEqual(['task.toml:1:1: is missing']);
  });

  test('not behind links to folders', () => {
    set.harbor('a');
    set.link('b', 'a');
    set.link('loop', '.');
    const { tasks, notes } = findTasks(set.folder);
    expect(tasks.map(({ id }) => id)).toEqual(['a']);
    expect(notes.map(({ message }) => message)).toEqual(
      Array(2).fill('is a link to a folder, which is not followed'),
    );
  });

  test('once for each id', () => {
    set.harbor('x/same');
    set.terminalBench('y/same');
    const [first, second] = findTasks(set.folder).tasks.map(readTask);
    expect(first?.task).toBeDefined();
    expect(second).toMatchObject({
      issues: [{ message: expect.stringMatching(/^has the same id as .*x\/same$/) }],
    });
  });

  test('without a folder whose name is not UTF-8, which is told', () => {
    const folder = Buffer.concat([Buffer.from(`${set.folder}/`), Buffer.from([0x61, 0xff])]);
    mkdirSync(folder);
    writeFileSync(Buffer.concat([folder, Buffer.from('/task.toml')]), '');
    set.harbor('fine');
    const { tasks, notes } = findTasks(set.folder);
    expect(tasks.map(({ id }) => id)).toEqual(['fine']);
    expect(notes).toMatchObject([{ message: 'cannot be read: its name is not UTF-8' }]);
  });

  test.each([
    ['nothing', /there is no file or folder/],
    ['empty', /there is no task in/],
    ['notes.txt', /is no file of tasks/],
  ])('or it is said that there are none: %s', (name, message) => {
    mkdirSync(join(set.folder, 'empty'));
    set.write('notes.txt', 'x');
    expect(() => findTasks(join(set.folder, name))).toThrow(message);
  });

  test('not below too many folders', () => {
    set.harbor('1/2/3/4/5/6/7/8/deep');
    expect(() => findTasks(set.folder)).toThrow(/there is no task/);
  });
});

describe('a data set', () => {
  const digestOf = (place: string) => taskDigest(place) ?? '';

  test('names its tasks, with the digests of their files', () => {
    const same = set.harbor('tasks/same', { 'solution/solve.sh': 'true\n', 'notes.md': 'not part of it' });
    const other = set.harbor('tasks/other');
    set.harbor('tasks/unnamed');
    const unnamed = 'is not named in';
    set.write(
      'dataset.toml',
      `[dataset]
name = "org/set"
[[tasks]]
name = "org/other"
digest = "sha256:${'0'.repeat(64)}"
[[tasks]]
name = "org/same"
digest = "${digestOf(same.place)}"
[[tasks]]
name = "org/absent"
[[files]]
path = "metric.py"
digest = "sha256:${'0'.repeat(64)}"
`,
    );
    const { tasks } = findTasks(set.folder);
    expect(tasks.map(({ id }) => id)).toEqual(['other', 'same', 'absent', 'unnamed']);
    const [differs, matches, absent, extra] = tasks.map(readTask);
    expect(differs).toMatchObject({
      found: { place: other.place },
      obstacles: [{ feature: 'wrong-digest', line: 4, path: 'tasks[0].name' }],
    });
    expect(matches).toMatchObject({ task: { remarks: { notes: [] } }, obstacles: [] });
    expect(absent).toMatchObject({ issues: [], obstacles: [{ feature: 'not-here', line: 10 }] });
    expect(extra).toMatchObject({
      task: { remarks: { notes: [{ kind: 'data-set', message: expect.stringContaining(unnamed) }] } },
    });
    expect(ids(join(set.folder, 'dataset.toml'))).toHaveLength(4);
  });

  test.each(['dataset.toml', 'registry.json'])('may not be a link that leads elsewhere: %s', (name) => {
    set.harbor('one');
    set.link(name, '/etc/passwd');
    const read = () => findTasks(set.folder).notes.map(({ message }) => message);
    if (name === 'dataset.toml') expect(read).toThrow(/dataset\.toml:1:1: is a link that leads out/);
    else expect(read()).toEqual(['is no registry of tasks, and is ignored']);
  });

  test('loses no task of an id that is there twice', () => {
    set.harbor('x/same');
    set.harbor('y/same');
    set.write('dataset.toml', '[dataset]\nname = "a"\n[[tasks]]\nname = "org/same"\n');
    const read = findTasks(set.folder).tasks.map(readTask);
    expect(read.map(({ issues }) => issues.length)).toEqual([0, 1]);
    expect(read[0]).toMatchObject({ task: {}, found: { place: join(set.folder, 'x/same') } });
  });

  test('is told with its place if it is wrong', () => {
    set.harbor('one');
    set.write('dataset.toml', '[dataset]\nname = "a"\n[[tasks]]\nname = "one"\ndigest = "md5:0"\n');
    expect(() => findTasks(set.folder)).toThrow(/dataset\.toml:5:1: tasks\[0\]\.digest: expected sha256/);
  });

  test('has the digest of sorted lines of the files that belong to a task', () => {
    const { place } = set.harbor('one', {
      'README.md': 'r',
      'notes.md': 'not part of it',
      '.gitignore': '*.pyc\n/tests/tmp/\n',
      'tests/a.pyc': '',
      'tests/tmp/b': '',
      'tests/Z': '',
    });
    const sha = (text: string) => createHash('sha256').update(text).digest('hex');
    const files = {
      'README.md': 'r',
      'environment/Dockerfile': 'FROM debian\n',
      'instruction.md': 'Write a file.\n',
      'task.toml': 'version = "1.0"\n[agent]\ntimeout_sec = 60\n[environment]\nnetwork_mode = "no-network"\n',
      'tests/Z': '',
      'tests/test.sh': 'echo 1 > /logs/verifier/reward.txt\n',
    };
    const whole = Object.entries(files).map(([name, text]) => `${name}\0${sha(text)}\n`);
    expect(taskDigest(place)).toBe(`sha256:${sha(whole.join(''))}`);
  });
});

describe('an older registry', () => {
  const registry = [
    {
      name: 'set',
      version: '1',
      description: '',
      tasks: [
        { name: 'here', git_url: 'https://git.example/a.git', git_commit_id: 'abc', path: 'tasks/here' },
        { name: 'away', git_url: 'https://git.example/a.git', git_commit_id: 'abc', path: 'tasks/away' },
        { name: 'outside', git_url: 'https://git.example/a.git', path: '../../etc' },
      ],
    },
  ];

  test('names tasks at git URLs, of which those beside it are read', () => {
    set.harbor('tasks/here');
    const file = set.write('registry.json', JSON.stringify(registry));
    const [here, away, outside] = findTasks(file).tasks.map(readTask);
    expect(here).toMatchObject({ task: { entry: { id: 'here' } } });
    expect(away).toMatchObject({
      obstacles: [
        { path: '[0].tasks[1]', message: expect.stringContaining('https://git.example/a.git abc') },
      ],
    });
    expect(outside?.obstacles).toMatchObject([{ feature: 'not-here' }]);
    rmSync(join(set.folder, 'tasks'), { recursive: true });
    expect(
      findTasks(set.folder)
        .tasks.map(readTask)
        .map(({ obstacles }) => obstacles[0]?.feature),
    ).toEqual(Array(3).fill('not-here'));
  });

  test('of another program is ignored', () => {
    set.harbor('one');
    set.write('registry.json', '{"recipes": []}');
    const { tasks, notes } = findTasks(set.folder);
    expect(tasks).toHaveLength(1);
    expect(notes).toMatchObject([{ message: 'is no registry of tasks, and is ignored' }]);
  });
});

describe('a selection', () => {
  const tasks = ['b-1', 'a-2', 'a-1', '.c', 'a\n3'].map((id) => ({ id }));
  const chosen = (selection: Parameters<typeof selectTasks>[1]) =>
    selectTasks(tasks, selection).map(({ id }) => id);

  test.each([
    [{}, ['b-1', 'a-2', 'a-1', '.c', 'a\n3']],
    [{ include: ['a*'] }, ['a-2', 'a-1', 'a\n3']],
    [{ include: ['*-1', '.c'] }, ['b-1', 'a-1', '.c']],
    [{ include: ['a*'], exclude: ['*-1'] }, ['a-2', 'a\n3']],
    [{ limit: 2 }, ['b-1', 'a-2']],
    [{ exclude: ['*'] }, []],
  ])('%j', (selection, expected) => {
    expect(chosen(selection)).toEqual(expected);
  });

  test('with a seed is a sample, the same everywhere, whatever the order of the set', () => {
    const many = Array.from({ length: 100 }, (_, n) => ({ id: `task-${n}` }));
    const sample = (from: typeof many, seed: number) =>
      selectTasks(from, { seed, limit: 5 }).map(({ id }) => id);
    expect(sample(many, 1)).toEqual(sample(many.toReversed(), 1));
    expect(sample(many, 1)).not.toEqual(sample(many, 2));
    expect(new Set(sample(many, 1)).size).toBe(5);
    expect(
      selectTasks(many, { seed: 7 })
        .map(({ id }) => id)
        .toSorted(),
    ).toEqual(many.map(({ id }) => id).toSorted());
  });

  test('of what is not there is refused', () => {
    expect(() => chosen({ include: ['a*', 'z*'] })).toThrow('no task matches "z*"');
  });
});

test('a note of a set and one of a task have different places', () => {
  const found = set.harbor('one', { 'task.toml': 'unknown = 1\n' });
  expect(notesOf(found)[0]).toBe('unknown-key task.toml:1:1');
  expect(taskOf(found).notes[0]?.file).toBe(`${found.place}/task.toml`);
});
