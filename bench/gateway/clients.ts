import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { execa } from 'execa';
import type { Container } from '../../src/engine/container.ts';
import type { ClientOrder, ClientTimes } from './client-order.ts';

const file = fileURLToPath(new URL('client.ts', import.meta.url));
const fileInSandbox = '/bench/client.ts';

/** Puts the client in a sandbox, which must have Node. */
export async function putClient(sandbox: Container): Promise<void> {
  await sandbox.put([{ path: fileInSandbox, content: await readFile(file) }]);
}

export async function onHost(order: ClientOrder): Promise<ClientTimes> {
  const { stdout } = await execa(process.execPath, [file, JSON.stringify(order)]);
  return JSON.parse(stdout) as ClientTimes;
}

export async function inSandbox(sandbox: Container, order: ClientOrder): Promise<ClientTimes> {
  const argv = ['node', fileInSandbox, JSON.stringify(order)];
  const result = await sandbox.exec({ argv, timeoutMs: 300_000 });
  if (result.ended === 'exited' && result.exitCode === 0)
    return JSON.parse(result.stdout.text) as ClientTimes;
  throw new Error(`the client in the sandbox ${result.ended}: ${result.stderr.text}`);
}
