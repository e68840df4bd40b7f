import { constants } from 'node:os';
import { execa } from 'execa';
import { OffsiteError } from '../src/offsite-error.ts';
import { Interruption } from './interruption.ts';

/**
 * Runs a program with this process's terminal and returns its exit code (128 plus the signal's number if a
 * signal ended it). If this process is interrupted, it passes the signal on and waits for the program to end.
 */
export async function runTool(
  command: string,
  args: readonly string[],
  signal: AbortSignal,
  env: NodeJS.ProcessEnv = process.env,
): Promise<number> {
  signal.throwIfAborted();
  const tool = execa(command, args, {
    stdio: 'inherit',
    reject: false,
    preferLocal: true,
    env,
    extendEnv: false,
  });
  const passOn = () => {
    const name = signal.reason instanceof Interruption ? signal.reason.signalName : 'SIGTERM';
    // A terminal's Ctrl-C reaches the program by itself, and a second one would mean "at once".
    if (name !== 'SIGINT' || !process.stdin.isTTY) tool.kill(name);
  };
  signal.addEventListener('abort', passOn, { once: true });
  const result = await tool.finally(() => signal.removeEventListener('abort', passOn));
  signal.throwIfAborted();
  if (result.exitCode !== undefined) return result.exitCode;
  if (result.signal !== undefined) return 128 + constants.signals[result.signal as NodeJS.Signals];
  throw new OffsiteError(`Could not start ${command}: ${result.originalMessage}`, {
    code: 'TOOL_NOT_STARTED',
    kind: 'infrastructure',
    hint: 'Remove node_modules and run this again.',
    cause: result,
  });
}
