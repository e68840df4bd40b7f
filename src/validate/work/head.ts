/** Keeps the beginning of a stream. */
export class Head {
  readonly #chunks: Buffer[] = [];
  #room: number;
  isCut = false;

  constructor(room: number) {
    this.#room = room;
  }

  /** Copies what it keeps of the buffer. */
  push(bytes: Buffer): void {
    if (bytes.length > this.#room) this.isCut = true;
    if (this.#room > 0) this.#chunks.push(Buffer.from(bytes.subarray(0, this.#room)));
    this.#room = Math.max(0, this.#room - bytes.length);
  }

  text(): string {
    return Buffer.concat(this.#chunks).toString();
  }
}
