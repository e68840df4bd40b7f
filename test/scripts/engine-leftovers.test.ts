import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { access, mkdir, mkdtempDisposable, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { clearLeftovers, isRunning } from '../../scripts/set-up/clear-leftovers.ts';

async function processFile(text: string, program = 'sleep') {
  const folder = await mkdtempDisposable(join(tmpdir(), 'offsite-leftovers-'));
  const file = { path: join(folder.path, 'daemon.pid'), program };
  await writeFile(file.path, text);
  return { folder: folder.path, file, [Symbol.asyncDispose]: () => folder[Symbol.asyncDispose]() };
}

async function sleeper() {
  const child = spawn('sleep', ['60'], { stdio: 'ignore' });
  await once(child, 'spawn');
  return { pid: child.pid, [Symbol.dispose]: () => void child.kill('SIGKILL') };
}

describe('the process id file of an engine', () => {
  test('is left alone while its program runs', async () => {
    using running = await sleeper();
    await using it = await processFile(`${running.pid}\n`);
    expect(await clearLeftovers([it.file])).toEqual([]);
    expect(await isRunning(it.file)).toBe(true);
  });

  test('is removed when its process is gone', async () => {
    const gone = spawn('true');
    await once(gone, 'exit');
    await using it = await processFile(String(gone.pid));
    expect(await clearLeftovers([it.file])).toEqual([it.file.path]);
    await expect(access(it.file.path)).rejects.toThrow('ENOENT');
  });

  test('is removed when its number belongs to another program by now', async () => {
    using running = await sleeper();
    await using it = await processFile(String(running.pid), 'dockerd');
    expect(await clearLeftovers([it.file])).toEqual([it.file.path]);
  });

  test('is removed when its process was killed and nobody has reaped it', async () => {
    await using it = await processFile('77');
    await mkdir(join(it.folder, 'proc/77'), { recursive: true });
    await writeFile(join(it.folder, 'proc/77/stat'), '77 (sleep) Z 1 77 77 0 -1');
    expect(await clearLeftovers([it.file], join(it.folder, 'proc'))).toEqual([it.file.path]);
  });

  test('is removed when its content is no number', async () => {
    await using it = await processFile('');
    expect(await clearLeftovers([it.file])).toEqual([it.file.path]);
  });

  test('that is not there is nothing to do', async () => {
    expect(await clearLeftovers([{ path: '/nonexistent/docker.pid', program: 'dockerd' }])).toEqual([]);
  });
});
