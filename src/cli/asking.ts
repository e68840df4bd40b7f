import { createInterface } from 'node:readline/promises';
import { OffsiteError } from '../base/offsite-error.ts';
import type { Asking } from '../setup/models/gather-model.ts';
import type { Output } from '../text/output.ts';
import { type Printable, stack, text } from '../text/printable.ts';
import { Interrupted } from './interruption.ts';
import { personsTerminal } from './terminal.ts';

/**
 * Asks line by line, so that it works with any terminal and any screen reader. Undefined if nobody sits at a
 * terminal. Dispose of it, or the process waits for keys.
 */
export function openAsking(out: Output): Asking | undefined {
  const person = personsTerminal();
  if (!person) return undefined;
  const lines = createInterface({ input: person.keys, output: person.screen });
  const stopped = new AbortController();
  lines.on('SIGINT', () => stopped.abort(new Interrupted('SIGINT')));
  lines.on('close', () => stopped.abort(noAnswer()));

  const line = async (prompt: Printable): Promise<string> => {
    try {
      return (await lines.question(`${out.shown(prompt)} `, { signal: stopped.signal })).trim();
    } catch (error) {
      // The prompt's own line is not complete.
      out.print('');
      throw stopped.signal.aborted ? stopped.signal.reason : error;
    }
  };
  const asked: Asking['text'] = async (question, { preset, problem } = {}) => {
    while (true) {
      const given = await line(preset === undefined ? text`${question}:` : text`${question} [${preset}]:`);
      const answer = given === '' ? preset : given;
      const wrong = answer === undefined ? 'please answer' : problem?.(answer);
      if (answer !== undefined && wrong === undefined) return answer;
      out.print(text`  ${wrong ?? ''}`);
    }
  };
  return {
    text: asked,
    async choose(question, choices) {
      const [first] = choices;
      if (!first) throw new Error('there is nothing to choose');
      out.print(stack(choices.map(({ title }, index) => text`  ${index + 1}) ${title}`)));
      const isNumber = (answer: string) => choices[Number(answer) - 1] !== undefined;
      const answer = await asked(question, {
        preset: '1',
        problem: (given) =>
          isNumber(given) ? undefined : `please answer with a number from 1 to ${choices.length}`,
      });
      return (choices[Number(answer) - 1] ?? first).chosen;
    },
    async confirm(question) {
      const yes = ['y', 'yes'];
      const answer = await asked(text`${question} (y/n)`, {
        preset: 'y',
        problem: (given) =>
          [...yes, 'n', 'no'].includes(given.toLowerCase()) ? undefined : 'please answer y or n',
      });
      return yes.includes(answer.toLowerCase());
    },
    [Symbol.dispose]: () => lines.close(),
  };
}

function noAnswer(): OffsiteError {
  return new OffsiteError('the terminal was closed before all questions were answered', {
    code: 'NO_ANSWER',
    kind: 'input',
    hint: 'Answer by options instead; --help shows them.',
  });
}
