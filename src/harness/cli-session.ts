import type { Clock } from '../base/clock.ts';
import { harnessLines } from '../bounds/sandbox.ts';
import type { Usage } from '../contract/report.ts';
import type { ExecRequest, ExecResult } from '../engine/exec/exec-request.ts';
import { cliEnding } from './cli-ending.ts';
import { type LaunchFile, launchCommand } from './cli-launch.ts';
import { cliStream, type StreamReader } from './cli-stream.ts';
import type { HarnessContext, HarnessRun, HarnessSession, TurnLimits } from './runner.ts';
import { RecordRoom, TurnRecord, usageSince } from './turn-record.ts';

/**
 * A CLI that reads a message from stdin, prints one JSON object per line, and exits at the end of its turn.
 */
export interface Cli extends StreamReader {
  /** The name that people see in messages. */
  label: string;
  /**
   * The program and its arguments. `sessionId` is the CLI's own name of the conversation to continue. The
   * arguments never contain a key or a prompt.
   */
  argv(sessionId: string | undefined): string[];
  /** Environment variables. The context's own environment overrides them. */
  defaults: Record<string, string>;
  /** Environment variables for the way to the model. They override the context's own environment. */
  access: Record<string, string>;
  /** Files to write before the first turn. */
  files: readonly LaunchFile[];
  versionFile: string;
  /** Whether a resumed session also counts the tokens of its earlier turns. */
  usageIsCumulative: boolean;
}

/** A conversation with a CLI. Each turn starts the CLI again. */
export function cliSession(context: HarnessContext, cli: Cli): HarnessSession {
  let sessionId: string | undefined;
  let usedBefore: Usage | undefined;
  let turns = 0;
  const room = new RecordRoom();
  return {
    async turn(message, limits) {
      turns += 1;
      if (turns > 1 && sessionId === undefined) {
        return brokenRun(
          `${cli.label} did not name its conversation, so the conversation cannot be continued`,
        );
      }
      const record = new TurnRecord(context.clock.now(), room);
      const run = await cliTurn(context, cli, { record, message, sessionId, first: turns === 1 }, limits);
      sessionId = record.sessionId ?? sessionId;
      if (!cli.usageIsCumulative || run.usage === undefined) return run;
      const usage = usageSince(run.usage, usedBefore);
      usedBefore = run.usage;
      return { ...run, usage };
    },
  };
}

interface Turn {
  record: TurnRecord;
  message: string;
  sessionId: string | undefined;
  first: boolean;
}

function cliTurn(
  context: HarnessContext,
  cli: Cli,
  { record, message, sessionId, first }: Turn,
  limits: TurnLimits,
): Promise<HarnessRun> {
  const launch = launchCommand({
    argv: cli.argv(sessionId),
    env: { ...cli.defaults, ...context.env, ...cli.access },
    files: first ? cli.files : [],
    versionFile: cli.versionFile,
  });
  return streamedTurn(
    {
      label: cli.label,
      reader: cli,
      record,
      clock: context.clock,
      run: (request) =>
        context.container.exec({ ...request, ...launch, cwd: context.workspace, stdin: message }),
    },
    limits,
  );
}

function brokenRun(message: string): HarnessRun {
  return { ending: { ended: 'runner-broke', message }, trajectory: [], events: [] };
}

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
