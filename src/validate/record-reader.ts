import { StringDecoder } from 'node:string_decoder';
import { validatorRecords } from '../bounds/grading.ts';
import { readRecord } from './record-shape.ts';
import type { SandboxedRecord } from './sandboxed/records.ts';

/** Takes the records out of a validator's output as it comes: the lines that begin with the nonce. All else is somebody's text. */
export class RecordReader {
  readonly #start: string;
  readonly #onRecord: (record: SandboxedRecord) => void;
  readonly #decoder = new StringDecoder('utf8');
  #line = '';
  #room = validatorRecords.bytes.all;
  /** What is wrong with what came, if anything is; nothing is read after it. */
  problem: string | undefined;

  constructor(nonce: string, onRecord: (record: SandboxedRecord) => void) {
    this.#start = `${nonce} `;
    this.#onRecord = onRecord;
  }

  push(bytes: Buffer): void {
    const lines = this.#decoder.write(bytes).split('\n');
    for (const [position, piece] of lines.entries()) {
      if (position > 0) this.#endLine();
      if (this.#line.length + piece.length > validatorRecords.bytes.line)
        this.problem ??= 'the validator said more than is read';
      else this.#line += piece;
    }
  }

  /** A record that the end of its process cut is no record. */
  #endLine(): void {
    const line = this.#line;
    this.#line = '';
    if (!line.startsWith(this.#start) || this.problem !== undefined) return;
    this.#room -= line.length;
    if (this.#room < 0) {
      this.problem = 'the validator said more than is read';
      return;
    }
    const record = readRecord(line.slice(this.#start.length));
    if ('problem' in record) this.problem = `the validator sent what is no record: ${record.problem}`;
    else this.#onRecord(record);
  }
}
