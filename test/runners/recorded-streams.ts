import { readFileSync } from 'node:fs';
import { jsonlStream } from '../../runners/command/runner.ts';
import { streams } from '../../runners/streams.ts';
import { OutputCapture } from '../../src/base/output-capture.ts';
import type { ExecResult } from '../../src/engine/exec/exec-request.ts';
import { cliEnding } from '../../src/harness/cli-ending.ts';
import { cliStream } from '../../src/harness/cli-stream.ts';
import { driverLines } from '../../src/harness/driver-lines.ts';
import { TurnRecord } from '../../src/harness/turn-record.ts';
import type { HarnessEnding } from '../../src/record/harness.ts';

/** The streams in fixtures/ were printed by the real CLIs, at the versions that are pinned. */

export const takers = { ...streams, 'mini-swe-agent': { takerFor: driverLines } };
export type CliName = keyof typeof takers;
export const cliNames = Object.keys(takers) as CliName[];

/**
 * `session`: a command, one that fails, one that succeeds; `resumed`: its second turn; `refused`: a model
 * that answers 400 after one command; `edges`: outputs and exit codes of many kinds.
 */
export type StreamName = 'session' | 'resumed' | 'refused' | 'edges' | 'turn-limit';

export function recorded(cli: CliName, name: StreamName): Buffer {
  return readFileSync(new URL(`fixtures/${cli}/${name}.jsonl`, import.meta.url));
}

/** When every line is said to have come. */
const arrivalMs = 1_800_000_000_000;

/** What is made of a stream that comes in these chunks, of a program that then exits with 0. */
export function readStream(
  cli: CliName | 'jsonl',
  chunks: Iterable<Buffer>,
): { record: TurnRecord; ending: HarnessEnding } {
  const record = new TurnRecord(0);
  const stream = cliStream(record, { ...takers, jsonl: jsonlStream }[cli].takerFor(record), () => arrivalMs);
  for (const chunk of chunks) stream.push(chunk);
  stream.end();
  const heard = { status: record.status, problem: stream.problem, unread: stream.unread };
  const never = new AbortController().signal;
  const ending = cliEnding(cli, exited(0), heard, { timeoutMs: 1, signal: never, stop: never });
  return { record, ending };
}

/** The result of a program that has exited. */
export function exited(exitCode: number, { stderr = '', oomKilled = false } = {}): ExecResult {
  const errors = new OutputCapture(1024);
  errors.push(Buffer.from(stderr));
  return {
    ended: 'exited',
    exitCode,
    oomKilled,
    stdout: new OutputCapture(0).result(),
    stderr: errors.result(),
    startedAt: 0,
    finishedAt: 1,
  };
}
