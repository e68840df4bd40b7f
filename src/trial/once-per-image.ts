/**
 * What was learned of an image from the first container of it, and holds for all others. Those who ask
 * meanwhile wait for the answer.
 */
export class OncePerImage<Learned> {
  /** A batch works on few images at a time; what is kept of one is up to some megabytes. */
  static readonly #kept = 16;
  readonly #learned = new Map<string, Promise<Learned>>();

  /** @param learn looks at a started container of the image, in which no harness ran yet */
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
