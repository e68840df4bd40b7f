import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';

/** Another agent: a process of its own that holds one container. */
export interface AnotherAgent {
  process: ChildProcess;
  instance: string;
  containerId: string;
  /** Ends it as SIGKILL does. */
  kill(): Promise<void>;
}

/**
 * Starts another agent.
 *
 * @param host the address of its engine; default: the machine's own
 * @param within a program that starts it, with its arguments
 */
export async function anotherAgent({
  host,
  within = [],
}: {
  host?: string;
  within?: string[];
} = {}): Promise<AnotherAgent> {
  const program = new URL('./agent-process.ts', import.meta.url).pathname;
  const [file = '', ...args] = [...within, process.execPath, program];
  const child = spawn(file, args, {
    stdio: ['ignore', 'pipe', 'inherit'],
    env: { ...process.env, ...(host !== undefined && { DOCKER_HOST: host }) },
  });
  const closed = once(child, 'close');
  const [line] = await once(createInterface({ input: child.stdout }), 'line');
  const kill = async () => {
    child.kill('SIGKILL');
    await closed;
  };
  return { process: child, ...JSON.parse(line), kill };
}
