/** Reads pieces of a requested size from a source of chunks. One reader at a time. */
export class ByteReader {
  readonly #chunks: AsyncIterator<Buffer>;
  #current: Buffer = Buffer.alloc(0);

  constructor(source: AsyncIterable<Buffer>) {
    this.#chunks = source[Symbol.asyncIterator]();
  }

  /** The next `count` bytes. Throws if the source ends earlier. */
  async exactly(count: number): Promise<Buffer> {
    if (this.#current.length >= count) return this.#take(count);
    const pieces: Buffer[] = [];
    for (let missing = count; missing > 0; ) {
      const piece = await this.some(missing);
      pieces.push(piece);
      missing -= piece.length;
    }
    return Buffer.concat(pieces);
  }

  /**
   * At least one and at most `limit` of the next bytes, as they arrived: a view, not a copy. Throws if the
   * source has ended.
   */
  async some(limit: number): Promise<Buffer> {
    while (this.#current.length === 0) {
      const { value, done } = await this.#chunks.next();
      if (done) throw new Error('the archive ended in the middle');
      this.#current = value;
    }
    return this.#take(Math.min(limit, this.#current.length));
  }

  async skip(count: number): Promise<void> {
    for (let left = count; left > 0; ) left -= (await this.some(left)).length;
  }

  #take(count: number): Buffer {
    const taken = this.#current.subarray(0, count);
    this.#current = this.#current.subarray(count);
    return taken;
  }
}
