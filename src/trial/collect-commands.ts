import { printedText } from '../bounds/anyone.ts';
import type { Container } from '../engine/container.ts';
import type { HarnessEvent } from '../record/harness.ts';
import type { CollectCommand } from '../suite/case-tests.ts';
import { gradingEnvironment } from './environment.ts';
import type { TrialParts } from './trial-parts.ts';

/**
 * Runs the commands of a case that write down what would be lost otherwise, and ends the processes that they
 * left. Nothing else may run in the sandbox. A command that fails does not end the trial; the failure is
 * noted.
 */
export async function runCollectCommands(
  container: Container,
  commands: readonly CollectCommand[],
  { clock }: Pick<TrialParts, 'clock'>,
  signal: AbortSignal,
): Promise<HarnessEvent[]> {
  const notes: HarnessEvent[] = [];
  for (const { command, timeoutMs, user } of commands) {
    const result = await container.exec({
      argv: ['bash', '-c', `{ ${command}\n} 2>&1`],
      env: gradingEnvironment({}, container),
      ...(user !== undefined && { user }),
      timeoutMs,
      signal,
    });
    signal.throwIfAborted();
    if (result.ended === 'exited' && result.exitCode === 0) continue;
    const how = result.ended === 'exited' ? `exited with ${result.exitCode}` : `ended: ${result.ended}`;
    const output = result.stdout.text.slice(0, printedText.bytes.line);
    notes.push({ kind: 'note', at: clock.now(), text: `the collect command ${how}: ${command}\n${output}` });
  }
  if (commands.length > 0) await container.killAll(signal);
  return notes;
}
