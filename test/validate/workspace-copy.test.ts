import { afterAll, beforeAll, expect, test } from 'vitest';
import { ArchiveCopy } from '../../src/engine/archive/read.ts';
import type { Container } from '../../src/engine/container.ts';
import { readWorkspace } from '../../src/trial/collect/read-workspace.ts';
import { copyWorkspace } from '../../src/validate/workspace-copy.ts';
import { openValidatorBench, type ValidatorBench } from './validator-bench.ts';

let bench: ValidatorBench;
beforeAll(async () => {
  bench = await openValidatorBench();
});
afterAll(() => bench?.[Symbol.asyncDispose]());

const signal = new AbortController().signal;
const copy = (from: Container, to: Container) => copyWorkspace(from, to, { maxBytes: 1e6, signal });

async function shell(container: Container, script: string): Promise<string> {
  const { stdout, stderr } = await container.exec({
    argv: ['bash', '-c', script],
    cwd: '/',
    timeoutMs: 200_000,
  });
  return stdout.text + stderr.text;
}

const listing = `cd /workspace && find . -printf '%p %y %m %U:%G %n %Ty%Tm%Td%TH%TM %l\\n' | grep -v '^\\. ' | sort; cat d/*`;

test.each(['the engine', 'what was read of it'])(
  'a workspace copied from %s has the same names, owners, modes, times and links, and nothing of what was there',
  async (source) => {
    const [graded, fresh] = [await bench.another(), await bench.another()];
    await shell(
      graded,
      `cd /workspace; mkdir -m 700 d; echo hi > d/$'line\\n\\e[31m'; ln d/* hard; ln -s /etc/passwd link; ln -s nowhere dangling
mkfifo pipe; chown 7:8 d hard; chmod 4755 hard; touch -d 2001-02-03 hard; : > -- '--flag'; mkdir .hidden`,
    );
    await shell(
      fresh,
      'cd /workspace; mkdir -p old/deep .old; echo > old/deep/file; echo > .old/..x; echo > ...; echo > -f',
    );
    const before = await shell(graded, listing);
    const packed = source === 'the engine' ? undefined : new ArchiveCopy(1e6);
    if (packed) {
      await readWorkspace(graded, signal, undefined, packed);
      await shell(graded, 'rm -rf /workspace/*');
    }
    expect(await copyWorkspace(graded, fresh, { maxBytes: 1e8, packed, signal })).toEqual({ kind: 'copied' });
    expect(await shell(fresh, listing)).toBe(before);
    await Promise.all([graded.remove(), fresh.remove()]);
  },
);

test('an archive that is larger than its bound, or was not read to its end, is not kept', async () => {
  const graded = await bench.another();
  await shell(graded, 'head -c 5000 /dev/urandom > /workspace/a');
  const [small, large, cut] = [1e4, 4e3, 1e4].map((bytes) => new ArchiveCopy(bytes));
  await readWorkspace(graded, signal, undefined, small);
  await readWorkspace(graded, signal, undefined, large);
  for await (const _ of graded.archive('/workspace', signal, undefined, cut)) break;
  expect([small, large, cut].map((copy) => copy?.read() !== undefined)).toEqual([true, false, false]);
  await graded.remove();
});

test('what is no folder, or too large, is refused and says why, and the fresh sandbox stays as good as it was', async () => {
  const [graded, fresh] = [await bench.another(), await bench.another()];
  await shell(graded, 'head -c 2M /dev/zero > /workspace/large');
  expect(await copy(graded, fresh)).toEqual({ kind: 'refused', why: 'is larger than the sandbox allows' });
  await shell(graded, 'rm /workspace/large; mv /workspace /elsewhere; ln -s /elsewhere /workspace');
  expect(await copy(graded, fresh)).toEqual({ kind: 'refused', why: 'is no longer a folder' });
  await shell(graded, 'rm /workspace');
  expect(await copy(graded, fresh)).toEqual({ kind: 'refused', why: 'no longer exists' });
  await shell(graded, 'mkdir /workspace; echo > /workspace/a');
  expect(await copy(graded, fresh)).toEqual({ kind: 'copied' });
  expect(await shell(fresh, 'ls -A /workspace')).toBe('a\n');
  await Promise.all([graded.remove(), fresh.remove()]);
});
