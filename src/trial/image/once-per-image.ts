interface Learning<Learned> {
  result: Promise<Learned>;
  /** The signal of the caller that learns. */
  signal: AbortSignal;
}

/**
 * Keeps what the first container of an image showed, because it holds for all containers of that image.
 * Callers that ask in the meantime wait for the same result.
 */
export class OncePerImage<Learned> {
  /** A batch works on few images at a time. A kept result takes up to a few megabytes. */
  static readonly #kept = 16;
  readonly #learned = new Map<string, Learning<Learned>>();

  /**
   * @param signal ends `learn`. If it aborts, a caller that waits for the result learns itself.
   * @param learn reads a started container of the image in which no harness has run yet
   */
  async of(image: string, signal: AbortSignal, learn: () => Promise<Learned>): Promise<Learned> {
    for (;;) {
      const known = this.#learned.get(image);
      if (!known) return this.#learn(image, signal, learn);
      try {
        return await known.result;
      } catch (error) {
        if (!known.signal.aborted) throw error;
        signal.throwIfAborted();
      }
    }
  }

  #learn(image: string, signal: AbortSignal, learn: () => Promise<Learned>): Promise<Learned> {
    const result = learn().catch((error) => {
      this.#learned.delete(image);
      throw error;
    });
    this.#learned.set(image, { result, signal });
    const oldest = this.#learned.keys().next().value;
    if (this.#learned.size > OncePerImage.#kept && oldest !== undefined) this.#learned.delete(oldest);
    return result;
  }
}
