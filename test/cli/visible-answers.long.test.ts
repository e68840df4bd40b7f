import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { eachPlace, place } from './each-place.ts';
import { offsite } from './offsite.ts';

eachPlace();

const solve = 'echo forty-two > answer.txt # the way to solve it\n';
const grade = 'grep -qx forty-two answer.txt # of a case\n';

/** A case whose image has what the Dockerfile says. Its agent solves it only with the solution. */
function suiteWith(dockerfile: string, parts: Record<string, unknown> = {}) {
  place.write('cases/solve.sh', solve);
  place.write('cases/grade.sh', grade);
  place.write('Dockerfile', `FROM offsite/base\nWORKDIR /app\n${dockerfile}\n`);
  return place.suite({
    cases: [
      {
        id: 'a',
        environment: { build: { context: '.' } },
        solution: { file: 'cases/solve.sh' },
        verify: { file: 'cases/grade.sh' },
        variables: { act: 'touch ran; find / -xdev -name solve.sh -exec sh {} ";"' },
        ...parts,
      },
    ],
  });
}

async function checked(suite: string) {
  const { exitCode, stdout, stderr } = await offsite(place, ['check', suite, '--again', '--json']);
  if (stdout === '') throw new Error(stderr);
  return { exitCode, untouched: JSON.parse(stdout).cases[0].states[0] };
}

const repository = 'RUN git init -q -b main && git config user.name a && git config user.email a@b && ';

describe('an agent must not find what grades or solves its case', () => {
  test('a solution in the image is named with its path, by check and by run, before the agent starts', async () => {
    const suite = suiteWith('COPY . /app\n');
    const { exitCode, untouched } = await checked(suite);
    expect(exitCode).toBe(1);
    expect(untouched.verdicts).toEqual(['void']);
    expect(untouched.cause).toContain(
      'an agent could read the solution at /app/cases/solve.sh, and 2 more files',
    );
    expect(untouched.output).toContain('the suite file: /app/suite.yaml');
    expect(untouched.output).toContain('the verify script: /app/cases/grade.sh');

    const run = await offsite(place, ['run', suite]);
    expect(run.exitCode, run.stderr + run.stdout).toBe(3);
    expect(run.stderr + run.stdout).toMatch(/task, in sandbox: an agent could read the solution/);

    // What the build leaves out is not there.
    place.write('.dockerignore', 'suite.yaml\ncases\n');
    expect((await checked(suite)).exitCode).toBe(0);
    const failed = await offsite(place, ['run', suite]);
    expect(failed.exitCode, failed.stderr + failed.stdout).toBe(0);
    expect(failed.stdout).toMatch(/a · worker +0 +1 +0/);
  });

  test('a solution that only the history of a repository has is found there', async () => {
    const history =
      'git add -A && git commit -qm one && git rm -rq cases && git commit -qm two && rm -rf cases';
    const suite = suiteWith(`COPY cases /app/cases\n${repository}${history}\n`);
    const { exitCode, untouched } = await checked(suite);
    expect(exitCode).toBe(1);
    expect(untouched.cause).toMatch(/could read the solution at git object [0-9a-f]{40} of \/app\/\.git/);
    expect(untouched.output).toMatch(/the verify script: git object/);
  });

  const commit = 'git add . && git commit -qm one';
  test.each([
    ['a tar with another name', 'tar cf ../x.bin .', 'solve.sh in /app/x.bin'],
    [
      'a zip in a tar.gz',
      'python3 -m zipfile -c x.zip solve.sh && tar czf ../x.tgz x.zip',
      'solve.sh in x.zip',
    ],
    [
      'a file of xz',
      "python3 -c \"import lzma as l; l.open('../x', 'w').write(open('solve.sh', 'rb').read())\"",
      '/app/x',
    ],
    [
      'a packed repository in a tar.gz',
      `${repository.slice(4)}${commit} && git gc -q && tar czf ../x.tgz .git`,
      'of .git in',
    ],
    [
      'a pack alone',
      `${repository.slice(4)}${commit} && git gc -q && cp .git/objects/pack/*.pack ../x`,
      'of /app/x',
    ],
    [
      'a bundle with another name',
      `${repository.slice(4)}${commit} && git bundle create -q ../x --all`,
      'of /app/x',
    ],
    ['another end of its lines', "sed 's/$/\\r/' solve.sh > ../x", 'the solution at /app/x'],
  ])('a solution is found in %s', async (_, pack, where) => {
    const suite = suiteWith(`COPY cases /app/cases\nRUN cd cases && ${pack} && cd .. && rm -r cases\n`);
    const { exitCode, untouched } = await checked(suite);
    expect(exitCode, untouched.cause).toBe(1);
    expect(untouched.cause).toContain('an agent could read the solution at');
    expect(untouched.cause).toContain(where);
  });

  const writes =
    "cat > calc.py <<'EOF'\ndef add(a, b):\n    return mod(a + b, 7)  # seven\n    # or (less)\n\ndef sub(a, b):\n    return mod(a - b, 7)\nEOF\n";
  const fix = `--- a/n.py
+++ b/n.py
@@ -1,4 +1,4 @@
 one = first(1, 'of all')
-three = f(3)
+three = third(3, 'of all', 'in their order')
 four = fourth(4, 'of all')
 five = fifth(5, 'of all')
`;
  const fixed = fix
    .split('\n')
    .slice(3)
    .flatMap((line) => (line.startsWith('-') ? [] : [line.slice(1)]));
  const expected = 'first line of what comes out\nsecond line of what comes out\n';
  test.each([
    ['the solution, quoted', `# Notes\n\n> ${solve.trimEnd()}  \r\n\nmore\n`, 'the solution at /app/x.md'],
    ['a part of what it writes', 'x()\ndef add(a, b):\n\treturn mod(a + b, 7) # seven\ny()\n', undefined],
    [
      'what a solution writes',
      'x()\ndef add(a, b):\n\n\treturn mod(a + b, 7)  # seven\ndef sub(a, b):\n\treturn mod(a - b,\t7)\ny()\n',
      'write.sh of the solution',
    ],
    [
      'a file after a patch',
      ['zero = f(0)', ...fixed, 'six = f(6)\n'].join('\n'),
      'fix.patch of the solution',
    ],
    ['a file before a patch', fix.replaceAll(/^[ -]/gm, '').replaceAll(/^(\+|@).*\n/gm, ''), undefined],
    ['what may be input', `start\n${expected}end\n`, 'knows input from answers: /app/x.md has the lines of'],
  ])('what a larger file has is compared line by line: %s', async (_, text, where) => {
    place.write('cases/write.sh', writes);
    place.write('cases/fix.patch', fix);
    place.write('cases/expected.txt', expected);
    place.write('x.md', text);
    place.write('.dockerignore', 'suite.yaml\ncases\n');
    const files = ['solve.sh', 'write.sh', 'fix.patch'].map((name) => [`/solution/${name}`, `cases/${name}`]);
    const suite = suiteWith('COPY x.md /app/', {
      verify: undefined,
      solution: { command: ['sh', '/solution/solve.sh'], files: Object.fromEntries(files) },
      tests: {
        files: { '/tests/expected.txt': 'cases/expected.txt', '/tests/grade.sh': 'cases/grade.sh' },
        command: ['sh', '-c', 'sh /tests/grade.sh; test $? != 0; echo $? > /logs/reward'],
        rewards: { json: '/logs/reward.json', text: '/logs/reward' },
      },
    });
    const { exitCode, untouched } = await checked(suite);
    const isDoubtful = where?.startsWith('knows') === true;
    expect(exitCode, JSON.stringify(untouched)).toBe(where === undefined || isDoubtful ? 0 : 1);
    const said = isDoubtful ? untouched.notes?.join() : untouched.cause;
    if (where !== undefined) expect(said).toContain(where);
  });

  test('a search that lacks a program is named by check and in the result', async () => {
    const suite = suiteWith('RUN rm /usr/bin/od', { variables: { act: 'touch ran' } });
    const lack = 'a search for the solution and the tests of its case in archives: the image has no od';
    place.write('.dockerignore', 'suite.yaml\ncases\n');
    expect((await checked(suite)).untouched.notes).toContain(`without ${lack}`);
    const { stdout } = await offsite(place, ['run', suite, '--json']);
    const { path } = JSON.parse(stdout).runs[0].trials[0].record;
    expect(JSON.parse(readFileSync(path, 'utf8')).sandboxLacks).toContain(lack);
  });

  test('the solution of another case is found, unless the case gives it to the agent itself', async () => {
    place.write('solve.sh', solve);
    const one = { solution: { file: 'solve.sh' }, verify: 'grep -qx forty-two answer.txt' };
    const other = { solution: 'touch other', verify: 'test -f other' };
    const files = { 'start.sh': 'solve.sh' };
    const suite = place.suite({
      cases: [
        { id: 'one', ...one },
        { id: 'finds', prepare: `printf '${solve.trimEnd()}' > old`, ...other },
        { id: 'gets', environment: { files }, ...other },
      ],
    });
    const { stdout } = await offsite(place, ['check', suite, '--json']);
    const states = JSON.parse(stdout).cases.map((each: { states: unknown[] }) => each.states[0]);
    expect(states.map(({ verdicts }: { verdicts: string[] }) => verdicts)).toEqual([
      ['failed'],
      ['void'],
      ['failed'],
    ]);
    expect(states[1].cause).toContain('could read the solution of case one at /workspace/old');
  });

  test('a case of a later commit may have the fix of an earlier case in its files', async () => {
    const added = [
      "  if (!Array.isArray(items)) throw new TypeError('no list: ' + typeof items);",
      '  if (items.length === 0) return undefined;',
      '  const index = Math.max(0, items.length - 1);',
      '  return items[index] ?? items.findLast((item) => item !== null);',
    ];
    const before = ['export function lastOf(items) {', '  return items[items.length];', '}'];
    const after = [before[0], ...added, before[2]];
    const hunk = [` ${before[0]}`, `-${before[1]}`, ...added.map((line) => `+${line}`), ` ${before[2]}`];
    place.write('fix.patch', ['--- a/last.js', '+++ b/last.js', '@@ -1,3 +1,6 @@', ...hunk, ''].join('\n'));
    const write = (lines: (string | undefined)[]) => `cat > last.js <<'END'\n${lines.join('\n')}\nEND\n`;
    const solution = {
      command: ['git', 'apply', '/solution/fix.patch'],
      files: { '/solution/fix.patch': 'fix.patch' },
    };
    const suite = place.suite({
      cases: [
        { id: 'earlier', prepare: write(before), solution, verify: 'grep -q Math.max last.js' },
        { id: 'later', prepare: write(after), solution: 'touch other', verify: 'test -f other' },
      ],
    });
    const { exitCode, stdout } = await offsite(place, ['check', suite]);
    expect(exitCode, stdout).toBe(0);
  });

  test('an archive that cannot be opened there is named in the result', async () => {
    const file = String.raw`printf '7z\274\257\047\034 nothing that is read' > /app/old.7z`;
    const suite = suiteWith(`RUN ${file}\n`, { variables: { act: 'touch ran' } });
    const { stdout } = await offsite(place, ['run', suite, '--json']);
    const { path } = JSON.parse(stdout).runs[0].trials[0].record;
    expect(JSON.parse(readFileSync(path, 'utf8')).sandboxLacks).toContainEqual(
      expect.stringContaining('in /app/old.7z, which cannot be searched there'),
    );
  });

  test('a file that the case itself gives to the agent may be there, and so may a copy in the build context', async () => {
    place.write('input/data.csv', 'a,b,c\n1,2,3\n4,5,6\n');
    place.write('cases/data.csv', 'a,b,c\n1,2,3\n4,5,6\n');
    const suite = suiteWith('COPY input /app/input', {
      environment: { build: { context: '.' }, files: { 'grade.sh': 'cases/grade.sh' } },
      verify: undefined,
      solution: { command: ['sh', '/solution/solve.sh'], files: { '/solution/solve.sh': 'cases/solve.sh' } },
      tests: {
        files: { '/tests/grade.sh': 'cases/grade.sh', '/tests/data.csv': 'cases/data.csv' },
        command: ['sh', '-c', 'sh /tests/grade.sh; test $? != 0; echo $? > /logs/reward'],
        rewards: { json: '/logs/reward.json', text: '/logs/reward' },
      },
    });
    const { exitCode, untouched } = await checked(suite);
    expect(untouched.cause).toContain('reward is 0, below 1');
    expect(exitCode).toBe(0);
  });

  const later =
    'echo one > one && git add -A && git commit -qm one && echo two > one && git commit -qam "the way to do it"';

  test.each([
    ['on a branch', `${later} && git switch -qc work HEAD~1`],
    ['that nothing names', `${later} && git reset -q --hard HEAD~1 && git reflog expire --expire=now --all`],
    [
      'in a bundle',
      `${later} && git bundle create -q /tmp/app.bundle main && git reset -q --hard HEAD~1 && git reflog expire --expire=now --all && git gc -q --prune=now`,
    ],
  ])('later commits %s make a case unsound, with what they are', async (where, commands) => {
    const { exitCode, untouched } = await checked(suiteWith(repository + commands));
    expect(exitCode).toBe(1);
    expect(untouched.cause).toMatch(
      where === 'in a bundle'
        ? /commits that are not in the history of HEAD: the bundle \/tmp\/app\.bundle/
        : /not in the history of HEAD: 1 commit of \/app\/\.git: [0-9a-f]{12} the way to do it/,
    );
  });

  test('later commits may be what a case is about: its solution then works with them', async () => {
    const suite = suiteWith(`${repository}${later} && git switch -qc work HEAD~1`, {
      solution: 'git merge -q main',
      verify: 'grep -qx two one',
    });
    expect((await checked(suite)).exitCode).toBe(0);
  });

  test.each([
    ['later', '2020-01-03T00:00:00Z', 'void'],
    ['earlier', '2020-01-01T00:00:00Z', 'failed'],
  ])('a row is about one commit: a commit of another branch that is %s than it', async (_, date, verdict) => {
    const commit = (at: string, name: string) =>
      `echo ${name} > ${name} && git add -A && GIT_COMMITTER_DATE=${at} git commit -qm ${name}`;
    const commands = [
      commit('2019-01-01T00:00:00Z', 'start'),
      'git switch -qc other',
      commit(date, 'other'),
      'git switch -q main',
      commit('2020-01-02T00:00:00Z', 'one'),
      'git tag base',
      // As images of SWE-bench have it.
      'git commit -q --allow-empty -m environment',
    ];
    const suite = suiteWith(repository + commands.join(' && '), {
      verify: undefined,
      tests: {
        in: 'fresh',
        brings: 'workspace',
        patch: { source: '', base: 'base' },
        command: ['echo', '=== short test summary info ===\nFAILED t.py::t\n=== 1 failed in 1s ==='],
        named: { failToPass: ['t.py::t'] },
      },
    });
    const { untouched } = await checked(suite);
    expect(untouched.verdicts, untouched.cause).toEqual([verdict]);
    if (verdict === 'void') expect(untouched.cause).toMatch(/1 commit of \/app\/\.git: [0-9a-f]{12} other;/);
  });
});
