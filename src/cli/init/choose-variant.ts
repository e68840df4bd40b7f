import { createInterface } from 'node:readline/promises';
import { Interrupted } from '../interruption.ts';
import type { PersonsTerminal } from '../terminal.ts';
import type { OfferedModel } from './offered-models.ts';

/**
 * Asks a person which model and which harness they want to evaluate. Undefined if they want none yet. Throws
 * {@link Interrupted} if they leave with Ctrl-C or Ctrl-D.
 *
 * @param harnesses that can use any model
 */
export async function chooseVariant(
  { keys, screen }: PersonsTerminal,
  models: readonly OfferedModel[],
  harnesses: readonly string[],
): Promise<{ model: string; harness: string } | undefined> {
  const person = createInterface({ input: keys, output: screen });
  const left = new AbortController();
  person.on('close', () => left.abort(new Interrupted()));
  /** Asks until the answer is an expected one, or empty. */
  const ask = async (question: string, expected: readonly string[]): Promise<string> => {
    for (;;) {
      const given = (await person.question(question, { signal: left.signal })).trim();
      if (given === '' || expected.includes(given)) return given;
    }
  };
  try {
    const names = models.map(({ name }) => name);
    const model = await ask(`Model to evaluate (${names.join(', ')}; Enter for none yet): `, names);
    if (model === '') return undefined;
    const usual = models.find(({ name }) => name === model)?.harness ?? 'codex';
    const harness = await ask(`Harness (${harnesses.join(', ')}; Enter for ${usual}): `, harnesses);
    return { model, harness: harness || usual };
  } catch (error) {
    throw left.signal.aborted ? left.signal.reason : error;
  } finally {
    person.close();
  }
}
