import { execFileSync } from 'node:child_process';
import { cpSync, mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

/** A small repository with a fault, and a row in the format of SWE-bench about it. */
export interface SweRow {
  instance_id: string;
  repo: string;
  base_commit: string;
  problem_statement: string;
  patch: string;
  test_patch: string;
  FAIL_TO_PASS: string[];
  PASS_TO_PASS: string[];
}

const base = {
  'calc/__init__.py': '',
  'calc/add.py': 'def add(a, b):\n    return a - b\n',
  'calc/unused.py': 'x = 1\n',
  'tests/__init__.py': '',
  'tests/test_add.py':
    'import unittest\nfrom calc.add import add\n\n\nclass AddTest(unittest.TestCase):\n' +
    '    def test_zero(self):\n        self.assertEqual(add(1, 0), 1)\n',
  'tests/conftest.py': '# of the repository\n',
  'tests/old_test.py': 'old\n',
  '.gitattributes': '*.py text\n',
};

const solved = { 'calc/add.py': 'def add(a, b):\n    return a + b\n' };

const tested = {
  'tests/test_add.py': `${base['tests/test_add.py']}\n    def test_one(self):\n        self.assertEqual(add(1, 1), 2)\n`,
  'tests/data/numbers.json': '[1, 2]\n',
  'tests/test_data.py':
    'import json, unittest\nfrom calc.add import add\n\n\nclass DataTest(unittest.TestCase):\n    def test_data(self):\n' +
    '        a, b = json.load(open("tests/data/numbers.json"))\n        self.assertEqual(add(a, b), 3)\n',
};

/** Writes a build context into a folder, with the repository and a Dockerfile, and returns the row. */
export function writeSweRow(folder: string): SweRow {
  const repository = join(folder, 'repository');
  const write = (files: Record<string, string>) => {
    for (const [name, content] of Object.entries(files)) {
      mkdirSync(dirname(join(repository, name)), { recursive: true });
      writeFileSync(join(repository, name), content);
    }
  };
  const env = { ...process.env, GIT_CONFIG_GLOBAL: '/dev/null', GIT_CONFIG_SYSTEM: '/dev/null' };
  const git = (...args: string[]) =>
    execFileSync('git', ['-c', 'user.name=a', '-c', 'user.email=a@a.example', ...args], {
      cwd: repository,
      encoding: 'utf8',
      env,
    });
  mkdirSync(repository, { recursive: true });
  git('init', '--quiet');
  write(base);
  git('add', '--all');
  git('commit', '--quiet', '-m', 'base');
  const commit = git('rev-parse', 'HEAD').trim();
  const patchOf = (files: Record<string, string>, ...removed: string[]) => {
    write(files);
    for (const name of removed) git('rm', '--quiet', name);
    git('add', '--all');
    const patch = git('diff', '--cached', 'HEAD');
    git('reset', '--quiet', '--hard');
    return patch;
  };
  const patch = patchOf(solved);
  const testPatch = patchOf(tested, 'tests/old_test.py');
  // A context never has `.git`.
  cpSync(join(repository, '.git'), join(folder, 'dot-git'), { recursive: true });
  writeFileSync(
    join(folder, 'Dockerfile'),
    'FROM ubuntu:24.04\nARG BASE\nCOPY repository /testbed\nCOPY dot-git /testbed/.git\nWORKDIR /testbed\n' +
      'RUN git reset --quiet --hard $BASE && git config user.name a && git config user.email a@a.example\n',
  );
  return {
    instance_id: 'org__calc-1',
    repo: 'org/calc',
    base_commit: commit,
    problem_statement: 'Adding subtracts.',
    patch,
    test_patch: testPatch,
    FAIL_TO_PASS: [
      'test_one (tests.test_add.AddTest.test_one)',
      'test_data (tests.test_data.DataTest.test_data)',
    ],
    PASS_TO_PASS: ['test_zero (tests.test_add.AddTest.test_zero)'],
  };
}

/** Runs the tests and prints their results as Django's tests do. */
export const unittestCommand =
  'ls tests; cat tests/conftest.py; python3 -m unittest -v tests.test_add tests.test_data';
