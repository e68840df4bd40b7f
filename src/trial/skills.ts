import { commandOutput } from '../bounds/sandbox.ts';
import type { Container } from '../engine/container.ts';
import { TrialFailure } from './failure.ts';

/**
 * Copies the skills of a case to where a harness looks for them, as the user of the harness. Call it before
 * the harness runs. Throws a {@link TrialFailure} of kind `task` if they cannot be copied.
 *
 * @param from an absolute folder in the sandbox
 * @param to a folder below the user's home: `~/…`
 */
export async function copySkills(
  container: Container,
  { from, to }: { from: string; to: `~/${string}` },
  signal: AbortSignal,
): Promise<void> {
  const result = await container.exec({
    argv: ['/bin/sh', '-c', copy, 'sh', from, to.slice(2)],
    timeoutMs: commandOutput.time.workspaceCopy,
    signal,
  });
  signal.throwIfAborted();
  if (result.ended === 'exited' && result.exitCode === 0) return;
  const message = `the skills in ${from} could not be copied to ${to}`;
  const output = result.ended === 'not-started' ? result.message : result.stdout.text;
  throw new TrialFailure({ kind: 'task', phase: 'harness', message, output });
}

const copy = 'exec 2>&1; mkdir -p "$HOME/$2" && cp -R "$1/." "$HOME/$2/"';
