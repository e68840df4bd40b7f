import { getHeapStatistics } from 'node:v8';
import { z } from 'zod';
import { LineReader } from '../base/line-reader.ts';
import { DocumentTooHeavy, longestDocument, parseCheckedJson } from '../base/parse-json.ts';
import { validatorRecords } from '../bounds/grading.ts';

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

/** A validation's request to a model. It goes through Offsite, because the sandbox has no network. */
const Ask = z.object({
  kind: z.literal('ask'),
  id: Id,
  validation: z.string(),
  method: z.enum(['answer', 'judge']),
  request: z.unknown(),
});
export type SandboxedAsk = z.infer<typeof Ask>;

/** Asks Offsite to run a program of the work, as another user or in another sandbox than this process. */
const Run = z.object({
  kind: z.literal('run'),
  id: Id,
  command: z.string().min(1),
  args: z.array(z.string()),
  options: z.object({
    cwd: Path.optional(),
    env: z.record(z.string(), z.string()).optional(),
    input: z.string().optional(),
    timeout: z.number().positive().optional(),
  }),
});
/** Ask for files of a workspace in another sandbox. */
const Read = z.object({ kind: z.literal('read'), id: Id, path: Path });
const Files = z.object({ kind: z.literal('files'), id: Id });
/** Asks Offsite to end all processes of the work. */
const EndWork = z.object({ kind: z.literal('end-work'), id: Id });

const Ended = z.object({
  kind: z.literal('validation'),
  name: z.string(),
  startedAt: z.number().nonnegative(),
  durationMs: z.number().nonnegative(),
  /** `voided`: the validation has no verdict; `message` says why. */
  status: z.enum(['passed', 'failed', 'voided']),
  message: z.string().optional(),
  input: Text.optional(),
  output: Text.optional(),
  error: z.string().optional(),
  metadata: z.string().optional(),
  logs: z
    .array(z.object({ at: z.number(), level: z.string(), text: z.string() }))
    .max(validatorRecords.count.logs),
  /** Whether the validation printed more than `logs` contains. */
  logsCut: z.boolean(),
});
export type SandboxedValidation = z.infer<typeof Ended>;
export type SandboxedText = z.infer<typeof Text>;

/**
 * What the validator's process may send, one record per line. The types are also those of that process, which
 * has no zod.
 */
const Shape = z.discriminatedUnion('kind', [
  z.object({ kind: z.literal('broken'), message: z.string() }),
  z.object({ kind: z.literal('begin'), name: z.string() }),
  z.object({ kind: z.literal('end') }),
  Ask,
  Run,
  Read,
  Files,
  EndWork,
  Ended,
]);
export type SandboxedRecord = z.infer<typeof Shape>;

/** Returns the record that a line holds, or what is wrong with it. Never throws. */
export function readRecord(line: string): SandboxedRecord | { problem: string } {
  let value: unknown;
  try {
    value = parseCheckedJson(line);
  } catch (error) {
    return { problem: error instanceof DocumentTooHeavy ? error.message : 'it is not JSON' };
  }
  const read = Shape.safeParse(value);
  if (read.success) return read.data;
  return {
    problem: read.error.issues
      .slice(0, shownIssues)
      .map(({ path, message }) => `${path.join('.')}: ${message}`)
      .join('; '),
  };
}
