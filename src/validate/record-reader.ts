import { getHeapStatistics } from 'node:v8';
import { validatorRecords } from '../bounds/grading.ts';
import { LineReader } from '../line-reader.ts';
import { longestDocument } from '../parse-json.ts';
import { readRecord } from './record-shape.ts';
import type { SandboxedRecord } from './sandboxed/records.ts';

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
