import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { CarryRequest } from '../../src/engine/archive/carry.ts';
import { leadsInside } from '../../src/engine/archive/leads-inside.ts';
import type { Container } from '../../src/engine/container.ts';
import type { Engine } from '../../src/engine/engine.ts';
import { shell, startedContainer, testEngine } from './engine-fixture.ts';

let engine: Engine;
beforeAll(async () => {
  engine = await testEngine();
}, 60_000);
afterAll(() => engine[Symbol.asyncDispose](), 60_000);

const all: CarryRequest = {
  keeps: () => true,
  links: 'inside',
  maxBytes: 64 * 1024 ** 2,
  maxEntries: 1000,
  signal: new AbortController().signal,
};

/** Two containers, the first of which ran a script. */
async function pair(script: string, security: 'compatible' | 'strict' = 'compatible') {
  const [from, to] = await Promise.all([
    startedContainer(engine, { security }),
    startedContainer(engine, { security }),
  ]);
  const made = await shell(from, `set -e; mkdir -p /work/out; cd /work/out; ${script}`);
  expect(made.ended === 'exited' && made.exitCode, made.stderr.text).toBe(0);
  return {
    ...{ from, to },
    async [Symbol.asyncDispose]() {
      await Promise.all([from.remove(), to.remove()]);
    },
  };
}

async function said(container: Container, script: string): Promise<string> {
  const { stdout, stderr } = await shell(container, script);
  return stdout.text + stderr.text;
}

describe.concurrent('what is carried to another container', { timeout: 120_000 }, () => {
  test('are files, folders and inner links, with any names, owners and sizes', async () => {
    const script = [
      `printf a > "$(printf 'line\\nbreak')"; printf b > "$(printf 'byte\\377')"; printf c > 'back\\x41'`,
      `printf d > "$(printf 'n%.0s' $(seq 200))"; mkdir -m 1777 -p deep/er; : > empty`,
      'chown -R 1234:4321 deep; printf e > deep/er/e; ln deep/er/e deep/er/same; ln -s er/e deep/link',
      'ln -s ../empty deep/up; ln -s /work/out/empty whole; truncate -s 20M sparse; chmod 640 empty',
      'touch -d @1000000000 empty; printf f > ünïcode',
    ].join('\n');
    await using made = await pair(script);
    const { leftOut, bytes } = await made.from.carryTo(made.to, '/work/out', all);
    expect(leftOut).toEqual([]);
    expect(bytes).toBe(20 * 1024 ** 2 + 6);
    const list =
      'cd /work/out && find . -printf "%p %y %m %U:%G %s %T@ %n %l\\n" | LC_ALL=C sort | sed -E "s/\\.[0-9]{10} / /" | od -c';
    // Folders get times and sizes of their own. Times are kept to the second.
    const withoutFolders = list.replace('find .', 'find . ! -type d');
    expect(await said(made.to, withoutFolders)).toBe(await said(made.from, withoutFolders));
    const folders = 'cd /work/out && find . -type d -printf "%p %m %U:%G\\n" | sort';
    expect(await said(made.to, folders)).toBe(await said(made.from, folders));
    const sums = 'cd /work/out && find . -type f -exec sha256sum {} + | LC_ALL=C sort';
    expect(await said(made.to, sums)).toBe(await said(made.from, sums));
  });

  test('are no devices, pipes, links that lead elsewhere, and bits that change the user', async () => {
    const script = [
      'mkfifo pipe; mkfifo one; ln one two; ln -s /etc/passwd absolute; ln -s ../../etc/passwd up; mkdir d',
      'ln -s . here; ln -s here/../../etc around; ln -s ../../etc d/up; ln -s .. top; ln absolute hard',
      'cp /bin/true program; chmod 6755 program; mkdir -m 2775 group; ln -s /work/out/../../etc dotted',
    ].join('\n');
    await using made = await pair(script);
    const { leftOut } = await made.from.carryTo(made.to, '/work/out', all);
    expect(leftOut.toSorted()).toEqual(
      ['absolute', 'around', 'd/up', 'dotted', 'hard', 'one', 'pipe', 'top', 'two', 'up'].toSorted(),
    );
    expect(await said(made.to, 'cd /work/out && find . -printf "%p %y %m\\n" | sort')).toBe(
      '. d 755\n./d d 755\n./group d 775\n./here l 777\n./program f 755\n',
    );
  });

  test('leave out what is not to be kept, and hard links to it', async () => {
    const script =
      'mkdir -p .git/objects keep; echo x > .git/objects/o; echo y > keep/y; ln .git/objects/o keep/o; ln keep/y z';
    await using made = await pair(script);
    const keeps = (path: string) => path !== '.git';
    const { leftOut } = await made.from.carryTo(made.to, '/work/out', { ...all, keeps });
    expect(leftOut).toEqual(['keep/o']);
    expect(await said(made.to, 'cd /work/out && find . -type f -printf "%p %n\\n" | sort')).toBe(
      './keep/y 2\n./z 2\n',
    );
  });

  test('may be one file, which replaces a link, and what else is there stays', async () => {
    await using made = await pair('echo new > file');
    await shell(made.to, 'mkdir -p /work/out; ln -s /etc/passwd /work/out/file; echo mine > /work/out/other');
    await made.from.carryTo(made.to, '/work/out/file', all);
    expect(await said(made.to, 'cd /work/out; cat file other; test -L file || head -c 4 /etc/passwd')).toBe(
      'new\nmine\nroot',
    );
  });

  test('are refused if they are too large, or too many, without reading a sparse terabyte', async () => {
    await using large = await pair('truncate -s 1T sparse');
    await expect(large.from.carryTo(large.to, '/work/out', all)).rejects.toMatchObject({
      code: 'ENGINE_TOO_LARGE',
    });
    await using many = await pair('for n in $(seq 1100); do : > $n; done');
    await expect(many.from.carryTo(many.to, '/work/out', all)).rejects.toMatchObject({
      code: 'ENGINE_TOO_LARGE',
    });
    await expect(many.from.carryTo(many.to, '/work/none', all)).rejects.toMatchObject({
      code: 'ENGINE_NOT_FOUND',
    });
  });
});

test.each([
  ['a', 'b', true],
  ['a', '/top/b', true],
  ['a', '/top', true],
  ['a', '/topper', false],
  ['a', '/top/../etc', false],
  ['a', '..', false],
  ['d/a', '..', true],
  ['d/a', '../..', false],
  ['d/a', './.././b', true],
  ['d/a', 'b/../c', false],
  ['d/e/a', '../../b', true],
  ['d/e/a', '../../../b', false],
  ['', 'b', false],
])('the link %s to %s leads inside: %s', (path, target, inside) => {
  expect(leadsInside('/top', path, target)).toBe(inside);
});
