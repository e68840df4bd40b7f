import { z } from 'zod';

/** A run of characters as keys have it, and names of variables do not. */
const keyLike = /[A-Za-z\d]{32}|(?=[A-Za-z]*\d)(?=\d*[A-Za-z])[A-Za-z\d]{16}/;

/** Whether a text may be a key, whatever it was meant to be. Then it must not be printed. */
export function mayBeKey(text: string): boolean {
  return keyLike.test(text) || /^(sk|gsk|hf|pk|ghp|xai)[-_]./i.test(text);
}

/** What is wrong with a variable's name, without repeating it: it may be a key. Undefined if nothing is. */
export function variableProblem(given: string): string | undefined {
  if (/^[A-Za-z_]\w*$/.test(given) && !mayBeKey(given)) return undefined;
  return 'expected the name of an environment variable such as MY_API_KEY, never the key itself';
}

/** The name of the variable that holds a secret. */
export const VariableName = z.string().check(({ value, issues }) => {
  const message = variableProblem(value);
  // The value stays out of the message.
  if (message !== undefined) issues.push({ code: 'custom', input: undefined, message });
});
