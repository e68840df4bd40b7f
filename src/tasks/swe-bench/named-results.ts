export type NamedResult = 'passed' | 'skipped' | 'failed';

const order: readonly NamedResult[] = ['passed', 'skipped', 'failed'];

/**
 * The results of tests by their names. Of several results of one name the worst counts. Rows name tests up to
 * the first blank, so a name with blanks counts under its first word too.
 */
export class NamedResults {
  readonly #results = new Map<string, NamedResult>();

  add(name: string, result: NamedResult): void {
    const [word = name] = name.split(/\s/, 1);
    for (const each of new Set([name, word])) {
      const known = this.#results.get(each);
      if (known === undefined || order.indexOf(known) < order.indexOf(result))
        this.#results.set(each, result);
    }
  }

  get size(): number {
    return this.#results.size;
  }

  of(name: string): NamedResult | undefined {
    return this.#results.get(name);
  }
}
