import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { execa } from 'execa';
import type { Container } from '../../src/engine/container.ts';

/** A client that runs alone: `node FILE ORDER` prints what it measured as JSON. */
export interface Client<Order, Times> {
  onHost(order: Order): Promise<Times>;
  /** Puts the file in a sandbox, which must have Node. */
  put(sandbox: Container): Promise<void>;
  inSandbox(sandbox: Container, order: Order): Promise<Times>;
}

/** `name`: its file, beside this one. */
export function clientIn<Order, Times>(name: string): Client<Order, Times> {
  const file = fileURLToPath(new URL(name, import.meta.url));
  const fileInSandbox = `/bench/${name}`;
  return {
    async onHost(order) {
      const { stdout } = await execa(process.execPath, [file, JSON.stringify(order)]);
      return JSON.parse(stdout) as Times;
    },
    async put(sandbox) {
      await sandbox.put([{ path: fileInSandbox, content: await readFile(file) }]);
    },
    async inSandbox(sandbox, order) {
      const argv = ['node', fileInSandbox, JSON.stringify(order)];
      const result = await sandbox.exec({ argv, timeoutMs: 300_000 });
      if (result.ended === 'exited' && result.exitCode === 0) return JSON.parse(result.stdout.text) as Times;
      throw new Error(`${name} in the sandbox ${result.ended}: ${result.stderr.text}`);
    },
  };
}
