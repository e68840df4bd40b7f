import { randomBytes, randomFillSync } from 'node:crypto';

/** A prime. In bash, which has 64 bits, the product of two numbers below it is exact. */
const prime = 2 ** 31 - 1;

/**
 * Makes marks that are changed, left out or put in another order count as lost. The secret that begins a mark
 * does not: a program of the script can open the pipe of its own output for reading, and so take a mark out,
 * learn the secret, and write another mark.
 *
 * Each mark of the driver has a sum of what it says, under a key and a number that is used once. What the
 * guardian says has a word of its own if it is good, which nobody sees before it is true.
 */
export class MarkSeal {
  /** A word for "the shell ended with 0", and one for "the devices are intact". */
  readonly ended = randomBytes(16).toString('hex');
  readonly intact = randomBytes(16).toString('hex');
  readonly key: number;
  /** Decimal, one a line: for two marks of each line, and two more. */
  readonly pads: string[];
  #next = 0;

  constructor(lines: number) {
    const [key = 0, ...pads] = Array.from(randomFillSync(new Uint32Array(2 * lines + 3)), (n) => n % prime);
    this.key = key;
    this.pads = pads.map(String);
  }

  /** Whether the driver wrote this mark, and it is the next one. */
  isNext([sum, kind = '', first, second, micros = '']: readonly string[]): boolean {
    const fields = [kind.charCodeAt(0), Number(first), Number(second), Number(micros)];
    if (!fields.every(Number.isSafeInteger)) return false;
    const digest = fields.reduce((total, field) => (total + BigInt(field)) * BigInt(this.key), 0n);
    const isNext = sum === String((digest + BigInt(this.pads[this.#next] ?? 0)) % BigInt(prime));
    if (isNext) this.#next += 1;
    return isNext;
  }
}
