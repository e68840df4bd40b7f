import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Container } from '../../src/engine/container.ts';
import { copyWorkspace } from '../../src/validate/workspace-copy.ts';
import { openValidatorBench, type ValidatorBench } from './validator-bench.ts';

let bench: ValidatorBench;
beforeAll(async () => {
  bench = await openValidatorBench();
});
afterAll(() => bench?.[Symbol.asyncDispose]());

const signal = new AbortController().signal;
const copy = (from: Container, to: Container, maxBytes = 1e8) =>
  copyWorkspace(from, to, { maxBytes, signal });

async function shell(container: Container, script: string): Promise<string> {
  const { stdout, stderr } = await container.exec({
    argv: ['bash', '-c', script],
    cwd: '/',
    timeoutMs: 50_000,
  });
  return stdout.text + stderr.text;
}

const listing = `cd /workspace && find . -printf '%p %y %m %U:%G %n %Ty%Tm%Td%TH%TM %l\\n' | grep -v '^\\. ' | sort; cat d/*`;

test('a copied workspace has the same names, owners, modes, times and links, and nothing of what was there', async () => {
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
  expect(await copy(graded, fresh)).toEqual({ kind: 'copied' });
  expect(await shell(fresh, listing)).toBe(await shell(graded, listing));
  await Promise.all([graded.remove(), fresh.remove()]);
});

test('what is no folder, or too large, is refused and says why, and the fresh sandbox stays as good as it was', async () => {
  const [graded, fresh] = [await bench.another(), await bench.another()];
  await shell(graded, 'head -c 101M /dev/zero > /workspace/large');
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
