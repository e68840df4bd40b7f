import { spawn } from 'node:child_process';
import { closeSync, openSync, readFileSync } from 'node:fs';
import { commandLine } from '../../memory/measured-run.ts';

/** `offsite` in a process of its own, whose output is in a file. */
export interface OffsiteProcess {
  pid: number;
  /** The exit code, or the signal that ended it. */
  ended: Promise<number | string>;
  isRunning(): boolean;
  kill(signal: NodeJS.Signals): void;
  output(): string;
}

/** @param log a file that does not exist */
export function startOffsite(args: readonly string[], env: NodeJS.ProcessEnv, log: string): OffsiteProcess {
  const file = openSync(log, 'wx');
  const child = spawn(process.execPath, [commandLine(), ...args], {
    env: { ...process.env, NO_COLOR: '1', ...env },
    stdio: ['ignore', file, file],
  });
  closeSync(file);
  const { promise: ended, resolve } = Promise.withResolvers<number | string>();
  child.on('exit', (code, signal) => resolve(code ?? signal ?? 0));
  child.on('error', ({ message }) => resolve(message));
  return {
    pid: child.pid ?? 0,
    ended,
    isRunning: () => child.exitCode === null && child.signalCode === null,
    kill: (signal) => void child.kill(signal),
    output: () => readFileSync(log, 'utf8'),
  };
}
