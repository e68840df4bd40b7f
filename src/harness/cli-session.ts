import type { Usage } from '../contract/report.ts';
import { type LaunchFile, launchCommand } from './cli-launch.ts';
import type { StreamReader } from './cli-stream.ts';
import type { HarnessContext, HarnessRun, HarnessSession, TurnLimits } from './runner.ts';
import { streamedTurn } from './streamed-turn.ts';
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
