import type { Clock } from '../base/clock.ts';
import { harnessLines } from '../bounds/sandbox.ts';
import type { ExecRequest, ExecResult } from '../engine/exec/exec-request.ts';
import { cliEnding } from './cli-ending.ts';
import { cliStream, type StreamReader } from './cli-stream.ts';
import type { HarnessRun, TurnLimits } from './runner.ts';
import type { TurnRecord } from './turn-record.ts';

interface StreamedTurn {
  /** The name that people see in messages. */
  label: string;
  reader: StreamReader;
  record: TurnRecord;
  clock: Clock;
  /** Runs the program with these limits. */
  run(limits: Partial<ExecRequest> & Pick<ExecRequest, 'timeoutMs'>): Promise<ExecResult>;
}

/** A turn of a program that prints one JSON object per line and exits at the end of its turn. */
export async function streamedTurn(
  { label, reader, record, clock, run }: StreamedTurn,
  limits: TurnLimits,
): Promise<HarnessRun> {
  const stream = cliStream(record, reader.takerFor(record), () => clock.now(), reader.skips);
  const result = await run({
    timeoutMs: limits.timeoutMs,
    signal: AbortSignal.any([limits.signal, limits.stop]),
    capBytes: harnessLines.bytes.kept,
    onOutput: (from, bytes) => {
      if (from === 'stdout') stream.push(bytes);
    },
  });
  stream.end();
  limits.signal.throwIfAborted();
  if (result.ended === 'exited' && (record.status.kind === 'started' || record.status.kind === 'unknown')) {
    record.status = reader.statusOfExit?.(result.exitCode, result.stderr.text) ?? record.status;
  }
  const ending = cliEnding(
    label,
    result,
    { status: record.status, problem: stream.problem, unread: stream.unread },
    limits,
  );
  const stderr = result.stderr.text.trim();
  if (ending.ended !== 'exited' && stderr !== '')
    record.note(reader.logsToStderr ? excerpt(stderr) : stderr, clock.now());
  const { trajectory, events, finalMessage, usage } = record;
  return {
    ending,
    trajectory,
    events,
    finalMessage,
    usage,
    isCut: !record.isWhole || undefined,
    version: record.version?.slice(0, harnessLines.bytes.version),
    lastOutput: shownOutput([withoutVersion(result.stdout.text), result.stderr.text]),
  };
}

/** The beginning and the end of each output, as a result shows them. */
export function shownOutput(outputs: readonly string[]): string {
  return outputs
    .map((text) => excerpt(text.trim()))
    .filter((text) => text !== '')
    .join('\n');
}

function excerpt(text: string): string {
  if (text.length <= harnessLines.bytes.shownHead + harnessLines.bytes.shownTail) return text;
  return `${text.slice(0, harnessLines.bytes.shownHead)}\n…\n${text.slice(-harnessLines.bytes.shownTail)}`;
}

/** Removes the launcher's own line, which says nothing about the turn. */
function withoutVersion(stdout: string): string {
  return stdout.replace(/^\{"type":"offsite\/version".*\n/, '');
}
