import { format, inspect } from 'node:util';
import { validatorRecords } from '../../bounds/grading.ts';
import type { JudgeResult, RegisteredValidation, TrajectoryCommand, ValidationContext } from './api.ts';
import { describe, messageOf } from './failure-text.ts';
import { AskFailed, type Host } from './host.ts';
import { type LogCapture, Logs } from './logs.ts';
import type { SandboxedText, SandboxedValidation } from './records.ts';
import { runOwn, runWork } from './run.ts';
import { filesInside, matching, readInside } from './workspace.ts';

/** Runs one validation until it has a verdict or its deadline passes. */
export async function attempt(
  validation: RegisteredValidation,
  host: Host,
  capture: LogCapture,
): Promise<SandboxedValidation> {
  const logs = new Logs();
  const noted: Noted = { input: undefined, metadata: {} };
  const startedAt = Date.now();
  const started = performance.now();
  const ended = await capture.during(logs, () => verdict(validation, host, noted));
  const { input, metadata } = noted;
  return {
    kind: 'validation',
    name: validation.name,
    startedAt,
    durationMs: Math.round(performance.now() - started),
    ...ended,
    input,
    ...(Object.keys(metadata).length > 0 && { metadata: cut(JSON.stringify(metadata, null, 2)) }),
    logs: [...logs.kept],
    logsCut: logs.cut,
  };
}

interface Noted {
  input: SandboxedText | undefined;
  metadata: Record<string, unknown>;
}

type Ended = Pick<SandboxedValidation, 'status' | 'message' | 'output' | 'error'>;

async function verdict(
  { name, check, timeout }: RegisteredValidation,
  host: Host,
  noted: Noted,
): Promise<Ended> {
  const overdue = new AbortController();
  const late = Promise.withResolvers<Ended>();
  const timer =
    timeout === undefined
      ? undefined
      : setTimeout(() => {
          overdue.abort(new Error(`${name} did not finish before its deadline`));
          late.resolve({ status: 'voided', message: `it did not finish within ${timeout / 1000} s` });
        }, timeout);
  try {
    return await Promise.race([checked(name, check, host, noted, overdue.signal), late.promise]);
  } finally {
    clearTimeout(timer);
  }
}

async function checked(
  name: string,
  check: RegisteredValidation['check'],
  host: Host,
  noted: Noted,
  signal: AbortSignal,
): Promise<Ended> {
  try {
    const returned = await check(contextOf(name, host, noted, signal));
    return { status: 'passed', ...(returned !== undefined && { output: textOf(returned) }) };
  } catch (error) {
    const status = error instanceof AskFailed ? 'voided' : 'failed';
    return { status, message: cut(messageOf(error)), error: cut(describe(error)) };
  }
}

function contextOf(name: string, host: Host, noted: Noted, signal: AbortSignal): ValidationContext {
  const { order } = host;
  const { workspace, variables, finalMessage, usage, filesChanged } = order;
  return {
    workspace,
    variables,
    trajectory: order.trajectory as TrajectoryCommand[],
    finalMessage,
    usage,
    filesChanged,
    signal,
    read: async (path) =>
      order.apart ? ((await host.call({ kind: 'read', path })) as string) : readInside(workspace, path),
    files: async (glob) =>
      matching(
        order.apart ? ((await host.call({ kind: 'files' })) as string[]) : await filesInside(workspace),
        glob,
      ),
    run: (command, args = [], options = {}) =>
      options.as === 'validator'
        ? runOwn(workspace, command, args, options, signal)
        : runWork(host, command, args, options, signal),
    answer: async (request) => {
      const asked = typeof request === 'string' ? { prompt: request } : request;
      refuseLarge(asked.material);
      return (await host.ask(name, 'answer', asked)) as string;
    },
    judge: async (request) => {
      refuseLarge(request.material);
      return (await host.ask(name, 'judge', request)) as JudgeResult;
    },
    log: (...values) => void process.stdout.write(`${format(...values)}\n`),
    input: (value) => {
      noted.input = textOf(value);
    },
    metadata: (values) => void Object.assign(noted.metadata, values),
  };
}

function textOf(value: unknown): SandboxedText {
  if (typeof value === 'string') return { text: cut(value), format: 'text' };
  const json = JSON.stringify(value, null, 2);
  return json === undefined
    ? { text: cut(inspect(value)), format: 'text' }
    : { text: cut(json), format: 'json' };
}

function cut(text: string): string {
  if (text.length <= validatorRecords.bytes.text) return text;
  return text.slice(0, validatorRecords.bytes.text / 2) + text.slice(-validatorRecords.bytes.text / 2);
}

/**
 * Throws if the material exceeds the limit for models. The agent made the material, so too much of it must
 * fail the validation and not leave the trial without a verdict.
 */
function refuseLarge(material: string | Record<string, string> | undefined): void {
  const texts = typeof material === 'string' ? [material] : Object.values(material ?? {});
  const characters = texts.reduce((sum, text) => sum + String(text).length, 0);
  if (characters <= validatorRecords.bytes.material) return;
  throw new Error(
    `the material has ${characters} characters, but the limit is ${validatorRecords.bytes.material}`,
  );
}
