/**
 * Keeps what the first container of an image showed, because it holds for all containers of that image.
 * Callers that ask in the meantime wait for the same result.
 */
export class OncePerImage<Learned> {
  /** A batch works on few images at a time. A kept result takes up to a few megabytes. */
  static readonly #kept = 16;
  readonly #learned = new Map<string, Promise<Learned>>();

  /** @param learn reads a started container of the image in which no harness has run yet */
  of(image: string, learn: () => Promise<Learned>): Promise<Learned> {
    const known = this.#learned.get(image);
    if (known) return known;
    const learning = learn().catch((error) => {
      this.#learned.delete(image);
      throw error;
    });
    this.#learned.set(image, learning);
    const oldest = this.#learned.keys().next().value;
    if (this.#learned.size > OncePerImage.#kept && oldest !== undefined) this.#learned.delete(oldest);
    return learning;
  }
}
