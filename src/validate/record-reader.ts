import { getHeapStatistics } from 'node:v8';
import { LineReader } from '../line-reader.ts';
import { longestDocument } from '../parse-json.ts';
import { readRecord } from './record-shape.ts';
import type { SandboxedRecord } from './sandboxed/records.ts';

/** Bytes of one line that are waited for, with a large heap; a record's texts are cut well below that. */
const lineRoom = 32 * 1024 ** 2;
/** Characters of all records together, with a large heap; with a small one, a part of it. */
const recordRoom = 128 * 1024 ** 2;
const heapPart = 1 / 16;

const tooMuch = 'the validator said more than is read';

/** Takes the records out of a validator's output as it comes: the lines that begin with the nonce. All else is somebody's text. */
export class RecordReader {
  readonly #start: string;
  readonly #onRecord: (record: SandboxedRecord) => void;
  readonly #lines: LineReader;
  #room = Math.min(recordRoom, Math.floor(getHeapStatistics().heap_size_limit * heapPart));
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
      Math.min(lineRoom, longestDocument()),
    );
  }

  /** A record that the end of its process cut is no record, so that the end of the stream is of no interest. */
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
