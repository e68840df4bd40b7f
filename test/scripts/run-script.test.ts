import { mkdtempDisposable, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { execa } from 'execa';
import { describe, expect, test } from 'vitest';

const repository = join(import.meta.dirname, '../..');

/** Runs a script whose work is the given text, with `signal` and `OffsiteError` in reach. */
async function script(work: string) {
  const folder = await mkdtempDisposable(join(tmpdir(), 'offsite-script-'));
  const path = join(folder.path, 'script.ts');
  await writeFile(
    path,
    `import { runScript } from '${repository}/scripts/run-script.ts';
     import { runQuietly, runTool } from '${repository}/scripts/run-tool.ts';
     import { OffsiteError } from '${repository}/src/base/offsite-error.ts';
     await runScript(async (signal) => { ${work} }, () => '0 passed, 1 failed');`,
  );
  return {
    run: () => execa(process.execPath, [path], { reject: false }),
    [Symbol.asyncDispose]: () => folder[Symbol.asyncDispose](),
  };
}

describe('a script', () => {
  test("ends with its work's exit code, and with its last line", async () => {
    await using it = await script('console.log("working"); return 4;');
    expect(await it.run()).toMatchObject({ stdout: 'working\n0 passed, 1 failed', exitCode: 4 });
  });

  test('tells what the user can do, without a stack, and still prints its last line', async () => {
    await using it = await script(
      `throw new OffsiteError('No engine.', { code: 'ENGINE_MISSING', kind: 'input', hint: 'Install one.' });`,
    );
    const { stdout, stderr, exitCode } = await it.run();
    expect(stderr.trim()).toBe('No engine.\nInstall one.');
    expect({ stdout, exitCode }).toEqual({ stdout: '0 passed, 1 failed', exitCode: 2 });
  });

  test('shows the stack of a defect, and still prints its last line', async () => {
    await using it = await script(`throw new TypeError('a defect');`);
    const { stdout, stderr, exitCode } = await it.run();
    expect(stderr).toMatch(/TypeError: a defect\n\s+at /);
    expect({ stdout, exitCode }).toEqual({ stdout: '0 passed, 1 failed', exitCode: 1 });
  });

  test('keeps what a program prints, in its order', async () => {
    const program = `console.log('one'); console.error('two'); process.exitCode = 3;`;
    await using it = await script(
      `const { exitCode, output } = await runQuietly(process.execPath, ['-e', ${JSON.stringify(program)}], signal);
       console.log(output.split('\\n').join(' then ')); return exitCode;`,
    );
    expect(await it.run()).toMatchObject({ stdout: 'one then two then \n0 passed, 1 failed', exitCode: 3 });
  });

  test('lets a program of its own finish when it is interrupted, also when npm delivers that twice', async () => {
    const program = `process.on('SIGTERM', () => setTimeout(() => { console.log('put away'); process.exit(0); }, 100));
      setInterval(() => {}, 1000); console.log('ready');`;
    await using it = await script(
      `return runTool(process.execPath, ['-e', ${JSON.stringify(program)}], signal);`,
    );
    const running = it.run();
    for await (const line of running) {
      if (line !== 'ready') continue;
      running.kill('SIGTERM');
      setTimeout(() => running.kill('SIGTERM'), 30);
    }
    const { stdout, exitCode } = await running;
    expect(stdout).toBe('ready\nput away\n0 passed, 1 failed');
    expect(exitCode).toBe(143);
  });
});
