import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { PassThrough } from 'node:stream';
import pLimit from 'p-limit';
import { messageOf, OffsiteError } from '../base/offsite-error.ts';
import { workForValidator } from '../bounds/grading.ts';
import type { Validation } from '../contract/validation.ts';
import type { ExecResult } from '../engine/exec/exec-request.ts';
import { type CallsOfValidation, ModelCalls } from './model-calls.ts';
import { captured, capturedText, matchManifest } from './record.ts';
import type { SandboxedOrder, SandboxedReply } from './sandboxed/host.ts';
import { RecordReader, type SandboxedRecord, type SandboxedValidation } from './sandboxed-records.ts';
import {
  type GradingFailure,
  processFailure,
  type ValidatorRequest,
  type ValidatorRun,
} from './validator-request.ts';
import type { Work } from './work/work.ts';
import { type AboutWork, answerAboutWork } from './work/work-requests.ts';

/**
 * The messages between this process and the validator's process: its order, its records, its requests to
 * models, and its requests to run programs of the work.
 */
export class ModuleConversation implements Disposable {
  readonly #request: ValidatorRequest;
  readonly #calls: ModelCalls;
  readonly #work: Work;
  readonly #onFailure: (error: unknown) => void;
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
    this.#work = work;
    this.#onFailure = onFailure;
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

  async #reply(asked: AboutWork): Promise<void> {
    if (this.#request.signal.aborted) return;
    const { id } = asked;
    const reply = await answerAboutWork(asked, this.#work, this.#request).then(
      (value): SandboxedReply => ({ id, value }),
      (error): SandboxedReply => {
        if (error instanceof OffsiteError) this.#onFailure(error);
        return { id, error: messageOf(error) };
      },
    );
    await this.#send(reply);
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
