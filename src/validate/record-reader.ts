import { getHeapStatistics } from 'node:v8';
import { validatorRecords } from '../bounds/grading.ts';
import { LineReader } from '../line-reader.ts';
import { longestDocument } from '../parse-json.ts';
import { readRecord } from './record-shape.ts';
import type { SandboxedRecord } from './sandboxed/records.ts';

/**
 * The part of this process's heap that all records of a validator may take, where that is less than their
 * bound.
 */
const heapPart = 1 / 16;

const tooMuch = 'the validator said more than is read';

/**
 * Takes the records out of a validator's output as it comes: the lines that begin with the nonce. All else is
 * somebody's text.
 */
export class RecordReader {
  readonly #start: string;
  readonly #onRecord: (record: SandboxedRecord) => void;
  readonly #lines: LineReader;
  #room = Math.min(validatorRecords.bytes.all, Math.floor(getHeapStatistics().heap_size_limit * heapPart));
  /** What is wrong with what came, if anything is; nothing is read after it. */
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

  /**
   * A record that the end of its process cut is no record, so that the end of the stream is of no interest.
   */
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
    if ('problem' in record) this.problem = `the validator sent what is no record: ${record.problem}`;
    else this.#onRecord(record);
  }
}
