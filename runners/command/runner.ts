import { infrastructureError, type OffsiteError } from '../../src/base/offsite-error.ts';
import type { TrajectoryEntry } from '../../src/contract/report.ts';
import type { ScriptResult, ScriptStep } from '../../src/engine/script/step-recorder.ts';
import { endedBySignal } from '../../src/harness/cli-ending.ts';
import { programEnvironment } from '../../src/harness/cli-launch.ts';
import { shownOutput, streamedTurn } from '../../src/harness/cli-session.ts';
import type { LineTaker, StreamReader } from '../../src/harness/cli-stream.ts';
import type {
  CommandSource,
  HarnessContext,
  HarnessRun,
  Runner,
  TurnLimits,
} from '../../src/harness/runner.ts';
import { modelFailure, TurnRecord, type TurnStatus } from '../../src/harness/turn-record.ts';
import type { HarnessEnding } from '../../src/record/harness.ts';
import { StreamLine } from '../../src/suite/stream-line.ts';
import { streams } from '../streams.ts';

type Result = Omit<LineOf<'result'>, 'type' | 'id'>;
type LineOf<Type extends StreamLine['type']> = Extract<StreamLine, { type: Type }>;

const known: ReadonlySet<unknown> = new Set(StreamLine.options.map(({ shape }) => shape.type.value));

/** The stream of a program that says what it does in Offsite's own lines. */
export const jsonlStream: StreamReader = {
  takerFor: jsonlLines,
  // The program need not say how it ended, unless something killed it.
  statusOfExit: (exitCode) => (endedBySignal.has(exitCode) ? undefined : { kind: 'done' }),
};

function jsonlLines(record: TurnRecord): LineTaker {
  let unnamed = 0;
  /** A key for the record, so that no name of the program equals one of ours. */
  const keyOf = (id: string | undefined) => {
    if (id !== undefined) return `named ${id}`;
    unnamed += 1;
    return `unnamed ${unnamed}`;
  };
  return (source, at) => {
    if (!known.has(source.type)) return;
    const line = StreamLine.parse(source);
    switch (line.type) {
      case 'session':
        record.version = line.version ?? record.version;
        return;
      case 'command': {
        const key = keyOf(line.id);
        record.beginCommand(key, line.command, hasResult(line) ? undefined : at, line.startedAt);
        if (hasResult(line)) takeResult(record, key, line, at);
        return;
      }
      case 'tool': {
        const key = keyOf(line.id);
        record.beginTool(key, line.name, line.input, hasResult(line) ? undefined : at, line.startedAt);
        if (hasResult(line)) takeResult(record, key, line, at);
        return;
      }
      case 'result':
        return takeResult(record, keyOf(line.id), line, at);
      case 'message':
        return record.message(line.text, at, line.at);
      case 'note':
        return record.note(line.text, at, line.at);
      case 'usage': {
        const { type: _, ...usage } = line;
        return record.addUsage({ ...usage, totalTokens: usage.inputTokens + usage.outputTokens });
      }
      case 'end':
        record.status = statusOf(line);
    }
  };
}

function takeResult(record: TurnRecord, key: string, line: Result, at: number): void {
  const end = { at, own: line.finishedAt, output: line.output };
  if (record.openCommand(key) === undefined) record.endTool(key, { ...end, failed: line.failed });
  else record.endCommand(key, { ...end, exitCode: line.exitCode, truncated: line.outputTruncated });
}

/** Whether a line about a command or a tool also says how it ended. */
function hasResult({ id, finishedAt, exitCode, output, failed }: LineOf<'command' | 'tool'>): boolean {
  return id === undefined || [finishedAt, exitCode, output, failed].some((part) => part !== undefined);
}

function statusOf({ status, message }: LineOf<'end'>): TurnStatus {
  switch (status) {
    case 'done':
      return { kind: 'done' };
    case 'failed':
      return { kind: 'agent-failed', message: message ?? 'the program says that it failed' };
    case 'model-failed':
      return modelFailure(message ?? 'the program says that its model failed');
  }
}

const readers = { ...streams, jsonl: jsonlStream };

/**
 * Runs any program as a harness: the profile's `run` script. If the profile names no `stream`, each command
 * of the script is a command of the trial. The exit code is that of the last command.
 */
export const command: Runner = {
  name: 'command',
  label: 'Command (a profile with a run script)',
  wires: [],
  runsScript: true,
  reportsCommands: false,
  continues: false,
  mcp: ['stdio', 'http', 'sse'],
  streams: Object.keys(readers).map((name) => ({ name, reportsCommands: name in streams })),
  limits: [],
  open(context) {
    const { profile } = context;
    const { stream } = profile;
    const reader = stream === undefined ? undefined : readers[stream as keyof typeof readers];
    return {
      commandsFrom: sourceOf(profile),
      turn(_message, limits) {
        // Each turn gets the time and the budget that are left when it starts.
        const env = programEnvironment(context);
        return reader ? streamTurn(context, env, reader, limits) : scriptTurn(context, env, limits);
      },
    };
  },
};

/** Undefined: the model traffic if it shows commands, else the script. */
function sourceOf({ stream, trajectory }: HarnessContext['profile']): CommandSource | undefined {
  if (trajectory === 'wire') return 'traffic';
  return trajectory ?? (stream === undefined ? undefined : 'report');
}

/** 128 + SIGKILL: the exit code of a killed program. */
const killed = 137;

/**
 * Runs the profile's script. Each command of the script is a command of the trial, unless the profile says
 * where the commands come from. In that case, only the script's output is kept.
 */
async function scriptTurn(
  { container, profile, workspace, clock }: HarnessContext,
  env: Record<string, string>,
  { timeoutMs, signal, stop }: TurnLimits,
): Promise<HarnessRun> {
  const result = await container.runScript({
    script: profile.run ?? '',
    env,
    cwd: workspace,
    clock,
    timeoutMs,
    signal: AbortSignal.any([signal, stop]),
  });
  if (result.ended === 'not-started') throw notStarted(profile, result.message);
  const { steps } = result;
  const ending = endingOf(result, timeoutMs, stop);
  if (profile.trajectory === undefined) return { ending, trajectory: steps.map(entryOf), events: [] };
  const lastOutput = shownOutput([steps.map(({ output }) => output).join('')]);
  return { ending, trajectory: [], events: [], lastOutput };
}

function endingOf({ ended, steps }: ScriptResult, timeoutMs: number, stop: AbortSignal): HarnessEnding {
  if (ended === 'canceled' && stop.aborted)
    return { ended: 'stopped', message: String(stop.reason?.message) };
  if (ended === 'timed-out') return { ended, afterMs: timeoutMs };
  if (ended === 'out-of-disk') return { ended };
  const last = steps.at(-1);
  if (last === undefined) return { ended: 'exited', exitCode: 0 };
  return { ended: 'exited', exitCode: last.ended === 'exited' ? last.exitCode : killed };
}

function entryOf(step: ScriptStep): TrajectoryEntry {
  return {
    _tag: 'command',
    command: step.command,
    startedAtMillis: step.startedAtMillis,
    finishedAtMillis: step.finishedAtMillis,
    output: step.output,
    outputTruncated: step.outputTruncated,
    ...(step.ended === 'exited' && { exitCode: step.exitCode }),
  };
}

/** The engine, or the image's bash, could not start the script. */
function notStarted({ name }: HarnessContext['profile'], message: string): OffsiteError {
  return infrastructureError(
    'RUNNER_NOT_STARTED',
    `the run script of profile ${name} could not be started: ${message}`,
  );
}

/** Reads the script to its end before it runs, so that its programs read end-of-file. */
const runInput = `IFS= read -r -d '' __offsite_script
eval "unset -v __offsite_script"$'\\n'"$__offsite_script"`;

/**
 * Runs the profile's script as one program and reads what it prints on stdout. Only what the stream reports
 * is in the record: the script's own commands are not commands of the trial.
 */
function streamTurn(
  { container, profile, workspace, clock }: HarnessContext,
  env: Record<string, string>,
  reader: StreamReader,
  limits: TurnLimits,
): Promise<HarnessRun> {
  const { run: script = '' } = profile;
  if (script.includes('\0')) throw notStarted(profile, 'it contains a NUL character, which bash cannot read');
  const label = `the run script of profile ${profile.name}`;
  return streamedTurn(
    {
      label,
      reader,
      record: new TurnRecord(clock.now()),
      clock,
      async run(request) {
        const result = await container.exec({
          ...request,
          argv: ['bash', '-c', runInput],
          // As in scripts without a stream: bash runs no file that an image names.
          env: { ...env, BASH_ENV: '' },
          cwd: workspace,
          stdin: script,
        });
        if (result.ended === 'not-started') throw notStarted(profile, result.message);
        return result;
      },
    },
    limits,
  );
}
