import { Redactor } from '../redaction/redactor.ts';
import { shortest } from '../redaction/shortest.ts';

/** Keeps a key out of everything that leaves the gateway. */
export type Redaction = Pick<Redactor, 'text' | 'stream'>;

export function redactionOf(key: string | undefined): Redaction {
  return new Redactor(key === undefined ? [] : [key], { shortest: shortest.answered });
}
