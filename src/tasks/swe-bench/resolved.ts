interface NamedTests {
  failToPass: readonly string[];
  passToPass: readonly string[];
}

interface Resolution {
  /** Whether all tests that count have passed. */
  resolved: boolean;
  /** The tests that count and did not pass. A test without a result is among them. */
  failed: readonly string[];
  /** How many tests count. */
  counting: number;
}

/**
 * Whether a row of SWE-bench is resolved, by the results of tests after its test patch. A test that passed
 * before may also be skipped.
 */
export function resolution(
  { failToPass, passToPass }: NamedTests,
  resultOf: (test: string) => NamedResult | undefined,
): Resolution {
  const failed = [
    ...failToPass.filter((test) => resultOf(test) !== 'passed'),
    ...passToPass.filter((test) => !['passed', 'skipped'].includes(resultOf(test) ?? 'failed')),
  ];
  const counting = failToPass.length + passToPass.length;
  return { resolved: counting > 0 && failed.length === 0, failed, counting };
}

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
