import { OffsiteError } from '../base/offsite-error.ts';
import { Redactor } from '../redaction/redactor.ts';

/**
 * Checks that a key can be sent in a header. Throws an input error that says where the problem is without
 * showing the key.
 */
export function checkApiKey(key: string): void {
  if (key === '') throw invalid('the API key is empty');
  const position = key.search(/[^\x21-\x7e]/);
  if (position === -1) return;
  const character = (key.codePointAt(position) ?? 0).toString(16).toUpperCase().padStart(4, '0');
  const place = `${position + 1} of ${key.length}`;
  throw invalid(`the API key has a character that no header can carry: U+${character}, at ${place}`);
}

function invalid(message: string): OffsiteError {
  return new OffsiteError(message, {
    code: 'CLIENT_KEY_INVALID',
    kind: 'input',
    hint: 'A key is one word of ASCII letters, digits and signs. Look for a line break, a space or "Bearer".',
  });
}

/**
 * Makes text from outside safe for an error or a log: without the key or control characters, and no longer
 * than `limit`.
 */
export type Quote = (text: string, limit?: number) => string;

/** Quotes the text of a service, which may repeat the key in any form. */
export function quoteWithout(key: string): Quote {
  const redactor = new Redactor([key], { shortest: 1, mark: '[API key]' });
  return (text, limit = 2000) => {
    // Escape sequences would control the user's terminal.
    const shown = redactor
      .text(text)
      .replace(/\p{Cc}+/gu, ' ')
      .trim();
    return shown.length > limit ? `${shown.slice(0, limit)}…` : shown;
  };
}
