import { Redactor } from '../redaction/redactor.ts';
import { Scanner } from '../redaction/scanner.ts';
import { shortest } from '../redaction/shortest.ts';

/** Keeps a key out of everything that leaves the gateway. */
export interface Redaction extends Pick<Redactor, 'text' | 'stream'> {
  /** Whether a name contains the key. Header names arrive in lower case, whatever case they were sent in. */
  isIn(name: string): boolean;
}

export function redactionOf(key: string | undefined): Redaction {
  const keys = key === undefined ? [] : [key];
  const redactor = new Redactor(keys, { shortest: shortest.answered });
  const names = new Scanner(
    keys.filter(({ length }) => length >= shortest.answered),
    true,
  );
  return {
    text: (text) => redactor.text(text),
    stream: () => redactor.stream(),
    isIn: (name) => names.find(Buffer.from(name), 0, true).kind === 'found',
  };
}
