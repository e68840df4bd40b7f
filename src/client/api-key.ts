import { OffsiteError } from '../offsite-error.ts';
import { Redactor } from '../redaction/redactor.ts';

/**
 * Checks that a key can travel in a header.
 * Throws an input error that says where the trouble is without showing the key.
 */
export function checkApiKey(key: string): void {
  if (key === '') throw invalid('the API key is empty');
  const position = key.search(/[^\x21-\x7e]/);
  if (position === -1) return;
  const character = (key.codePointAt(position) ?? 0).toString(16).toUpperCase().padStart(4, '0');
  throw invalid(
    `the API key has a character that no header can carry: U+${character}, at ${position + 1} of ${key.length}`,
  );
}

function invalid(message: string): OffsiteError {
  return new OffsiteError(message, {
    code: 'CLIENT_KEY_INVALID',
    kind: 'input',
    hint: 'A key is one word of ASCII letters, digits and signs. Look for a line break, a space or a "Bearer" copied along.',
  });
}

/**
 * Makes text from outside fit for an error or a log: without the key or control characters, and no longer
 * than `limit`.
 */
export type Quote = (text: string, limit?: number) => string;

/** Quotes what a service said. It may repeat the key it was sent, in whatever way it likes to write it. */
export function quoteWithout(key: string): Quote {
  const redactor = new Redactor([key], { shortest: 1, mark: '[API key]' });
  return (text, limit = 2000) => {
    // Escape sequences would act on the user's terminal.
    const shown = redactor
      .text(text)
      .replace(/\p{Cc}+/gu, ' ')
      .trim();
    return shown.length > limit ? `${shown.slice(0, limit)}…` : shown;
  };
}
