import { constants } from 'node:os';
import { execa, type Options } from 'execa';
import { OffsiteError } from '../src/base/offsite-error.ts';
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
  return (await run(command, args, { stdio: 'inherit', env, extendEnv: false }, signal)).exitCode;
}

/** The same, but keeps what the program prints, in the order in which it was printed. */
export async function runQuietly(
  command: string,
  args: readonly string[],
  signal: AbortSignal,
): Promise<{ exitCode: number; output: string }> {
  const env = process.stdout.isTTY ? { FORCE_COLOR: '1' } : {};
  return await run(command, args, { stdin: 'ignore', all: true, stripFinalNewline: false, env }, signal);
}

async function run(
  command: string,
  args: readonly string[],
  options: Options,
  signal: AbortSignal,
): Promise<{ exitCode: number; output: string }> {
  signal.throwIfAborted();
  const tool = execa(command, args, { ...options, reject: false, preferLocal: true });
  const passOn = () => {
    const name = signal.reason instanceof Interruption ? signal.reason.signalName : 'SIGTERM';
    // A terminal's Ctrl-C reaches the program by itself, and a second one would mean "at once".
    if (name !== 'SIGINT' || !process.stdin.isTTY) tool.kill(name);
  };
  signal.addEventListener('abort', passOn, { once: true });
  const result = await tool.finally(() => signal.removeEventListener('abort', passOn));
  signal.throwIfAborted();
  const output = String(result.all ?? '');
  if (result.exitCode !== undefined) return { exitCode: result.exitCode, output };
  if (result.signal !== undefined) return { exitCode: 128 + constants.signals[result.signal], output };
  throw new OffsiteError(`Could not start ${command}: ${result.originalMessage}`, {
    code: 'TOOL_NOT_STARTED',
    kind: 'infrastructure',
    hint: 'Remove node_modules and run this again.',
    cause: result,
  });
}
