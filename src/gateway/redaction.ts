import { Redactor, shortest } from '../redaction/redactor.ts';
import { needlesOf } from '../redaction/scanner.ts';

/** Keeps a key out of everything that leaves the gateway. */
export interface Redaction extends Pick<Redactor, 'text' | 'stream'> {
  /** Whether a name contains the key, in any case: header names arrive in lower case. */
  isIn(name: string): boolean;
}

export function redactionOf(key: string | undefined): Redaction {
  const keys = key === undefined ? [] : [key];
  const redactor = new Redactor(keys, { shortest: shortest.answered });
  const names = keys
    .filter(({ length }) => length >= shortest.answered)
    .flatMap(needlesOf)
    .map(({ bytes, least }) => bytes.subarray(0, least).toString('latin1').toLowerCase());
  return {
    text: (text) => redactor.text(text),
    stream: () => redactor.stream(),
    isIn: (name) => names.some((written) => name.toLowerCase().includes(written)),
  };
}
