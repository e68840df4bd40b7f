import { createHash } from 'node:crypto';
import { dirname } from 'node:path';
import { beforeAll, describe, expect, test } from 'vitest';
import { type CarryRequest, leadsInside } from '../../src/engine/archive/carry.ts';
import type { Container } from '../../src/engine/container.ts';
import { shell, startedContainer } from './engine-fixture.ts';
import { engine, sharedEngine } from './shared-engine.ts';

sharedEngine();

const all: CarryRequest = {
  keeps: () => true,
  links: 'inside',
  maxBytes: 64 * 1024 ** 2,
  maxEntries: 1000,
  signal: new AbortController().signal,
};

/** As a workspace is copied. */
const whole: CarryRequest = { ...all, links: 'all', maxEntries: Number.POSITIVE_INFINITY };

let from: Container;
let to: Container;
beforeAll(async () => {
  [from, to] = await Promise.all([startedContainer(engine), startedContainer(engine)]);
});

let count = 0;

/** A folder of the first container, alone in its parent, in which a script ran. Each path is as long. */
async function folderOf(script: string): Promise<string> {
  const path = `/wrk${(count++).toString(36)}/out`;
  const made = await shell(from, `set -e; mkdir -p ${path}; cd ${path}; ${script}`);
  expect(made.ended === 'exited' && made.exitCode, made.stderr.text).toBe(0);
  return path;
}

async function said(container: Container, script: string): Promise<string> {
  const { stdout, stderr } = await shell(container, script);
  return stdout.text + stderr.text;
}

describe.concurrent('what is carried to another container', () => {
  test('are files, folders and inner links, with any names, owners and sizes', async () => {
    const script = [
      `printf a > "$(printf 'line\\nbreak')"; printf b > "$(printf 'byte\\377')"; printf c > 'back\\x41'`,
      `printf d > "$(printf 'n%.0s' $(seq 200))"; mkdir -m 1777 -p deep/er; : > empty`,
      'chown -R 1234:4321 deep; printf e > deep/er/e; ln deep/er/e deep/er/same; ln -s er/e deep/link',
      'ln -s ../empty deep/up; ln -s "$PWD/empty" whole; truncate -s 2M sparse; chmod 640 empty',
      'touch -d @1000000000 empty; printf f > ünïcode',
    ].join('\n');
    const out = await folderOf(script);
    const { leftOut, bytes } = await from.carryTo(to, out, all);
    expect(leftOut).toEqual([]);
    expect(bytes).toBe(2 * 1024 ** 2 + 6);
    const list = `cd ${out} && find . -printf "%p %y %m %U:%G %s %T@ %n %l\\n" | LC_ALL=C sort | sed -E "s/\\.[0-9]{10} / /" | od -c`;
    // Folders get times and sizes of their own. Times are kept to the second.
    const withoutFolders = list.replace('find .', 'find . ! -type d');
    expect(await said(to, withoutFolders)).toBe(await said(from, withoutFolders));
    const folders = `cd ${out} && find . -type d -printf "%p %m %U:%G\\n" | sort`;
    expect(await said(to, folders)).toBe(await said(from, folders));
    const sums = `cd ${out} && find . -type f -exec sha256sum {} + | LC_ALL=C sort`;
    expect(await said(to, sums)).toBe(await said(from, sums));
  });

  test('are no devices, pipes, links that lead elsewhere, and bits that change the user', async () => {
    const script = [
      'mkfifo pipe; mkfifo one; ln one two; ln -s /etc/passwd absolute; ln -s ../../etc/passwd up; mkdir d',
      'ln -s . here; ln -s here/../../etc around; ln -s ../../etc d/up; ln -s .. top; ln absolute hard',
      'cp /bin/true program; chmod 6755 program; mkdir -m 2775 group; ln -s "$PWD/../../etc" dotted',
    ].join('\n');
    const out = await folderOf(script);
    const { leftOut } = await from.carryTo(to, out, all);
    expect(leftOut.toSorted()).toEqual(
      ['absolute', 'around', 'd/up', 'dotted', 'hard', 'one', 'pipe', 'top', 'two', 'up'].toSorted(),
    );
    expect(await said(to, `cd ${out} && find . -printf "%p %y %m\\n" | sort`)).toBe(
      '. d 755\n./d d 755\n./group d 775\n./here l 777\n./program f 755\n',
    );
  });

  test('are as they were in a copy of a workspace: pipes, links, and bits that change the user', async () => {
    const script =
      'mkfifo pipe; ln -s /etc/passwd link; cp /bin/true program; chmod 6755 program; mkdir -m 2775 group';
    const out = await folderOf(script);
    expect((await from.carryTo(to, out, whole)).leftOut).toEqual([]);
    expect(await said(to, `cd ${out} && find . -printf "%p %y %m %l\\n" | sort`)).toBe(
      '. d 755 \n./group d 2775 \n./link l 777 /etc/passwd\n./pipe p 644 \n./program f 6755 \n',
    );
  });

  test('leave out what is not to be kept, and hard links to it', async () => {
    const script =
      'mkdir -p .git/objects keep; echo x > .git/objects/o; echo y > keep/y; ln .git/objects/o keep/o; ln keep/y z';
    const out = await folderOf(script);
    const keeps = (path: string) => path !== '.git';
    const { leftOut } = await from.carryTo(to, out, { ...all, keeps });
    expect(leftOut).toEqual(['keep/o']);
    expect(await said(to, `cd ${out} && find . -type f -printf "%p %n\\n" | sort`)).toBe(
      './keep/y 2\n./z 2\n',
    );
  });

  test('may be one file, which replaces a link, and what else is there stays', async () => {
    const out = await folderOf('echo new > file');
    await shell(to, `mkdir -p ${out}; ln -s /etc/passwd ${out}/file; echo mine > ${out}/other`);
    await from.carryTo(to, `${out}/file`, all);
    expect(await said(to, `cd ${out}; cat file other; test -L file || head -c 4 /etc/passwd`)).toBe(
      'new\nmine\nroot',
    );
  });

  test('keep their holes, whose length does not count', async () => {
    const script = [
      // The long one has the holes of all looked for.
      'truncate -s 200G all-hole; printf end | dd of=data-last bs=1 seek=5000000 status=none',
      'printf begin > data-first; truncate -s 4M data-first; mkdir -p d; for n in $(seq 50); do truncate -s 1T d/$n; done',
      'head -c 1M /dev/urandom | dd of=data-within bs=1M seek=3 conv=notrunc status=none; truncate -s 6M data-within',
      'ln all-hole same-hole; printf x > plain; chown 1234:4321 data-last; chmod 640 data-last; ln -s plain link',
      `truncate -s 30M "$(printf 'line\\nbreak \\377')"; mkfifo pipe`,
    ].join('\n');
    const out = await folderOf(script);
    await shell(to, `mkdir -p ${dirname(out)}`);
    const list = `cd ${out} && find . ! -type d ! -name pipe -printf "%p %y %m %U:%G %s %n %l\n" | sort`;
    const sums = `cd ${out} && sha256sum data-* plain`;
    const contents = async (container: Container) => [
      await said(container, list),
      await said(container, sums),
    ];
    const source = await contents(from);
    const carried = await from.carryTo(to, out, all);
    expect(carried.leftOut).toEqual(['pipe']);
    expect(carried.bytes).toBeLessThan(2 * 1024 ** 2);
    expect(await contents(to)).toEqual(source);
    expect(Number.parseInt(await said(to, `du -sm ${out}`), 10)).toBeLessThan(8);
    await shell(to, `rm -rf ${out}`);
    await from.carryTo(to, out, whole);
    expect(await said(to, `test -p ${out}/pipe && echo pipe`)).toBe('pipe\n');
    expect(await contents(to)).toEqual(source);
    expect(Number.parseInt(await said(to, `du -sm ${out}`), 10)).toBeLessThan(8);
  });

  test('with holes are copied also beside paths beyond PATH_MAX, without these', async () => {
    // A file and its folder that just fit, a sibling that does not, and 20 folders below. A hard link to the
    // sibling is copied if it is read first.
    const nested = [
      'import os',
      'for n in range(19): os.mkdir("x" * 200); os.chdir("x" * 200)',
      'os.mkdir("y" * 200); os.chdir("y" * 200)',
      'open("f" * 65, "w").write("fits"); open("g" * 66, "w").write("does not")',
      'for n in range(20): os.mkdir("z" * 200); os.chdir("z" * 200)',
      'for n in range(21): os.chdir("..")',
      'os.link("y" * 200 + "/" + "g" * 66, "a")',
    ].join('\n');
    const out = await folderOf(`truncate -s 200M sparse; python3 -c '${nested}'`);
    await shell(to, `mkdir -p ${dirname(out)}`);
    const counted = () =>
      said(
        to,
        `cd ${out} && find . -type d | wc -l; find . -type f ! -name a | sed "s:.*/::" | sort; wc -c < sparse; rm -rf ${out}`,
      );
    const copied = `21\n${'f'.repeat(65)}\nsparse\n209715200\n`;
    await from.carryTo(to, out, whole);
    expect(await counted()).toBe(copied);
    const { leftOut } = await from.carryTo(to, out, all);
    expect(await counted()).toBe(copied);
    const names = leftOut.map((path) => path.slice(path.lastIndexOf('/') + 1)).toSorted();
    expect(names.filter((name) => name !== 'a')).toEqual(['g'.repeat(66), 'z'.repeat(200)]);
  });

  test('are read with their holes, as programs see them, if large ones are read', async () => {
    const script =
      'truncate -s 200G b-large; for n in a c; do printf begin > $n; truncate -s 65M $n; printf end >> $n; done; printf x > z';
    const out = await folderOf(script);
    const found: string[] = [];
    for await (const { path, content } of from.archive(out, undefined, 1e9))
      if (path === 'b-large') {
        const first = content()[Symbol.asyncIterator]().next();
        await expect(first).rejects.toMatchObject({ code: 'ENGINE_TOO_LARGE' });
        break;
      }
    for await (const { path, type, size, content } of from.archive(out)) {
      if (type !== 'file' || path === 'b-large') found.push(`${path} ${type} ${size}`);
      else {
        const hash = createHash('sha256');
        for await (const chunk of content()) hash.update(chunk);
        found.push(`${hash.digest('hex')}  ${path}`);
      }
    }
    const sums = (await said(from, `cd ${out}; sha256sum a c z`)).trim().split('\n');
    expect(found.toSorted()).toEqual([' folder 0', `b-large file ${200 * 1024 ** 3}`, ...sums].toSorted());
  });

  test('are refused if they are too large, or too many', async () => {
    const large = await folderOf('head -c 2M /dev/zero > dense');
    await expect(from.carryTo(to, large, { ...all, maxBytes: 1024 ** 2 })).rejects.toMatchObject({
      code: 'ENGINE_TOO_LARGE',
    });
    const many = await folderOf('for n in $(seq 1100); do : > $n; done');
    await expect(from.carryTo(to, many, all)).rejects.toMatchObject({
      code: 'ENGINE_TOO_LARGE',
    });
    await expect(from.carryTo(to, '/work-none', all)).rejects.toMatchObject({
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
