import { harnessLines } from '../bounds/sandbox.ts';
import type { Usage } from '../contract/report.ts';
import type { ExecResult } from '../engine/exec/exec-request.ts';
import { cliEnding } from './cli-ending.ts';
import { type LaunchFile, launchCommand } from './cli-launch.ts';
import { cliStream, type LineTaker } from './cli-stream.ts';
import { RecordRoom } from './record-room.ts';
import type { HarnessContext, HarnessRun, HarnessSession, TurnLimits } from './runner.ts';
import { TurnRecord, type TurnStatus, usageSince } from './turn-record.ts';

/**
 * A CLI that reads a message from stdin, prints one JSON object per line, and exits at the end of its turn.
 */
export interface Cli {
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
  takerFor(record: TurnRecord): LineTaker;
  /** Lines that begin with one of these are not parsed. */
  skips?: readonly string[];
  /** Whether a resumed session also counts the tokens of its earlier turns. */
  usageIsCumulative: boolean;
  /** Whether its stderr is a log, of which only the beginning and the end are worth keeping. */
  logsToStderr?: boolean;
  /** The status that an exit code stands for, if the stream did not say how the turn ended. */
  statusOfExit?(exitCode: number, stderr: string): TurnStatus | undefined;
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
      const record = new TurnRecord(room);
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

async function cliTurn(
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
  const stream = cliStream(record, cli.takerFor(record), () => context.clock.now(), cli.skips);
  const result = await context.container.exec({
    ...launch,
    cwd: context.workspace,
    stdin: message,
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
    record.status = cli.statusOfExit?.(result.exitCode, result.stderr.text) ?? record.status;
  }
  const ending = cliEnding(
    cli.label,
    result,
    { status: record.status, problem: stream.problem, unread: stream.unread },
    limits,
  );
  const stderr = result.stderr.text.trim();
  if (ending.ended !== 'exited' && stderr !== '') {
    record.note(cli.logsToStderr ? excerpt(stderr) : stderr, context.clock.now());
  }
  const { trajectory, events, finalMessage, version, usage } = record;
  const isCut = !record.isWhole || undefined;
  return { ending, trajectory, events, isCut, finalMessage, version, usage, lastOutput: lastOutput(result) };
}

function lastOutput({ stdout, stderr }: ExecResult): string {
  return [stdout, stderr]
    .map(({ text }) => excerpt(withoutVersion(text).trim()))
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

function brokenRun(message: string): HarnessRun {
  return { ending: { ended: 'runner-broke', message }, trajectory: [], events: [] };
}
