import { afterAll, expect, test } from 'vitest';
import { npmInstall } from '../../src/harness/npm-cli.ts';
import { shell, startedContainer, testEngine } from '../engine/engine-fixture.ts';

const engine = await testEngine();
afterAll(() => engine[Symbol.asyncDispose]());

/** Installs a CLI of this source in a new container, from a folder in place of npm's registry. */
async function installed(source: string) {
  await using container = await startedContainer(engine, { memoryBytes: 2 ** 30 });
  const manifest = { name: 'cli', version: '1.0.0', bin: { cli: 'cli.js' } };
  await container.put(
    [
      { path: 'cli@1.0.0/package.json', content: JSON.stringify(manifest) },
      { path: 'cli@1.0.0/cli.js', content: `#!/usr/bin/env node\n${source}`, mode: 0o755 },
    ],
    '/',
  );
  const script = npmInstall({ package: '/cli', version: '1.0.0', program: 'cli' });
  const result = await shell(container, `(${script}\n) 2>&1 && cat /offsite/cli/cli.version`);
  if (result.ended !== 'exited') throw new Error(result.ended);
  return { exitCode: result.exitCode, output: result.stdout.text };
}

test('an install asks the CLI for its version', async () => {
  expect(await installed('console.log("cli 2.4.6 (codename 7)")')).toEqual({
    exitCode: 0,
    output: expect.stringMatching(/\n2\.4\.6\n$/),
  });
});

test('an install whose CLI does not start fails, although its error names a version', async () => {
  const { exitCode, output } = await installed('throw new Error("missing optional dependency")');
  expect(exitCode).toBe(1);
  expect(output).toMatch(/missing optional dependency.*Node\.js v24.*cli does not start\n$/s);
});
