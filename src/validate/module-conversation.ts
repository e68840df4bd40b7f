import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { PassThrough } from 'node:stream';
import { getHeapStatistics } from 'node:v8';
import pLimit from 'p-limit';
import { z } from 'zod';
import { LineReader } from '../base/line-reader.ts';
import { DocumentTooHeavy, longestDocument, parseCheckedJson } from '../base/parse-json.ts';
import { validatorRecords, workForValidator } from '../bounds/grading.ts';
import type { Validation } from '../contract/validation.ts';
import type { ExecResult } from '../engine/exec/exec-request.ts';
import { type CallsOfValidation, ModelCalls } from './model-calls.ts';
import { captured, capturedText, matchManifest } from './record.ts';
import type { SandboxedOrder, SandboxedRecord, SandboxedValidation } from './sandboxed/host.ts';
import {
  type GradingFailure,
  processFailure,
  type ValidatorRequest,
  type ValidatorRun,
} from './validator-request.ts';
import type { Work } from './work/work.ts';
import { WorkRequests } from './work/work-requests.ts';

/**
 * The messages between this process and the validator's process: its order, its records, its requests to
 * models, and its requests to run programs of the work.
 */
export class ModuleConversation implements Disposable {
  readonly #request: ValidatorRequest;
  readonly #calls: ModelCalls;
  readonly #workRequests: WorkRequests;
  readonly #validations: SandboxedValidation[] = [];
  readonly #programs = pLimit(workForValidator.count.programs);
  readonly #looks = pLimit(workForValidator.count.looks);
  readonly #sending = pLimit(1);
  readonly stdin = new PassThrough();
  readonly reader: RecordReader;
  #running: string | undefined;
  #broken: string | undefined;
  #ended = false;
  /** Aborts when the stream to the process is closed. */
  readonly #over = new AbortController();

  /**
   * @param onFailure called for failures of the engine, which the validator must not take for failures of the
   * work
   */
  constructor(request: ValidatorRequest, work: Work, onFailure: (error: unknown) => void) {
    this.#request = request;
    this.stdin.once('close', () => this.#over.abort());
    this.#workRequests = new WorkRequests(request, work, onFailure);
    this.#calls = new ModelCalls(request);
    const nonce = randomBytes(16).toString('hex');
    this.reader = new RecordReader(nonce, (record) => this.#take(record));
    this.#send(orderOf(request, nonce));
  }

  [Symbol.dispose](): void {
    this.#calls[Symbol.dispose]();
  }

  #take(record: SandboxedRecord): void {
    switch (record.kind) {
      case 'begin':
        this.#running = record.name;
        break;
      case 'validation':
        this.#running = undefined;
        this.#validations.push(placed(record, this.#request.clock.now()));
        break;
      case 'ask':
        this.#calls.fulfill(record).then((reply) => this.#send(reply));
        break;
      case 'run':
        this.#programs(() => this.#reply(record));
        break;
      case 'read':
      case 'files':
        this.#looks(() => this.#reply(record));
        break;
      case 'end-work':
        this.#reply(record);
        break;
      case 'broken':
        this.#broken = record.message;
        break;
      case 'end':
        this.#ended = true;
    }
  }

  async #reply(record: Parameters<WorkRequests['fulfill']>[0]): Promise<void> {
    if (this.#request.signal.aborted) return;
    await this.#send(await this.#workRequests.fulfill(record));
  }

  /**
   * Resolves when the validator's process has taken the line or has ended. Never rejects. Lines are sent one
   * after another, because a text as JSON can be six times as long.
   */
  #send(line: object): Promise<void> {
    return this.#sending(async () => {
      // The process may have ended while a model was still answering.
      if (this.stdin.destroyed || this.stdin.write(`${JSON.stringify(line)}\n`)) return;
      const over = AbortSignal.any([this.#request.signal, this.#over.signal]);
      await once(this.stdin, 'drain', { signal: over }).catch(() => undefined);
    });
  }

  async outcome(result: ExecResult): Promise<ValidatorRun> {
    await this.#calls.settled();
    const { found, missing } = matchManifest(
      this.#validations.map((record) => moduleValidation(record, this.#calls.of(record.name))),
      this.#request.manifest,
    );
    const output = result.stderr.text.trim();
    const failure =
      this.#calls.failure ??
      this.#named(processFailure(result, this.#request.timeoutMs)) ??
      this.#failureOf(result, missing);
    return {
      validations: found,
      judgments: this.#calls.judgments,
      failure: failure && { output, ...failure },
    };
  }

  #named(failure: GradingFailure | undefined): GradingFailure | undefined {
    if (failure === undefined || this.#running === undefined) return failure;
    return { ...failure, message: `${failure.message}, in "${this.#running}"` };
  }

  /** What is wrong with a validator whose process ended by itself. */
  #failureOf(result: ExecResult, missing: readonly string[]): GradingFailure | undefined {
    const broken = (message: string): GradingFailure => ({ kind: 'broken', message });
    if (this.#broken !== undefined)
      return {
        ...broken(`the validator could not be loaded${missingModule(this.#broken)}`),
        output: this.#broken,
      };
    if (this.reader.problem !== undefined) return broken(this.reader.problem);
    if (!this.#ended)
      return this.#named(broken(`the validator exited with ${result.exitCode} before it finished`));
    const overdue = this.#validations.find(({ status }) => status === 'voided');
    if (overdue) return broken(`"${overdue.name}" gave no verdict: ${overdue.message}`);
    if (missing.length === 0) return undefined;
    return broken(
      `the validator declared no validation for these names in its manifest: ${missing.join(', ')}`,
    );
  }
}

function orderOf(request: ValidatorRequest, nonce: string): SandboxedOrder {
  const { folder, workspace, variables, trajectory, finalMessage, usage, filesChanged } = request;
  return {
    nonce,
    validator: `${folder}/validator.mts`,
    workspace,
    variables,
    trajectory: [...trajectory],
    finalMessage,
    usage: { ...usage } as Record<string, number>,
    filesChanged: [...(filesChanged ?? [])],
    apart: request.work.kind === 'apart',
  };
}

/** What Node says about an import that leads nowhere; empty if that is not the reason. */
function missingModule(output: string | undefined): string {
  const [, said] = /(?:^|: )(Cannot find (?:package|module) '[^'\n]{1,200}')/m.exec(output ?? '') ?? [];
  return said === undefined ? '' : `: ${said}`;
}

/**
 * A validation that has just ended, with times of our clock. The sandbox's clock may be hours off ours, but
 * durations by it are true, unless they cannot be.
 */
function placed<Ended extends SandboxedValidation>(record: Ended, now: number): Ended {
  const durationMs = Math.min(record.durationMs, now);
  const startedAt = now - durationMs;
  const within = (at: number) => Math.min(now, Math.max(startedAt, startedAt + at - record.startedAt));
  return {
    ...record,
    startedAt,
    durationMs,
    logs: record.logs.map((line) => ({ ...line, at: within(line.at) })),
  };
}

/** The record of a module's validation, with its requests to models and their answers. */
function moduleValidation(
  record: SandboxedValidation,
  { calls, judgment, failed }: CallsOfValidation,
): Omit<Validation, 'id' | 'index'> {
  // If a validator continued without an answer that it requested, it has not measured what it should.
  const status = failed ? 'voided' : record.status;
  const texts = {
    ...(record.input && { input: capturedText(record.input.text, record.input.format) }),
    ...(record.output && { output: capturedText(record.output.text, record.output.format) }),
    ...(record.error !== undefined && { error: capturedText(record.error) }),
    ...(record.metadata !== undefined && { metadata: capturedText(record.metadata, 'json') }),
  };
  return {
    name: record.name,
    kind: 'code',
    status,
    startedAt: record.startedAt,
    durationMs: record.durationMs,
    ...(record.message !== undefined && { message: captured(record.message).text }),
    ...(status !== 'voided' && { exitCode: status === 'passed' ? 0 : 1 }),
    truncated: record.logsCut || Object.values(texts).some(({ truncated }) => truncated === true),
    ...texts,
    calls,
    logs: record.logs.map(({ at, level, text }, index) => ({ index, at, level, value: capturedText(text) })),
    ...(judgment && { judgment }),
  };
}

/** All records of a validator may take this part of the process's heap, if that is less than their bound. */
const heapPart = 1 / 16;

const tooMuch = 'the validator printed more than the limit';

/**
 * Reads the records from a validator's output as it arrives: the lines that begin with the nonce. All other
 * output comes from other programs and is ignored.
 */
export class RecordReader {
  readonly #start: string;
  readonly #onRecord: (record: SandboxedRecord) => void;
  readonly #lines: LineReader;
  #room = Math.min(validatorRecords.bytes.all, Math.floor(getHeapStatistics().heap_size_limit * heapPart));
  /** The first problem with the records, if there is one. Nothing is read after it. */
  problem: string | undefined;

  constructor(nonce: string, onRecord: (record: SandboxedRecord) => void) {
    this.#start = `${nonce} `;
    this.#onRecord = onRecord;
    this.#lines = new LineReader(
      (line) => this.#take(line),
      () => {
        this.problem ??= tooMuch;
      },
      Math.min(validatorRecords.bytes.line, longestDocument()),
    );
  }

  /** A record is ignored if the process ended before it was complete, so there is no `end()`. */
  push(bytes: Buffer): void {
    if (this.problem === undefined) this.#lines.push(bytes);
  }

  #take(line: string): void {
    if (!line.startsWith(this.#start) || this.problem !== undefined) return;
    this.#room -= line.length;
    if (this.#room < 0) {
      this.problem = tooMuch;
      return;
    }
    const record = readRecord(line.slice(this.#start.length));
    if ('problem' in record) this.problem = `the validator sent an invalid record: ${record.problem}`;
    else this.#onRecord(record);
  }
}

/** The list of problems may be as long as the record, so only the first ones are shown. */
const shownIssues = 5;

const Text = z.object({ text: z.string(), format: z.enum(['text', 'json']) });
const Id = z.int().min(0);
const Path = z.string().max(validatorRecords.bytes.path);

const Options = z.object({
  cwd: Path.optional(),
  env: z.record(z.string(), z.string()).optional(),
  input: z.string().optional(),
  timeout: z.number().positive().optional(),
});

/**
 * What the validator's process may send, one record per line. `sandboxed/host.ts` has the same types for
 * that process.
 */
const Shape = z.discriminatedUnion('kind', [
  z.object({ kind: z.literal('broken'), message: z.string() }),
  z.object({ kind: z.literal('begin'), name: z.string() }),
  z.object({ kind: z.literal('end') }),
  z.object({
    kind: z.literal('ask'),
    id: Id,
    validation: z.string(),
    method: z.enum(['answer', 'judge']),
    request: z.unknown(),
  }),
  z.object({
    kind: z.literal('run'),
    id: Id,
    command: z.string().min(1),
    args: z.array(z.string()),
    options: Options,
  }),
  z.object({ kind: z.literal('read'), id: Id, path: Path }),
  z.object({ kind: z.literal('files'), id: Id }),
  z.object({ kind: z.literal('end-work'), id: Id }),
  z.object({
    kind: z.literal('validation'),
    name: z.string(),
    startedAt: z.number().nonnegative(),
    durationMs: z.number().nonnegative(),
    status: z.enum(['passed', 'failed', 'voided']),
    message: z.string().optional(),
    input: Text.optional(),
    output: Text.optional(),
    error: z.string().optional(),
    metadata: z.string().optional(),
    logs: z
      .array(z.object({ at: z.number(), level: z.string(), text: z.string() }))
      .max(validatorRecords.count.logs),
    logsCut: z.boolean(),
  }),
]);

/** Returns the record that a line holds, or what is wrong with it. Never throws. */
export function readRecord(line: string): SandboxedRecord | { problem: string } {
  let value: unknown;
  try {
    value = parseCheckedJson(line);
  } catch (error) {
    return { problem: error instanceof DocumentTooHeavy ? error.message : 'it is not JSON' };
  }
  const read = Shape.safeParse(value);
  if (read.success) return read.data as SandboxedRecord;
  return {
    problem: read.error.issues
      .slice(0, shownIssues)
      .map(({ path, message }) => `${path.join('.')}: ${message}`)
      .join('; '),
  };
}
